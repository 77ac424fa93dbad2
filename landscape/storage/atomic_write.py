"""Atomic writes: to a temporary file beside the destination, flushed to the disk, then renamed over it.

A process that is killed leaves the old file or the new one, never a part. It may leave a temporary file, which the next
write to the same destination removes. Writers lock their temporary file, so live writers are not cleaned up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_SUFFIX = ".partial"


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write to; when the block ends without an exception it replaces ``path`` atomically.

    >>> import tempfile
    >>> destination = Path(tempfile.mkdtemp()) / "verdict.json"
    >>> with write_atomically(destination) as file:
    ...     _ = file.write(b"{}")
    >>> destination.read_bytes()
    b'{}'
    """
    destination = Path(os.path.realpath(path))
    remove_leftovers(destination)
    temporary, descriptor = _open_temporary(destination)
    try:
        # Closing the file releases the lock, so the rename happens inside.
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
            temporary.replace(destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(destination.parent)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files of dead writers of ``path``; those of live writers stay."""
    destination = Path(os.path.realpath(path))
    prefix = _prefix(destination)
    for candidate in destination.parent.iterdir():
        if not (candidate.name.startswith(prefix) and candidate.name.endswith(_SUFFIX)):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(candidate, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                candidate.unlink(missing_ok=True)
            finally:
                os.close(descriptor)


def _prefix(destination: Path) -> str:
    return f".{destination.name}."


def _open_temporary(destination: Path) -> tuple[Path, int]:
    while True:
        temporary = destination.with_name(f"{_prefix(destination)}{secrets.token_hex(6)}{_SUFFIX}")
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Between the two calls another writer may have removed the still unlocked file.
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
