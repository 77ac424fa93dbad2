"""Classify errors of the disk and the database: what is wrong, and whether it may pass."""

from __future__ import annotations

import errno
from typing import Literal

from sqlalchemy.exc import DBAPIError, OperationalError, TimeoutError

DiskState = Literal["full", "read-only", "unreachable"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ_ONLY = frozenset({errno.EROFS})
_TRANSIENT = _FULL | _READ_ONLY | {errno.EIO}
_FULL_WORDS = ("disk is full", "disk full", "no space left")  # SQLite; Postgres repeats the system's message
_READ_ONLY_WORDS = ("readonly", "read-only")
_STARTING_WORDS = ("connection refused", "is starting up", "temporary failure in name resolution")


def classify(error: BaseException) -> DiskState | None:
    """Why a write failed; None for other errors.

    >>> classify(OSError(errno.ENOSPC, "No space left on device"))
    'full'
    """
    if isinstance(error, OSError):
        return "full" if error.errno in _FULL else "read-only" if error.errno in _READ_ONLY else None
    if not is_transient(error):
        return None
    message = short_message(error).lower()
    if any(words in message for words in _FULL_WORDS):
        return "full"
    return "read-only" if any(words in message for words in _READ_ONLY_WORDS) else "unreachable"


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed: locked, full, read-only, unreachable."""
    if isinstance(error, OSError):
        return error.errno in _TRANSIENT
    if isinstance(error, DBAPIError):
        return isinstance(error, OperationalError) or error.connection_invalidated
    return isinstance(error, TimeoutError)


def is_starting(error: BaseException) -> bool:
    """Whether a database server may still be starting. The driver gives such errors no code, only a message."""
    return isinstance(error, OperationalError) and any(word in short_message(error).lower() for word in _STARTING_WORDS)


def short_message(error: BaseException) -> str:
    """The error without its SQL statement."""
    return str(error.orig if isinstance(error, DBAPIError) else error)
