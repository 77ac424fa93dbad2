"""Processes that the ones under test have started."""

from __future__ import annotations

from contextlib import suppress

import psutil


def computing_children(worker: int) -> list[int]:
    """The processes that a worker, given by its number, has started for its tasks."""
    found = []
    for child in psutil.Process(worker).children():
        with suppress(psutil.NoSuchProcess):  # gone since
            if any("spawn_main" in word for word in child.cmdline()):
                found.append(child.pid)
    return found
