"""Which home, or store, the database is about."""

from __future__ import annotations

import sqlalchemy as sa

SUITS = 1
_tables = sa.MetaData()

sa.Table(
    "valley_identity",
    _tables,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("confirmed", sa.Boolean, nullable=False),
)


def apply(connection: sa.Connection) -> None:
    _tables.create_all(connection)
