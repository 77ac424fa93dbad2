"""Read-only links to experiments."""

from __future__ import annotations

import sqlalchemy as sa

SUITS = 5


def apply(connection: sa.Connection) -> None:
    sa.Table(
        "valley_shares",
        sa.MetaData(),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("experiment", sa.String(32), nullable=False, index=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("expires", sa.Float(53), nullable=False),
    ).create(connection)
