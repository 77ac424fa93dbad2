"""Workers say what their device is called and how much of its memory is in use."""

from __future__ import annotations

import sqlalchemy as sa

SUITS = 1
_ADDED = {"device_name": "VARCHAR(120)", "memory_used": "BIGINT", "memory_total": "BIGINT"}


def apply(connection: sa.Connection) -> None:
    # Empty where a worker of the version before enters itself: old and new ones work side by side in an upgrade.
    for name, kind in _ADDED.items():
        connection.execute(sa.text(f"ALTER TABLE valley_processes ADD COLUMN {name} {kind}"))
