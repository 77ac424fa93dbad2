"""DBOS alone says which tasks wait or run; our tables keep attempts and results, each by experiment, run and task."""

from __future__ import annotations

import sqlalchemy as sa

_tables = sa.MetaData()

sa.Table(
    "valley_task_attempts",
    _tables,
    sa.Column("experiment", sa.String(32), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("task", sa.String(160), primary_key=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("crashes", sa.Integer, nullable=False),
    sa.Column("share", sa.Float(53), nullable=False),
    sa.Column("crash_share", sa.Float(53), nullable=False),
    sa.Column("started", sa.Float(53), nullable=False),
)
sa.Table(
    "valley_task_results",
    _tables,
    sa.Column("experiment", sa.String(32), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("task", sa.String(160), primary_key=True),
    sa.Column("seconds", sa.Float(53)),
    sa.Column("error", sa.Text),
    sa.Column("payload", sa.LargeBinary),
)

_KEEP_PAYLOADS = """
INSERT INTO valley_task_results (experiment, run, task, seconds, payload)
SELECT tasks.experiment, experiments.run, tasks.task, tasks.seconds, tasks.result
FROM valley_tasks AS tasks JOIN valley_experiments AS experiments ON experiments.id = tasks.experiment
WHERE tasks.state = 'done' AND tasks.result IS NOT NULL
"""


def apply(connection: sa.Connection) -> None:
    _tables.create_all(connection)
    connection.execute(sa.text(_KEEP_PAYLOADS))
    for statement in (
        "DROP TABLE valley_tasks",
        "ALTER TABLE valley_experiments DROP COLUMN conductor",
        "ALTER TABLE valley_hands RENAME TO valley_contributions",
    ):
        connection.execute(sa.text(statement))
