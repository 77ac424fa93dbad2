"""Identifiers of ours: sortable by time of birth, and safe as names of folders."""

from __future__ import annotations

import re
import secrets
import threading
import time

_PATTERN = re.compile(r"[0-9a-f]{16}")
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Sixteen hexadecimal digits: milliseconds since 1970, then chance.

    The time never goes back within a process, also when somebody sets the clock.
    """
    global _last
    with _lock:
        _last = max(_last + 1, time.time_ns() // 1_000_000)
        return f"{_last:011x}{secrets.randbits(20):05x}"


def is_id(text: str) -> bool:
    """Whether a text could be one of our identifiers; anything else never reaches a path or a query."""
    return _PATTERN.fullmatch(text) is not None
