"""The first tables: experiments, their tasks and events, living processes, uploaded checkpoints."""

from __future__ import annotations

import sqlalchemy as sa

_tables = sa.MetaData()
_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")

sa.Table(
    "valley_experiments",
    _tables,
    sa.Column("number", _number, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(32), nullable=False, unique=True),
    sa.Column("name", sa.String(120), nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("stage", sa.String(24), nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("key", sa.String(255), unique=True),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("run", sa.Integer, nullable=False),
    sa.Column("created", sa.Float(53), nullable=False),
    sa.Column("started", sa.Float(53)),
    sa.Column("finished", sa.Float(53)),
    sa.Column("progress", sa.Float(53), nullable=False),
    sa.Column("seconds_left", sa.Float(53)),
    sa.Column("error", sa.Text),
    sa.Column("verdict_kind", sa.String(40)),
    sa.Column("sentence", sa.Text),
    sa.Column("cancel", sa.Boolean, nullable=False),
    sa.Column("deleted", sa.Boolean, nullable=False),
    sa.Column("conductor", sa.String(64)),
    sa.Index("valley_experiments_state", "deleted", "state", "number"),
    sa.Index("valley_experiments_number", "deleted", "number"),
    sqlite_autoincrement=True,
)
sa.Table(
    "valley_tasks",
    _tables,
    sa.Column("experiment", sa.String(32), primary_key=True),
    sa.Column("task", sa.String(160), primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("issue", sa.Integer, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("deaths", sa.Integer, nullable=False),
    sa.Column("share", sa.Float(53), nullable=False),
    sa.Column("death_share", sa.Float(53), nullable=False),
    sa.Column("owner", sa.String(64)),
    sa.Column("queued", sa.Float(53), nullable=False),
    sa.Column("started", sa.Float(53)),
    sa.Column("seconds", sa.Float(53)),
    sa.Column("error", sa.Text),
    sa.Column("result", sa.LargeBinary),
    sa.Index("valley_tasks_state", "state", "priority"),
    sa.Index("valley_tasks_experiment", "experiment", "state"),
)
sa.Table(
    "valley_events",
    _tables,
    sa.Column("id", _number, primary_key=True, autoincrement=True),
    sa.Column("experiment", sa.String(32), nullable=False),
    sa.Column("at", sa.Float(53), nullable=False),
    sa.Column("kind", sa.String(12), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("valley_events_experiment", "experiment", "id"),
    sqlite_autoincrement=True,
)
sa.Table(
    "valley_processes",
    _tables,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("role", sa.String(8), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("device", sa.String(40), nullable=False),
    sa.Column("started", sa.Float(53), nullable=False),
    sa.Column("seen", sa.Float(53), nullable=False),
)
sa.Table(
    "valley_checkpoints",
    _tables,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(120), nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("dataset", sa.String(400), nullable=False),
    sa.Column("size", _number, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("created", sa.Float(53), nullable=False),
)


def apply(connection: sa.Connection) -> None:
    _tables.create_all(connection, checkfirst=False)
