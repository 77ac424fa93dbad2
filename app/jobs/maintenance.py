"""Maintenance: finish interrupted deletions, requeue orphaned experiments, delete rows that are not needed any more."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.jobs.queue import JobQueue, experiment_job
from valleyscope.app.periodic_thread import PeriodicThread
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.event_table import prune_old_events, prune_progress
from valleyscope.app.storage.experiment_table import ACTIVE, ExperimentTable
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.storage.tables import contributions, events, experiments, shares, task_attempts, task_results

log = logging.getLogger(__name__)

_ROUND_SECONDS = 20.0
_SETTLE_SECONDS = 10.0
_HOUR = 3600.0
KEEP_EVENTS_DAYS = 7
TRASH_SECONDS = 24 * _HOUR
KEEP_REPORTS = 600


class Maintenance(PeriodicThread):
    """Finishes what was interrupted and deletes what is not needed any more; the first round is part of `start`."""

    def __init__(
        self,
        database: Database,
        experiment_table: ExperimentTable,
        jobs: JobQueue,
        home: Home,
        store: FileStore,
        orchestrating: Callable[[], set[str]],
        extra_tasks: Sequence[Callable[[], None]] = (),
    ) -> None:
        super().__init__("maintenance", _ROUND_SECONDS, self.run_round)
        self._database = database
        self._experiment_table = experiment_table
        self._jobs = jobs
        self._home = home
        self._store = store
        self._orchestrating = orchestrating
        self._extra_tasks = extra_tasks
        self._suspected: set[str] = set()
        self._pruned: float | None = None

    def start(self) -> None:
        try:
            self.finish_deletions()
        except (SQLAlchemyError, OSError) as error:
            log.warning("deletions cannot be finished, and will be tried again: %s", short_message(error))
        self.requeue_orphaned(at_once=True)
        super().start()

    def run_round(self) -> None:
        self.finish_deletions()
        self.requeue_orphaned()
        self.delete_ended()
        self.prune_reports()
        self.prune_events()
        for task in self._extra_tasks:
            task()

    def remove(self, experiment: str) -> None:
        """Delete all of an experiment that is marked as deleted: files first, its row last.

        While the store is unavailable the row stays, and a later round continues.
        """
        self._home.remove_experiment(experiment)
        try:
            self._store.remove(experiment)
        except StoreUnavailable as error:
            log.warning("the deletion is finished later: %s", error, extra={"experiment": experiment})
            return
        self._jobs.delete_experiment(experiment)
        with self._database.write() as connection:
            for table in (task_attempts, task_results, contributions, events, shares):
                connection.execute(table.delete().where(table.c.experiment == experiment))
            connection.execute(experiments.delete().where(experiments.c.id == experiment))

    def finish_deletions(self) -> None:
        with self._database.write() as connection:
            self._experiment_table.empty_trash(connection, seconds=TRASH_SECONDS)
        with self._database.read() as connection:
            doomed = connection.execute(sa.select(experiments.c.id).where(experiments.c.deleted.is_(True))).scalars()
            found = list(doomed)
        for experiment in found:
            self.remove(experiment)

    def requeue_orphaned(self, *, at_once: bool = False) -> None:
        """Enqueue experiments that should run and have no job, because theirs was one of an older generation.

        Two rounds must find them so, unless `at_once`.
        """
        dropped = self._jobs.drop_older()
        with self._database.read() as connection:
            rows = {experiment_job(row.id, row.run): row for row in self._experiment_table.active(connection)}
        alive = {id for id, job in self._jobs.find(rows).items() if job.state != "ended"}
        lost = {id for id, row in rows.items() if id not in alive and row.id not in self._orchestrating()}
        for id in lost if at_once else lost & (self._suspected | dropped):
            row = rows[id]
            log.warning("the experiment had no job and is enqueued again", extra={"experiment": row.id})
            self._jobs.delete([id])
            with self._database.write() as connection:
                self._jobs.enqueue_experiment(connection, row.id, row.run, row.priority)
        self._suspected = set() if at_once else lost - self._suspected

    def delete_ended(self) -> None:
        """Delete jobs that ended, and attempts and results of experiments that ended: landscape.h5 has those.

        Results that no snapshot has stay for the next run.
        """
        self._jobs.delete_ended()
        settled = experiments.c.finished < time.time() - _SETTLE_SECONDS
        ended = sa.select(experiments.c.id).where(experiments.c.state.not_in(ACTIVE), settled)
        with self._database.write() as connection:
            connection.execute(task_attempts.delete().where(task_attempts.c.experiment.in_(ended)))
            connection.execute(
                task_results.delete().where(task_results.c.experiment.in_(ended), task_results.c.payload.is_(None))
            )

    def prune_reports(self) -> None:
        """Keep only the latest progress reports: an experiment may run for days, and reports every second."""
        with self._database.read() as connection:
            active = [row.id for row in self._experiment_table.active(connection) if row.state == "running"]
        for experiment in active:
            with self._database.write() as connection:
                prune_progress(connection, experiment, keep=KEEP_REPORTS)

    def prune_events(self) -> None:
        """Once an hour: delete values and metrics of experiments that ended long ago."""
        if self._pruned is not None and time.monotonic() - self._pruned < _HOUR:
            return
        self._pruned = time.monotonic()
        old = time.time() - KEEP_EVENTS_DAYS * 24 * _HOUR
        chosen = sa.select(experiments.c.id).where(experiments.c.state.not_in(ACTIVE), experiments.c.finished < old)
        with self._database.read() as connection:
            found = list(connection.execute(chosen).scalars())
        for experiment in found:
            with self._database.write() as connection:
                prune_old_events(connection, [experiment])
