"""Whether networks and data of other libraries may be downloaded; by default only what is on this machine is used."""

from __future__ import annotations

import os

SWITCH = "VALLEY_ALLOW_DOWNLOADS"


def downloads_allowed() -> bool:
    """Whether the operator allows it in the environment."""
    return os.environ.get(SWITCH, "").lower() in ("1", "true", "yes", "on")
