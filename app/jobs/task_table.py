"""Attempts and results of tasks, by experiment, run and task.

A result enters once: tasks are deterministic, so the first one counts, and its events enter in the same transaction.
Which tasks wait or run, and where, is known to DBOS alone (`valleyscope.app.jobs.queue`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from valleyscope.app.experiments.plan import STAGES, Kind, Task
from valleyscope.app.jobs.queue import JobQueue, task_priority
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import append_events
from valleyscope.app.storage.experiment_table import ACTIVE, mark_running
from valleyscope.app.storage.tables import contributions, experiments, processes, task_attempts, task_results

MAX_CRASHES = 3
"""A task fails if its process crashes, or its device or disk fails, this often without progress in between."""
_PROGRESS = 0.01

Events = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class TaskResult:
    """A task that ended: with a payload, or with an error."""

    task: str
    payload: bytes | None
    error: str | None


@dataclass(frozen=True)
class Contribution:
    """Host and device of a worker that took part in an experiment, its completed tasks and their seconds."""

    worker: str
    tasks: int
    seconds: float


class TaskTable:
    """The tasks of all experiments."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enqueue(
        self, jobs: JobQueue, experiment: str, run: int, tasks: Sequence[Task], *, priority: int, number: int
    ) -> None:
        """Put tasks into the queue. An earlier result without a payload is deleted: its files are lost."""
        ids = [task.id for task in tasks]
        stale = task_results.c.task.in_(ids), task_results.c.payload.is_(None)
        with self._database.write() as connection:
            connection.execute(task_results.delete().where(*_of_run(task_results, experiment, run), *stale))
            for task in tasks:
                jobs.enqueue_task(connection, experiment, run, task.id, task_priority(priority, number, task.priority))

    def begin(self, experiment: str, run: int, task: str) -> str | None:
        """Count an attempt; returns the spec, or None if the task is not wanted any more."""
        insert = _insert(self._database)(task_attempts)
        first = {"attempts": 1, "crashes": 0, "share": 0.0, "crash_share": 0.0, "started": time.time()}
        again = {"attempts": task_attempts.c.attempts + 1, "started": first["started"]}
        with self._database.write() as connection:
            spec = connection.execute(_wanted(experiment, run, task)).scalar()
            if spec is None:
                return None
            connection.execute(
                insert.values({"experiment": experiment, "run": run, "task": task} | first).on_conflict_do_update(
                    index_elements=task_attempts.primary_key, set_=again
                )
            )
            mark_running(connection, experiment, STAGES[Kind(task.partition(":")[0])])
        return str(spec)

    def is_wanted(self, experiment: str, run: int, task: str) -> bool:
        """Whether a worker should continue: the run is not cancelled, and the task has no result yet."""
        with self._database.read() as connection:
            return connection.execute(_wanted(experiment, run, task)).scalar() is not None

    def advance(self, experiment: str, run: int, task: str, share: float, events: Events = ()) -> bool:
        """Save progress of a task; returns whether the worker should continue."""
        with self._database.write() as connection:
            if not _is_current(connection, experiment, run):
                return False
            connection.execute(
                task_attempts.update().where(*_of_task(task_attempts, experiment, run, task)).values(share=share)
            )
            append_events(connection, experiment, events)
            return connection.execute(_wanted(experiment, run, task)).scalar() is not None

    def complete(
        self, experiment: str, run: int, task: str, *, worker: str, payload: bytes, seconds: float, events: Events
    ) -> bool:
        """Enter a result; False if the task has one already, or its run is over."""
        with self._database.write() as connection:
            if not _is_current(connection, experiment, run):
                return False
            if not self._insert_result(connection, experiment, run, task, payload=payload, seconds=seconds):
                return False
            _add_contribution(connection, experiment, worker, seconds)
            append_events(connection, experiment, events)
        return True

    def fail(self, experiment: str, run: int, task: str, error: str) -> None:
        with self._database.write() as connection:
            self._fail(connection, experiment, run, task, error)

    def record_crash(self, experiment: str, run: int, task: str, reason: str) -> bool:
        """Count a crash; returns whether the task is to be tried again, else it has failed."""
        row_of = _of_task(task_attempts, experiment, run, task)
        with self._database.write() as connection:
            row = connection.execute(sa.select(task_attempts).where(*row_of).with_for_update()).one_or_none()
            if row is None:
                return True
            crashes = 1 if row.share > row.crash_share + _PROGRESS else row.crashes + 1
            connection.execute(
                task_attempts.update()
                .where(*row_of)
                .values(crashes=crashes, crash_share=max(row.share, row.crash_share))
            )
            if crashes >= MAX_CRASHES:
                self._fail(connection, experiment, run, task, f"{reason}, {MAX_CRASHES} times without progress")
                return False
        return True

    def results(self, experiment: str, run: int) -> list[TaskResult]:
        """Results that no snapshot has yet, of any run, and the failures of this run."""
        failed = sa.and_(task_results.c.run == run, task_results.c.error.is_not(None))
        wanted = sa.or_(task_results.c.payload.is_not(None), failed)
        chosen = sa.select(task_results).where(task_results.c.experiment == experiment, wanted)
        with self._database.read() as connection:
            return [TaskResult(row.task, row.payload, row.error) for row in connection.execute(chosen)]

    def drop_payloads(self, experiment: str, tasks: Sequence[str]) -> None:
        """A snapshot has these results."""
        mine = task_results.c.experiment == experiment, task_results.c.task.in_(tasks)
        with self._database.write() as connection:
            connection.execute(task_results.update().where(*mine).values(payload=None))

    def shares(self, experiment: str, run: int) -> dict[str, float]:
        """The done part of each task that has been started."""
        chosen = sa.select(task_attempts.c.task, task_attempts.c.share)
        with self._database.read() as connection:
            rows = connection.execute(chosen.where(*_of_run(task_attempts, experiment, run))).all()
        return {row.task: row.share for row in rows}

    def _fail(self, connection: sa.Connection, experiment: str, run: int, task: str, error: str) -> None:
        if self._insert_result(connection, experiment, run, task, error=error):
            append_events(connection, experiment, [("error", {"task": task, "message": error})])

    def _insert_result(
        self, connection: sa.Connection, experiment: str, run: int, task: str, **values: float | str | bytes
    ) -> bool:
        row = {"experiment": experiment, "run": run, "task": task} | values
        insert = _insert(self._database)(task_results).values(row).on_conflict_do_nothing()
        return connection.execute(insert.returning(task_results.c.task)).scalar() is not None


def contributions_of(connection: sa.Connection, experiment: str) -> list[Contribution]:
    """The workers that took part in an experiment."""
    chosen = sa.select(contributions).where(contributions.c.experiment == experiment).order_by(contributions.c.worker)
    return [Contribution(row.worker, row.tasks, row.seconds) for row in connection.execute(chosen)]


def _add_contribution(connection: sa.Connection, experiment: str, process: str, seconds: float) -> None:
    place = sa.select(processes.c.host, processes.c.device).where(processes.c.id == process)
    found = connection.execute(place).one_or_none()
    worker = process if found is None else f"{found.host}, {found.device}"
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {"experiment": experiment, "worker": worker, "tasks": 1, "seconds": seconds}
    more = {"tasks": contributions.c.tasks + 1, "seconds": contributions.c.seconds + seconds}
    connection.execute(
        insert(contributions).values(row).on_conflict_do_update(index_elements=contributions.primary_key, set_=more)
    )


def _insert(database: Database) -> Any:
    return sqlite.insert if database.sqlite else postgresql.insert


def _of_run(table: sa.Table, experiment: str, run: int) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.experiment == experiment, table.c.run == run


def _of_task(table: sa.Table, experiment: str, run: int, task: str) -> tuple[sa.ColumnElement[bool], ...]:
    return *_of_run(table, experiment, run), table.c.task == task


def _active_run(experiment: str, run: int) -> tuple[sa.ColumnElement[bool], ...]:
    row = experiments.c
    return row.id == experiment, row.run == run, row.deleted.is_(False), row.state.in_(ACTIVE)


def _is_current(connection: sa.Connection, experiment: str, run: int) -> bool:
    chosen = sa.select(sa.literal(1)).where(*_active_run(experiment, run))
    return connection.execute(chosen).scalar() is not None


def _wanted(experiment: str, run: int, task: str) -> sa.Select[tuple[str]]:
    """The spec of an experiment, if its run goes on and the task has no result."""
    ended = sa.exists().where(*_of_task(task_results, experiment, run, task))
    return sa.select(experiments.c.spec).where(*_active_run(experiment, run), experiments.c.cancel.is_(False), ~ended)
