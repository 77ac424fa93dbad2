"""Flaws of a spec that show only where several fields, or the spec and the world, are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

Path = tuple[str | int, ...]


class Flaw(NamedTuple):
    """What is wrong with one field."""

    path: Path
    value: Any
    message: str


def refuse(flaws: Iterable[Flaw]) -> None:
    """Raise a ValidationError that has each flaw at its field; nothing where there is none."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError("inconsistent", "{message}", {"message": flaw.message}),
            loc=flaw.path,
            input=flaw.value,
        )
        for flaw in flaws
    ]
    if details:
        raise ValidationError.from_exception_data("Spec", details)
