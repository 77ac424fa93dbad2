"""Who computed an experiment: hosts and devices with the tasks that they did, known also when those are long gone."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from valleyscope.app.storage.tables import contributions, processes


@dataclass(frozen=True)
class Contribution:
    """A worker that took part: host and device, the tasks that it completed, the seconds they took."""

    worker: str
    tasks: int
    seconds: float


def add_contribution(connection: sa.Connection, experiment: str, process: str, seconds: float) -> None:
    """Note a task that a process has completed."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {"experiment": experiment, "worker": _place_of(connection, process), "tasks": 1, "seconds": seconds}
    more = {"tasks": contributions.c.tasks + 1, "seconds": contributions.c.seconds + seconds}
    connection.execute(
        insert(contributions).values(row).on_conflict_do_update(index_elements=contributions.primary_key, set_=more)
    )


def contributions_of(connection: sa.Connection, experiment: str) -> list[Contribution]:
    """The workers that took part in an experiment."""
    chosen = sa.select(contributions).where(contributions.c.experiment == experiment).order_by(contributions.c.worker)
    return [Contribution(row.worker, row.tasks, row.seconds) for row in connection.execute(chosen)]


def _place_of(connection: sa.Connection, process: str) -> str:
    chosen = sa.select(processes.c.host, processes.c.device).where(processes.c.id == process)
    row = connection.execute(chosen).one_or_none()
    return process if row is None else f"{row.host}, {row.device}"
