"""Tasks as tests look at them: jobs of DBOS together with our attempts and results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import sqlalchemy as sa

from valleyscope.app.jobs.queue import GPU, Job, JobQueue
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.tables import task_attempts, task_results


@dataclass
class TaskView:
    """`saved`: its result is in a snapshot. `worker` is the process that runs it."""

    experiment: str
    task: str
    run: int
    state: Literal["queued", "running", "done", "failed", "saved", "gone"] = "gone"
    worker: str | None = None
    attempts: int = 0
    crashes: int = 0
    share: float = 0.0
    started: float = field(default=0.0)
    seconds: float | None = None


class TaskViews:
    """Reads the tasks of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs = JobQueue(database, "test", GPU, print)
        self._jobs.connect()

    def running(self) -> list[Job]:
        return self._jobs.running_tasks()

    def find(self, experiment: str | None = None) -> dict[tuple[str, str], TaskView]:
        """The tasks of the latest run of an experiment, or of all, by experiment and task."""
        jobs = [*self._jobs.queued_tasks(), *self._jobs.running_tasks()]
        found: dict[tuple[str, str], TaskView] = {}

        def view(experiment: str, task: str, run: int) -> TaskView | None:
            known = found.get((experiment, task))
            if known is None or known.run < run:
                known = found[experiment, task] = TaskView(experiment, task, run)
            return known if known.run == run else None

        with self._database.read() as connection:
            attempts = connection.execute(sa.select(task_attempts)).all()
            results = connection.execute(sa.select(task_results)).all()
        for job in jobs:
            if job.task is not None and job.state != "ended" and (one := view(job.experiment, job.task, job.run)):
                one.state, one.worker = job.state, job.process
        for row in attempts:
            if one := view(row.experiment, row.task, row.run):
                one.attempts, one.crashes, one.share, one.started = row.attempts, row.crashes, row.share, row.started
        for row in results:
            if one := view(row.experiment, row.task, row.run):
                one.state = "failed" if row.error else "saved" if row.payload is None else "done"
                one.worker, one.seconds = None, row.seconds
        return {key: one for key, one in found.items() if experiment in (None, one.experiment)}
