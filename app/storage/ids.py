"""Ids: sortable by creation time, and safe as folder names."""

from __future__ import annotations

import re
import secrets
import threading
import time

_PATTERN = re.compile(r"[0-9a-f]{16}")
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Sixteen hexadecimal digits: milliseconds since 1970, then random bits.

    Within a process the time never goes back, even when the clock is set.
    """
    global _last
    with _lock:
        _last = max(_last + 1, time.time_ns() // 1_000_000)
        return f"{_last:011x}{secrets.randbits(20):05x}"


def is_id(text: str) -> bool:
    """Whether a text has the form of an id; anything else must not reach a path or a query."""
    return _PATTERN.fullmatch(text) is not None
