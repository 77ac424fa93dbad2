"""What has become of each task: queued, running, done, failed. The one place where attempts and results are counted.

    queued -> running -> done -> kept        kept: in a snapshot of the landscape, so its payload was thrown away
                |  `-> failed
                `-> queued                    handed back, or its process died

A result enters with the same transaction that ends its task, and only from the process that owns the task at that
moment: it is there once, or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from valleyscope.app.experiments.plan import STAGES, Kind, Task
from valleyscope.app.jobs.contributions import add_contribution
from valleyscope.app.jobs.queue import JobQueue, task_job, task_priority
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import append_events
from valleyscope.app.storage.experiment_table import append_start_event
from valleyscope.app.storage.tables import experiments, tasks

MAX_CRASHES = 3
"""So many processes may die, or lose their device, under a task without it getting any further; then it is the task's
fault."""
_FURTHER = 0.01

Found = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class QueueRow:
    """A task that waits for a worker."""

    experiment: str
    task: str
    priority: int
    since: datetime


@dataclass(frozen=True)
class ActiveTask:
    """A task that waits for a worker, or runs on one; the share of it that is done, and its job."""

    running: bool
    share: float
    owner: str | None
    job: str


@dataclass(frozen=True)
class EndedTask:
    """A task that has ended: with a payload, or with a reason."""

    task: str
    payload: bytes | None
    error: str | None


class TaskTable:
    """The tasks of all experiments."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def issue(self, jobs: JobQueue, experiment: str, chosen: Sequence[Task], *, priority: int, number: int) -> None:
        """Put tasks into the queue, together with the jobs that run them.

        Those that are in it already, or have a result that waits to be kept, stay as they are: a task that ran twice
        would be told of twice.
        """
        ids = [task.id for task in chosen]
        known = sa.select(tasks.c.task, tasks.c.issue, tasks.c.state)
        known = known.where(tasks.c.experiment == experiment, tasks.c.task.in_(ids)).with_for_update()
        with self._database.write() as connection:
            rows = connection.execute(known).all()
            before: dict[str, int] = {row.task: row.issue for row in rows}
            settled = {row.task for row in rows if row.state in ("queued", "running", "done")}
            for task in chosen:
                if task.id in settled:
                    continue
                place = task_priority(priority, number, task.priority)
                values = {
                    "kind": task.kind.value,
                    "state": "queued",
                    "priority": place,
                    "issue": before.get(task.id, 0) + 1,
                    "deaths": 0,
                    "share": 0.0,
                    "death_share": 0.0,
                    "owner": None,
                    "queued": time.time(),
                    "started": None,
                    "seconds": None,
                    "error": None,
                    "result": None,
                }
                if task.id in before:
                    connection.execute(tasks.update().where(*_is(experiment, task.id)).values(values))
                else:
                    new = {"experiment": experiment, "task": task.id, "attempts": 0} | values
                    connection.execute(tasks.insert().values(new))
                jobs.enqueue_task(connection, experiment, task.id, before.get(task.id, 0) + 1, place)

    def begin(self, experiment: str, task: str, issue: int, worker: str) -> str | None:
        """Give a task to a worker; returns the spec, or None where it is no longer wanted.

        Found running, it was begun by a process that died since: three such deaths without any progress in between
        fail the task.
        """
        with self._database.write() as connection:
            wanted = connection.execute(
                sa.select(experiments).where(experiments.c.id == experiment).with_for_update()
            ).one_or_none()
            row = connection.execute(
                sa.select(tasks).where(*_is(experiment, task), tasks.c.issue == issue).with_for_update()
            ).one_or_none()
            if wanted is None or row is None or row.state not in ("queued", "running"):
                return None
            if wanted.cancel or wanted.deleted or wanted.state not in ("queued", "running"):
                connection.execute(tasks.update().where(*_is(experiment, task)).values(state="withdrawn", owner=None))
                append_events(connection, experiment, [("progress", {"task": task, "withdrawn": True})])
                return None
            if row.state == "running" and self._count_death(connection, row) >= MAX_CRASHES:
                self._fail(connection, row, _killed_too_many("its process died"))
                return None
            connection.execute(
                tasks.update()
                .where(*_is(experiment, task))
                .values(state="running", owner=worker, started=time.time(), attempts=tasks.c.attempts + 1)
            )
            append_start_event(connection, wanted, STAGES[Kind(row.kind)])
            return str(wanted.spec)

    def advance(self, experiment: str, task: str, worker: str, share: float | None, found: Found = ()) -> bool:
        """Note how far a task is; False means that it is to stop: cancelled, or no longer this worker's."""
        with self._database.write() as connection:
            wanted = connection.execute(
                sa.select(sa.literal(1))
                .select_from(tasks.join(experiments, experiments.c.id == tasks.c.experiment))
                .where(*_is(experiment, task), tasks.c.owner == worker, tasks.c.state == "running")
                .where(experiments.c.cancel.is_(False))
            ).scalar()
            if share is not None:
                connection.execute(tasks.update().where(*_owned(experiment, task, worker)).values(share=share))
            append_events(connection, experiment, found)
        return wanted is not None

    def is_wanted(self, experiment: str, task: str, worker: str) -> bool:
        """Whether a worker should go on; the cheap form of `advance`."""
        with self._database.read() as connection:
            return (
                connection.execute(
                    sa.select(sa.literal(1))
                    .select_from(tasks.join(experiments, experiments.c.id == tasks.c.experiment))
                    .where(*_owned(experiment, task, worker), experiments.c.cancel.is_(False))
                ).scalar()
                is not None
            )

    def complete(self, experiment: str, task: str, worker: str, payload: bytes, seconds: float, found: Found) -> bool:
        """Enter a result; False where the task was taken from this worker meanwhile."""
        with self._database.write() as connection:
            changed = connection.execute(
                tasks.update()
                .where(*_owned(experiment, task, worker))
                .values(state="done", owner=None, share=1.0, seconds=seconds, result=payload)
            ).rowcount
            if changed:
                add_contribution(connection, experiment, worker, seconds)
                append_events(connection, experiment, found)
        return bool(changed)

    def fail(self, experiment: str, task: str, worker: str, reason: str) -> None:
        with self._database.write() as connection:
            row = _held(connection, experiment, task, worker)
            if row is not None:
                self._fail(connection, row, reason)

    def record_child_crash(self, experiment: str, task: str, worker: str, how: str) -> bool:
        """The child process of a worker died under its task; False when that was once too often."""
        with self._database.write() as connection:
            row = _held(connection, experiment, task, worker)
            if row is None:
                return False
            if self._count_death(connection, row) >= MAX_CRASHES:
                self._fail(connection, row, _killed_too_many(f"its process died ({how})"))
                return False
        return True

    def record_failed_attempt(self, experiment: str, task: str, worker: str, reason: str) -> bool:
        """A worker that is well could not do a task, and gives it back; False when that was once too often."""
        with self._database.write() as connection:
            row = _held(connection, experiment, task, worker)
            if row is None:
                return False
            if self._count_death(connection, row) >= MAX_CRASHES:
                self._fail(connection, row, f"{reason} ({MAX_CRASHES} times without getting further)")
                return False
            connection.execute(tasks.update().where(*_is(experiment, task)).values(state="queued", owner=None))
        return True

    def hand_back(self, experiment: str, task: str, worker: str) -> None:
        """A worker that leaves gives its task back; that is nobody's fault."""
        with self._database.write() as connection:
            connection.execute(
                tasks.update().where(*_owned(experiment, task, worker)).values(state="queued", owner=None)
            )

    def stop(self, experiment: str, task: str, worker: str) -> None:
        """A worker has stopped a task that is not wanted any more."""
        with self._database.write() as connection:
            connection.execute(
                tasks.update().where(*_owned(experiment, task, worker)).values(state="withdrawn", owner=None)
            )
            append_events(connection, experiment, [("progress", {"task": task, "withdrawn": True})])

    def withdraw(self, experiment: str) -> list[str]:
        """Take tasks that nobody has begun out of the queue; returns their jobs."""
        queued = (tasks.c.experiment == experiment, tasks.c.state == "queued")
        with self._database.write() as connection:
            found = connection.execute(sa.select(tasks.c.task, tasks.c.issue).where(*queued)).all()
            connection.execute(tasks.update().where(*queued).values(state="withdrawn"))
        return [task_job(experiment, row.task, row.issue) for row in found]

    def revoke(self, experiment: str) -> None:
        """Take running tasks away from workers that are gone, or do not answer."""
        with self._database.write() as connection:
            connection.execute(
                tasks.update()
                .where(tasks.c.experiment == experiment, tasks.c.state.in_(("queued", "running")))
                .values(state="withdrawn", owner=None)
            )

    def withdraw_lost(self, experiment: str, ids: Sequence[str]) -> None:
        """Tasks whose jobs are gone can be issued again."""
        with self._database.write() as connection:
            connection.execute(
                tasks.update()
                .where(
                    tasks.c.experiment == experiment, tasks.c.task.in_(ids), tasks.c.state.in_(("queued", "running"))
                )
                .values(state="withdrawn", owner=None)
            )

    def under_way(self, experiment: str) -> dict[str, ActiveTask]:
        """Tasks that are queued or running."""
        chosen = sa.select(tasks.c.task, tasks.c.state, tasks.c.share, tasks.c.owner, tasks.c.issue)
        with self._database.read() as connection:
            rows = connection.execute(
                chosen.where(tasks.c.experiment == experiment, tasks.c.state.in_(("queued", "running")))
            ).all()
        return {
            row.task: ActiveTask(
                row.state == "running", row.share, row.owner, task_job(experiment, row.task, row.issue)
            )
            for row in rows
        }

    def ended(self, experiment: str) -> list[EndedTask]:
        """Tasks whose end the writer of the landscape has not dealt with yet, and those that failed."""
        chosen = sa.select(tasks.c.task, tasks.c.result, tasks.c.error)
        with self._database.read() as connection:
            rows = connection.execute(
                chosen.where(tasks.c.experiment == experiment, tasks.c.state.in_(("done", "failed")))
            ).all()
        return [EndedTask(row.task, row.result, row.error) for row in rows]

    def keep(self, experiment: str, ids: Sequence[str]) -> None:
        """These results are in a snapshot: their payload are not needed any more."""
        with self._database.write() as connection:
            connection.execute(
                tasks.update()
                .where(tasks.c.experiment == experiment, tasks.c.task.in_(ids), tasks.c.state == "done")
                .values(state="kept", result=None)
            )

    def reset_for_retry(self, connection: sa.Connection, experiment: str) -> None:
        """For another run: what failed or was withdrawn is as if it had never been tried."""
        settled = tasks.c.state.in_(("failed", "withdrawn", "queued", "running"))
        connection.execute(
            tasks.update()
            .where(tasks.c.experiment == experiment, settled)
            .values(state="withdrawn", owner=None, deaths=0, error=None)
        )

    def queue(self, limit: int = 1000) -> list[QueueRow]:
        """Waiting tasks in the order in which workers take them."""
        chosen = sa.select(tasks).where(tasks.c.state == "queued").order_by(tasks.c.priority, tasks.c.queued)
        with self._database.read() as connection:
            rows = connection.execute(chosen.limit(limit)).all()
        return [
            QueueRow(row.experiment, row.task, row.priority, datetime.fromtimestamp(row.queued, UTC)) for row in rows
        ]

    def waiting(self) -> int:
        """How many tasks wait."""
        chosen = sa.select(sa.func.count()).select_from(tasks).where(tasks.c.state == "queued")
        with self._database.read() as connection:
            return int(connection.execute(chosen).scalar_one())

    @staticmethod
    def _count_death(connection: sa.Connection, row: Any) -> int:
        further = row.share > row.death_share + _FURTHER
        deaths = 1 if further else row.deaths + 1
        connection.execute(
            tasks.update()
            .where(*_is(row.experiment, row.task))
            .values(deaths=deaths, death_share=max(row.share, row.death_share))
        )
        return int(deaths)

    @staticmethod
    def _fail(connection: sa.Connection, row: Any, reason: str) -> None:
        connection.execute(
            tasks.update().where(*_is(row.experiment, row.task)).values(state="failed", owner=None, error=reason)
        )
        append_events(connection, row.experiment, [("error", {"task": row.task, "message": reason})])


def _killed_too_many(how: str) -> str:
    return f"{how} {MAX_CRASHES} times without getting further; out of memory?"


def _is(experiment: str, task: str) -> tuple[sa.ColumnElement[bool], ...]:
    return tasks.c.experiment == experiment, tasks.c.task == task


def _held(connection: sa.Connection, experiment: str, task: str, worker: str) -> sa.Row[Any] | None:
    """The row of a task that a worker has, locked until the end of the transaction; None if it is no longer its."""
    return connection.execute(sa.select(tasks).where(*_owned(experiment, task, worker)).with_for_update()).one_or_none()


def _owned(experiment: str, task: str, worker: str) -> tuple[sa.ColumnElement[bool], ...]:
    return *_is(experiment, task), tasks.c.owner == worker, tasks.c.state == "running"
