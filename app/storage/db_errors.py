"""Obstacles: why a disk or a database refuses, and whether it may do so only for a while."""

from __future__ import annotations

import errno
from typing import Literal

from sqlalchemy.exc import DBAPIError, OperationalError, TimeoutError

DiskState = Literal["full", "read-only", "unreachable"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ_ONLY = frozenset({errno.EROFS})
_PASSING = _FULL | _READ_ONLY | {errno.EIO}
_FULL_WORDS = ("disk is full", "disk full", "no space left")  # SQLite; Postgres, which passes the system's words on
_READ_ONLY_WORDS = ("readonly", "read-only")
_STARTING_WORDS = ("connection refused", "is starting up", "temporary failure in name resolution")


def classify(error: BaseException) -> DiskState | None:
    """What stands in the way of a write; None where the error is of another kind.

    >>> obstacle(OSError(errno.ENOSPC, "No space left on device"))
    'full'
    """
    if isinstance(error, OSError):
        return "full" if error.errno in _FULL else "read-only" if error.errno in _READ_ONLY else None
    if not is_transient(error):
        return None
    words = short_message(error).lower()
    if any(word in words for word in _FULL_WORDS):
        return "full"
    return "read-only" if any(word in words for word in _READ_ONLY_WORDS) else "unreachable"


def is_transient(error: BaseException) -> bool:
    """Whether an error is of the kind that goes away: locked, full, read-only, unreachable."""
    if isinstance(error, OSError):
        return error.errno in _PASSING
    if isinstance(error, DBAPIError):
        return isinstance(error, OperationalError) or error.connection_invalidated
    return isinstance(error, TimeoutError)


def is_starting(error: BaseException) -> bool:
    """Whether a database server may be about to start: it is not there yet, or says that it is not ready.

    The driver gives such errors no number, only the server's or the system's words.
    """
    return isinstance(error, OperationalError) and any(word in short_message(error).lower() for word in _STARTING_WORDS)


def short_message(error: BaseException) -> str:
    """The error in one line, without the statement that it befell."""
    return str(error.orig if isinstance(error, DBAPIError) else error)
