"""Notify workers (LISTEN/NOTIFY) that an experiment was cancelled.

Postgres delivers a notification at the end of the transaction to every session that listens. SQLite has none: workers
poll there. A missed notification only delays a worker, because it also polls now and then.
"""

from __future__ import annotations

import sqlalchemy as sa

CHANNEL = "valley_cancel"


def notify_cancel(connection: sa.Connection, experiment: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_notify(:channel, :about)"), {"channel": CHANNEL, "about": experiment})
