"""Tidings for workers: that somebody wants an experiment to stop, so that they need not ask for it all the time.

Postgres brings them, at the end of the transaction that tells them, to every session that listens. It wakes all of
those for each one, so they are for what is rare. One that is missed is only late: who listens asks now and then, too.
"""

from __future__ import annotations

import sqlalchemy as sa

CHANNEL = "valley_cancel"


def notify_cancel(connection: sa.Connection, experiment: str) -> None:
    """Let workers ask whether the task that they have of an experiment is still wanted."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_notify(:channel, :about)"), {"channel": CHANNEL, "about": experiment})
