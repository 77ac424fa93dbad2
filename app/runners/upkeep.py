"""Upkeep of a service: what was interrupted is brought to its end, and what nobody needs any more is removed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from app.runners.jobs import Jobs, experiment_job, task_job
from app.storage.catalogue import ACTIVE, Catalogue
from app.storage.database import Database
from app.storage.events import forget_old, thin_out
from app.storage.folders import Storage
from app.storage.objects import StoreTrouble
from app.storage.obstacles import reason
from app.storage.store import Store
from app.storage.tables import events, experiments, hands, tasks

log = logging.getLogger(__name__)

_ROUND_SECONDS = 20.0
_SETTLE_SECONDS = 10.0
_STOP_PATIENCE = 5.0
_HOUR = 3600.0
KEEP_EVENTS_DAYS = 7
KEEP_REPORTS = 600


class Upkeep:
    """A thread that goes round now and then; the first round is made before anything else happens."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        jobs: Jobs,
        storage: Storage,
        store: Store,
        conducting: Callable[[], set[str]],
        chores: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._jobs = jobs
        self._storage = storage
        self._store = store
        self._conducting = conducting
        self._chores = chores
        self._suspected: set[str] = set()
        self._forgot: float | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        try:
            self.finish_deletions()
        except (SQLAlchemyError, OSError) as error:
            log.warning("deletions cannot be finished, and will be tried again: %s", reason(error))
        self.revive(at_once=True)
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
        except StoreTrouble as error:
            log.warning("the deletion is finished later: %s", error, extra={"experiment": experiment})
            return
        self._jobs.forget_experiment(experiment)
        with self._database.write() as connection:
            connection.execute(tasks.delete().where(tasks.c.experiment == experiment))
            connection.execute(hands.delete().where(hands.c.experiment == experiment))
            connection.execute(events.delete().where(events.c.experiment == experiment))
            connection.execute(experiments.delete().where(experiments.c.id == experiment))

    def finish_deletions(self) -> None:
        with self._database.read() as connection:
            doomed = connection.execute(sa.select(experiments.c.id).where(experiments.c.deleted.is_(True))).scalars()
            found = list(doomed)
        for experiment in found:
            self.remove(experiment)

    def revive(self, *, at_once: bool = False) -> None:
        """Put experiments back into the queue that should run and have no job.

        Their submission was interrupted, or their job was one of an older program.
        """
        dropped = self._jobs.drop_older()
        with self._database.read() as connection:
            rows = {experiment_job(row.id, row.run): row for row in self._catalogue.active(connection)}
        idle = [job for job, row in rows.items() if row.id not in self._conducting()]
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
            active = [row.id for row in self._catalogue.active(connection) if row.state == "running"]
        for experiment in active:
            with self._database.write() as connection:
                thin_out(connection, experiment, keep=KEEP_REPORTS)

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
                forget_old(connection, [experiment])

    def _run(self) -> None:
        while not self._stopping.wait(_ROUND_SECONDS):
            try:
                self.finish_deletions()
                self.revive()
                self.clear_ended()
                self.forget_reports()
                self.forget_events()
                for chore in self._chores:
                    chore()
            except (SQLAlchemyError, OSError) as error:
                log.warning("upkeep failed, and will be tried again: %s", reason(error))
