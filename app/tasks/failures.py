"""Whose fault a failure is: that of a task, or that of the worker that it befell."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Literal

Fault = Literal["disk", "device"]

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OF_A_DISK = FULL | {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE}


class WorkerFault(Exception):
    """A task could not be done on this worker, and may well be done on another; the message is for people."""

    def __init__(self, message: str, *, full: bool = False) -> None:
        """`full` says that a disk had no more room."""
        super().__init__(message)
        self.full = full


def exception_chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was raised from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def disk_fault(error: BaseException) -> OSError | None:
    """The error of a disk behind another one: full, read-only, forbidden, broken, or gone.

    >>> disk_fault(OSError(errno.EROFS, "Read-only file system")) is None
    False
    >>> disk_fault(FileNotFoundError(errno.ENOENT, "No such file or directory")) is None
    True
    """
    return next(
        (cause for cause in exception_chain(error) if isinstance(cause, OSError) and cause.errno in _OF_A_DISK), None
    )
