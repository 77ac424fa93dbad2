"""The workers that took part in each experiment, for its provenance."""

from __future__ import annotations

import sqlalchemy as sa

SUITS = 1
_tables = sa.MetaData()

sa.Table(
    "valley_hands",
    _tables,
    sa.Column("experiment", sa.String(32), primary_key=True),
    sa.Column("worker", sa.String(320), primary_key=True),
    sa.Column("tasks", sa.Integer, nullable=False),
    sa.Column("seconds", sa.Float(53), nullable=False),
)


def apply(connection: sa.Connection) -> None:
    _tables.create_all(connection)
