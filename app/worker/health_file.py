"""The health file of a worker: locked while the worker lives, touched at every heartbeat that the database took.

The first line is the worker's id, a second one says why it takes no tasks. A health check that reads the file needs no
connection to the database.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

FRESH_SECONDS = 45.0
"""A worker sends a heartbeat every ten seconds; without one for this long it hangs or cannot reach its database."""


class Unhealthy(RuntimeError):
    """A worker that is not running or not healthy; the message says why."""


class HealthFile:
    """The file as the worker writes it. The kernel releases the lock when the process ends."""

    def __init__(self, path: Path, name: str, fault: str | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._name = name
        self._written: str | None = None
        self._file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(f"heartbeat={path} belongs to another worker: give each its own file") from None
        self.beat(fault)

    def beat(self, fault: str | None = None) -> None:
        """Write that the worker is alive, and its `fault` if it has one."""
        text = "\n".join([self._name, *(fault or "").split("\n")]).rstrip()
        if text != self._written:
            self._file.truncate(0)
            self._file.write(f"{text}\n")
            self._file.flush()
            self._written = text
        os.utime(self._file.fileno())

    def end(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


def check_health_file(path: Path, *, fresh: float = FRESH_SECONDS) -> str:
    """The id of the worker; raises Unhealthy unless it lives, is healthy and sent a heartbeat lately."""
    try:
        with path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                (name, _, fault), age = (
                    file.read().strip().partition("\n"),
                    time.time() - os.fstat(file.fileno()).st_mtime,
                )
            else:
                raise Unhealthy(f"the worker of {path} is dead")
    except FileNotFoundError:
        raise Unhealthy(
            f"there is no {path}: no worker has started, it waits for its home or database, or it has ended"
        ) from None
    if not name:  # the file is being rewritten
        raise Unhealthy(f"the worker of {path} has not written its state yet")
    if age > fresh:
        raise Unhealthy(f"{name} was last well {age:.0f} s ago: it hangs, or cannot reach its database")
    if fault:
        raise Unhealthy(f"{name} takes no work: {fault}")
    return name
