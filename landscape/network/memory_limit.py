"""Memory that this process may use: that of the machine, or what a container is limited to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

# Control groups as a container sees them: of the second version, then of the first. What is not limited says "max",
# or a number that no machine has.
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def machine_memory() -> int:
    """Bytes."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *filter(None, map(_limit, _LIMITS))])


def _limit(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
