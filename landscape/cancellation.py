"""Cancelling long computations: they call a check between pieces of work and raise ``Cancelled``."""

from __future__ import annotations

from collections.abc import Callable

CancelCheck = Callable[[], bool]
"""Called between small pieces of work; ``True`` means stop."""


class Cancelled(Exception):
    """The caller's cancel check returned True; what was saved before stays valid."""


def raise_if_cancelled(cancelled: CancelCheck | None) -> None:
    """Raise ``Cancelled`` when the cancel check returns True."""
    if cancelled is not None and cancelled():
        raise Cancelled("cancelled by the caller")
