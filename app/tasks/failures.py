"""Tells failures of a task from those of the disk or the device of a worker."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Literal

Fault = Literal["disk", "device"]

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OF_A_DISK = FULL | {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE}


class WorkerFault(Exception):
    """The disk or the device of this worker failed; another worker may be able to run the task."""

    def __init__(self, message: str, *, full: bool = False) -> None:
        """`full`: the disk has no space left."""
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
