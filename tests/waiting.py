"""Waiting for what other processes do, without a guess how long it takes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(
    condition: Callable[[], Found], timeout: float = 150.0, complaint: Callable[[], str] = lambda: "it did not happen"
) -> Found:
    """Ask until the answer is true, and return it; `complaint` says what to read where it never is."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"within {timeout} s: {complaint()}"
        time.sleep(0.05)
    return found
