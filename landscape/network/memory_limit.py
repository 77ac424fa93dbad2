"""The memory limit of this process: the machine's memory, or the limit of the container."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

# Memory limits of a container: control groups version 2 and 1. Without a limit they hold "max" or a huge number.
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def machine_memory() -> int:
    """The memory limit in bytes."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *filter(None, map(_limit, _LIMITS))])


def _limit(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
