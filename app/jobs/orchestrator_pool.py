"""The orchestrators of an API process: one for each experiment that it runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from valleyscope.app.experiments.report_renderer import ReportRenderer
from valleyscope.app.jobs.orchestrator import OrchestratorContext, orchestrate
from valleyscope.app.jobs.process_registry import ProcessEntry, process_ids
from valleyscope.app.jobs.queue import CONTROL, ORCHESTRATED_AT_ONCE, JobQueue, experiment_job, orchestrated_at_once
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.periodic_thread import PeriodicThread
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_feed import EventFeed
from valleyscope.app.storage.experiment_table import ACTIVE, ExperimentTable
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.tables import experiments

log = logging.getLogger(__name__)

DEFAULT_PRIORITY = 100
_STOP_SECONDS = 10.0
_LIMITS_SECONDS = 5.0
_HEARTBEAT_SECONDS = 10.0
_UNSTARTED_SECONDS = 15.0


class OrchestratorPool:
    """Runs experiments of the queue `control` until it is stopped."""

    def __init__(
        self,
        database: Database,
        experiment_table: ExperimentTable,
        task_table: TaskTable,
        event_feed: EventFeed,
        process: ProcessEntry,
        directory: Callable[[str], Path],
        store: FileStore,
        on_end: Callable[[str], None],
    ) -> None:
        self.jobs = JobQueue(database, process.id, CONTROL, self._orchestrate)
        self.stopping = threading.Event()
        self._database = database
        self._context = OrchestratorContext(
            database=database,
            experiment_table=experiment_table,
            task_table=task_table,
            jobs=self.jobs,
            event_feed=event_feed,
            process=process,
            orchestrated=lambda: len(self._orchestrating),
            directory=directory,
            store=store,
            stopping=self.stopping,
            report_renderer=ReportRenderer(),
            on_end=on_end,
        )
        self._lock = threading.Lock()
        self._orchestrating: dict[str, str] = {}
        self._threads = [
            PeriodicThread("queue limits", _LIMITS_SECONDS, self.update_limits),
            PeriodicThread("heartbeat", _HEARTBEAT_SECONDS, process.heartbeat),
            PeriodicThread("unstarted jobs", _UNSTARTED_SECONDS, self.jobs.requeue_unstarted),
        ]

    @property
    def experiments(self) -> set[str]:
        """Those that this process orchestrates now."""
        with self._lock:
            return set(self._orchestrating.values())

    def start_threads(self) -> None:
        """Call it once the job queue has started."""
        for thread in self._threads:
            thread.start()

    def drain(self) -> None:
        """Requeue what runs here, and wait until that is done."""
        self.stopping.set()
        deadline = time.monotonic() + _STOP_SECONDS
        while self._orchestrating and time.monotonic() < deadline:
            time.sleep(0.02)
        for thread in self._threads:
            thread.stop()
        self._context.report_renderer.close()

    def update_limits(self) -> None:
        """Adapt polling and concurrency to the number of workers; urgent experiments have room of their own."""
        row = experiments.c
        urgent = sa.select(sa.func.count()).where(
            row.deleted.is_(False), row.state.in_(ACTIVE), row.priority < DEFAULT_PRIORITY
        )
        with self._database.read() as connection:
            workers = len(process_ids(connection, "worker"))
            extra = min(ORCHESTRATED_AT_ONCE, connection.execute(urgent).scalar_one())
        self.jobs.set_limits(
            busy=bool(self._orchestrating),
            workers=workers,
            orchestrated=orchestrated_at_once(workers) + extra,
        )

    def _orchestrate(self, experiment: str, run: int) -> None:
        job = experiment_job(experiment, run)
        with self._lock:
            first = not self._orchestrating
            self._orchestrating[job] = experiment
        try:
            if first:
                self.try_update_limits()
            orchestrate(self._context, experiment, run)
        finally:
            with self._lock:
                self._orchestrating.pop(job, None)
                last = not self._orchestrating
            if last and not self.stopping.is_set():
                self.try_update_limits()

    def try_update_limits(self) -> None:
        try:
            self.update_limits()
        except Exception as error:  # tasks start later than they could
            log.warning("the limits of the queues could not be set: %s", error)
