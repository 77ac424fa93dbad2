"""Upkeep of a service: what was interrupted is brought to its end, and what nobody needs any more is removed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.jobs.queue import JobQueue, experiment_job, task_job
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.event_table import prune_old_events, prune_progress
from valleyscope.app.storage.experiment_table import ACTIVE, ExperimentTable
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.storage.tables import contributions, events, experiments, tasks

log = logging.getLogger(__name__)

_ROUND_SECONDS = 20.0
_SETTLE_SECONDS = 10.0
_STOP_PATIENCE = 5.0
_HOUR = 3600.0
KEEP_EVENTS_DAYS = 7
KEEP_REPORTS = 600


class Maintenance:
    """A thread that goes round now and then; the first round is made before anything else happens."""

    def __init__(
        self,
        database: Database,
        experiment_table: ExperimentTable,
        jobs: JobQueue,
        storage: Home,
        store: FileStore,
        orchestrating: Callable[[], set[str]],
        extra_tasks: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._database = database
        self._experiment_table = experiment_table
        self._jobs = jobs
        self._storage = storage
        self._store = store
        self._orchestrating = orchestrating
        self._extra_tasks = extra_tasks
        self._suspected: set[str] = set()
        self._forgot: float | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        try:
            self.finish_deletions()
        except (SQLAlchemyError, OSError) as error:
            log.warning("deletions cannot be finished, and will be tried again: %s", short_message(error))
        self.requeue_orphaned(at_once=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_STOP_PATIENCE)

    def remove(self, experiment: str) -> None:
        """Remove all traces of an experiment that is marked as deleted: files first, its row last.

        While the store refuses, the row stays as a reminder: a later round goes on.
        """
        self._storage.remove_experiment(experiment)
        try:
            self._store.remove(experiment)
        except StoreUnavailable as error:
            log.warning("the deletion is finished later: %s", error, extra={"experiment": experiment})
            return
        self._jobs.forget_experiment(experiment)
        with self._database.write() as connection:
            connection.execute(tasks.delete().where(tasks.c.experiment == experiment))
            connection.execute(contributions.delete().where(contributions.c.experiment == experiment))
            connection.execute(events.delete().where(events.c.experiment == experiment))
            connection.execute(experiments.delete().where(experiments.c.id == experiment))

    def finish_deletions(self) -> None:
        with self._database.read() as connection:
            doomed = connection.execute(sa.select(experiments.c.id).where(experiments.c.deleted.is_(True))).scalars()
            found = list(doomed)
        for experiment in found:
            self.remove(experiment)

    def requeue_orphaned(self, *, at_once: bool = False) -> None:
        """Put experiments back into the queue that should run and have no job.

        Their submission was interrupted, or their job was one of an older program.
        """
        dropped = self._jobs.drop_older()
        with self._database.read() as connection:
            rows = {experiment_job(row.id, row.run): row for row in self._experiment_table.active(connection)}
        idle = [job for job, row in rows.items() if row.id not in self._orchestrating()]
        lost = self._jobs.lost(idle)
        for job in lost if at_once else lost & (self._suspected | dropped):
            row = rows[job]
            log.warning("an experiment had no job; it is back in the queue", extra={"experiment": row.id})
            self._jobs.forget([job])
            with self._database.write() as connection:
                self._jobs.enqueue_experiment(connection, row.id, row.run, row.priority)
        self._suspected = set() if at_once else lost - self._suspected

    def clear_ended(self) -> None:
        """Remove tasks and jobs of experiments that ended: what they found is in landscape.h5.

        Results that no snapshot has yet stay for the next run.
        """
        ended = sa.and_(experiments.c.state.not_in(ACTIVE), experiments.c.finished < time.time() - _SETTLE_SECONDS)
        over = tasks.c.state != "done"
        chosen = sa.select(tasks.c.experiment, tasks.c.task, tasks.c.issue).where(over)
        chosen = chosen.join(experiments, experiments.c.id == tasks.c.experiment).where(ended)
        with self._database.read() as connection:
            rows = connection.execute(chosen.limit(20_000)).all()
        self._jobs.forget([task_job(row.experiment, row.task, n) for row in rows for n in range(1, row.issue + 1)])
        for experiment in {row.experiment for row in rows}:
            still = sa.exists().where(experiments.c.id == experiment, ended)
            with self._database.write() as connection:
                connection.execute(tasks.delete().where(tasks.c.experiment == experiment, over, still))

    def forget_reports(self) -> None:
        """An experiment may run for days, and report each second: only the latest reports stay."""
        with self._database.read() as connection:
            active = [row.id for row in self._experiment_table.active(connection) if row.state == "running"]
        for experiment in active:
            with self._database.write() as connection:
                prune_progress(connection, experiment, keep=KEEP_REPORTS)

    def forget_events(self) -> None:
        """Once an hour: drop values and metrics of experiments that ended long ago."""
        if self._forgot is not None and time.monotonic() - self._forgot < _HOUR:
            return
        self._forgot = time.monotonic()
        old = time.time() - KEEP_EVENTS_DAYS * 24 * _HOUR
        chosen = sa.select(experiments.c.id).where(experiments.c.state.not_in(ACTIVE), experiments.c.finished < old)
        with self._database.read() as connection:
            found = list(connection.execute(chosen).scalars())
        for experiment in found:
            with self._database.write() as connection:
                prune_old_events(connection, [experiment])

    def _run(self) -> None:
        while not self._stopping.wait(_ROUND_SECONDS):
            try:
                self.finish_deletions()
                self.requeue_orphaned()
                self.clear_ended()
                self.forget_reports()
                self.forget_events()
                for chore in self._extra_tasks:
                    chore()
            except (SQLAlchemyError, OSError) as error:
                log.warning("maintenance failed, and will be tried again: %s", short_message(error))
