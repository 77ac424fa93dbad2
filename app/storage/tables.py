"""The tables of the catalogue as they are now; `valleyscope.app.storage.migrations` says how they came to be.

Times are seconds since 1970 for people to read; nothing that matters is decided by comparing them.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()
_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_time = sa.Float(53)

experiments = sa.Table(
    "valley_experiments",
    metadata,
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
    sa.Column("created", _time, nullable=False),
    sa.Column("started", _time),
    sa.Column("finished", _time),
    sa.Column("progress", sa.Float(53), nullable=False),
    sa.Column("seconds_left", sa.Float(53)),
    sa.Column("error", sa.Text),
    sa.Column("verdict_kind", sa.String(40)),
    sa.Column("sentence", sa.Text),
    sa.Column("cancel", sa.Boolean, nullable=False),
    sa.Column("deleted", sa.Boolean, nullable=False),
    sa.Column("dataset", sa.String(400)),
    sa.Column("model", sa.Text),
    sa.Column("rise", sa.Float(53)),
    sa.Column("barrier", sa.Float(53)),
    sa.Column("control_barrier", sa.Float(53)),
    sa.Column("zero_groups", sa.Float(53)),
    sa.Column("accuracy", sa.Float(53)),
    sa.Column("tags", sa.Text),
    sa.Column("note", sa.Text),
    sa.Column("trashed", _time),
    sa.Index("valley_experiments_state", "deleted", "state", "number"),
    sa.Index("valley_experiments_number", "deleted", "number"),
    sqlite_autoincrement=True,
)
"""`cancel`: the run is to stop. `deleted`: its rows and files are being removed. `trashed`: moved to the trash then.

`dataset` to `accuracy` are there to sort by. `tags` has one tag a line, and begins and ends with a line break."""

task_attempts = sa.Table(
    "valley_task_attempts",
    metadata,
    sa.Column("experiment", sa.String(32), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("task", sa.String(160), primary_key=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("crashes", sa.Integer, nullable=False),
    sa.Column("share", sa.Float(53), nullable=False),
    sa.Column("crash_share", sa.Float(53), nullable=False),
    sa.Column("started", _time, nullable=False),
)
"""`share` is the part of the task that is done, `crashes` counts those since `share` last rose above `crash_share`."""

task_results = sa.Table(
    "valley_task_results",
    metadata,
    sa.Column("experiment", sa.String(32), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("task", sa.String(160), primary_key=True),
    sa.Column("seconds", sa.Float(53)),
    sa.Column("error", sa.Text),
    sa.Column("payload", sa.LargeBinary),
)
"""One row for each task that ended: `error` if it failed, else its result as `payload`, until a snapshot has it."""

events = sa.Table(
    "valley_events",
    metadata,
    sa.Column("id", _number, primary_key=True, autoincrement=True),
    sa.Column("experiment", sa.String(32), nullable=False),
    sa.Column("at", _time, nullable=False),
    sa.Column("kind", sa.String(12), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("valley_events_experiment", "experiment", "id"),
    sqlite_autoincrement=True,
)

contributions = sa.Table(
    "valley_contributions",
    metadata,
    sa.Column("experiment", sa.String(32), primary_key=True),
    sa.Column("worker", sa.String(320), primary_key=True),
    sa.Column("tasks", sa.Integer, nullable=False),
    sa.Column("seconds", sa.Float(53), nullable=False),
)
"""Who took part in an experiment; `worker` is a host and its device, since processes come and go."""

processes = sa.Table(
    "valley_processes",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("role", sa.String(8), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("device", sa.String(40), nullable=False),
    sa.Column("device_name", sa.String(120)),
    sa.Column("memory_used", _number),
    sa.Column("memory_total", _number),
    sa.Column("started", _time, nullable=False),
    sa.Column("seen", _time, nullable=False),
)

shares = sa.Table(
    "valley_shares",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("experiment", sa.String(32), nullable=False, index=True),
    sa.Column("key", sa.LargeBinary, nullable=False),
    sa.Column("created", _time, nullable=False),
    sa.Column("expires", _time, nullable=False),
)
"""Read-only links to experiments. `key` signs the token of the link; without its row a token is worth nothing."""

checkpoints = sa.Table(
    "valley_checkpoints",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(120), nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("dataset", sa.String(400), nullable=False),
    sa.Column("size", _number, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("created", _time, nullable=False),
    sa.Column("loss", sa.String(20), nullable=False, server_default="cross_entropy"),
)

identity = sa.Table(
    "valley_identity",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("confirmed", sa.Boolean, nullable=False),
)
"""One row: the name that the home, or the store, has as well. `confirmed`: it was written there."""
