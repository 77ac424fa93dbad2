"""Flaws of a spec that show only where several fields, or the spec and the world, are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

Path = tuple[str | int, ...]


class InvalidField(NamedTuple):
    """What is wrong with one field."""

    path: Path
    value: Any
    message: str


def raise_errors(errors: Iterable[InvalidField]) -> None:
    """Raise a ValidationError that has each error at its field; nothing where there is none."""
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
