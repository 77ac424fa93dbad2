"""Checkpoints of networks that were not trained as classifiers."""

from __future__ import annotations

import sqlalchemy as sa

SUITS = 5


def apply(connection: sa.Connection) -> None:
    added = "loss VARCHAR(20) NOT NULL DEFAULT 'cross_entropy'"
    connection.execute(sa.text(f"ALTER TABLE valley_checkpoints ADD COLUMN {added}"))
