"""Errors of a spec that pydantic's field checks cannot find: fields that contradict each other or the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

Path = tuple[str | int, ...]


class InvalidField(NamedTuple):
    path: Path
    value: Any
    message: str


def raise_errors(errors: Iterable[InvalidField]) -> None:
    """Raise a ValidationError with each error at its field; do nothing if there are none."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError("inconsistent", "{message}", {"message": error.message}),
            loc=error.path,
            input=error.value,
        )
        for error in errors
    ]
    if details:
        raise ValidationError.from_exception_data("Spec", details)
