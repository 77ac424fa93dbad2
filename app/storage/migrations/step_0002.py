"""Tasks remember the worker that ran them, for the provenance of an experiment."""

from __future__ import annotations

import sqlalchemy as sa


def apply(connection: sa.Connection) -> None:
    connection.execute(sa.text("ALTER TABLE valley_tasks ADD COLUMN worker VARCHAR(320)"))
