"""Checks of the options that architectures share."""

from __future__ import annotations

from collections.abc import Sequence


def whole(model: str, field: str, value: object) -> int:
    """Return an option that must be a whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"model {model!r}: {field} is {value!r}, must be a whole number of 1 or more")
    return value


def wholes(model: str, field: str, value: object, count: int | None = None) -> list[int]:
    """Return an option that must be a list of whole numbers of 1 or more, `count` of them where that is given."""
    if isinstance(value, Sequence) and not isinstance(value, str) and count in (None, len(value)):
        return [whole(model, f"{field}[{index}]", entry) for index, entry in enumerate(value)]
    number = "" if count is None else f"{count} "
    raise ValueError(f"model {model!r}: {field} is {value!r}, must be a list of {number}whole numbers of 1 or more")


def share(model: str, field: str, value: object) -> float:
    """Return an option that must be a number from 0 up to, but not including, 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(f"model {model!r}: {field} is {value!r}, must be a number from 0 up to (not including) 1")
    return float(value)
