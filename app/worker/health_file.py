"""The heartbeat of a worker: a file that it locks while it lives and touches while the database knows it to be alive.

The first line is the worker's name, a second one says why it takes no work.

A check from outside needs no connection for that, so a thousand workers that are looked at every half minute cost
the database nothing.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

FRESH_SECONDS = 45.0
"""A worker beats every ten seconds; one that has not for so long hangs, or cannot reach its database."""


class Unhealthy(RuntimeError):
    """A worker that is not there, or not well; the message says what was found."""


class HealthFile:
    """The worker's end: the lock is dropped with the process, however it ends."""

    def __init__(self, path: Path, name: str, fault: str | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._name = name
        self._said: str | None = None
        self._file = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(f"heartbeat={path} is that of another worker: give each its own file") from None
        self.beat(fault)

    def beat(self, fault: str | None = None) -> None:
        """The worker is alive; with an `fault` it is not well."""
        text = "\n".join([self._name, *(fault or "").split("\n")]).rstrip()
        if text != self._said:
            self._file.truncate(0)
            self._file.write(f"{text}\n")
            self._file.flush()
            self._said = text
        os.utime(self._file.fileno())

    def end(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


def check_health_file(path: Path, *, fresh: float = FRESH_SECONDS) -> str:
    """The name of the worker whose heartbeat this is; raises Unwell unless it lives and the beat is fresh."""
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
            f"there is no {path}: no worker has started, it waits for its home or database, or it has left"
        ) from None
    if not name:  # between the two steps in which it is written anew
        raise Unhealthy(f"the worker of {path} has not said yet whether it is well")
    if age > fresh:
        raise Unhealthy(f"{name} was last well {age:.0f} s ago: it hangs, or cannot reach its database")
    if fault:
        raise Unhealthy(f"{name} takes no work: {fault}")
    return name
