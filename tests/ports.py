"""Ports of loopback for servers that must be told theirs, and may be started again at the same one."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_LOWEST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port at which nobody listens, and that the kernel gives to nobody who asks for any.

    From its own range it would give a port that is free for a moment to the next connection that somebody opens.
    """
    above = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.is_file() else 32_768
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(_LOWEST, above) if above > _LOWEST else 0
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(found.getsockname()[1])
