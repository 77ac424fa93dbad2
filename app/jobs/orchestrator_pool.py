"""The orchestrator_pool: the experiments that this process conducts, the room for more, and the pace of the workers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.experiments.report_renderer import ReportRenderer
from valleyscope.app.jobs.orchestrator import OrchestratorContext, orchestrate
from valleyscope.app.jobs.process_registry import ProcessEntry, process_ids
from valleyscope.app.jobs.queue import CONTROL, ORCHESTRATED_AT_ONCE, JobQueue, experiment_job, orchestrated_at_once
from valleyscope.app.jobs.reaper import UnstartedJobs
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.event_feed import EventFeed
from valleyscope.app.storage.experiment_table import ExperimentRow, ExperimentTable
from valleyscope.app.storage.file_store import FileStore

log = logging.getLogger(__name__)

DEFAULT_PRIORITY = 100
_STOP_PATIENCE = 10.0
_HEARTBEAT_SECONDS = 10.0
_PACE_SECONDS = 5.0


class OrchestratorPool:
    """Conducts experiments for one member of the service until it is told to stop."""

    def __init__(
        self,
        database: Database,
        experiment_table: ExperimentTable,
        task_table: TaskTable,
        event_feed: EventFeed,
        member: ProcessEntry,
        directory: Callable[[str], Path],
        store: FileStore,
    ) -> None:
        self.jobs = JobQueue(database, member.id, CONTROL, self._orchestrate, self._room_in_all)
        self.stopping = threading.Event()
        self._database = database
        self._member = member
        self._stage = OrchestratorContext(
            database=database,
            experiment_table=experiment_table,
            task_table=task_table,
            jobs=self.jobs,
            event_feed=event_feed,
            process=member.id,
            orchestrated=lambda: len(self._orchestrating),
            directory=directory,
            store=store,
            stopping=self.stopping,
            call_workers=self._call_workers,
            report_renderer=ReportRenderer(),
        )
        self._wake_workers: Callable[[], None] = lambda: None
        self._local_workers: Callable[[], int] = lambda: 0
        self._lock = threading.Lock()
        self._orchestrating: dict[str, str] = {}
        self._starting = 0
        self._most = ORCHESTRATED_AT_ONCE
        self._watchman = threading.Thread(target=self._watch, name="watchman", daemon=True)

    @property
    def experiments(self) -> set[str]:
        """Those that are orchestrated here now."""
        with self._lock:
            return set(self._orchestrating.values())

    def watch(self) -> None:
        """Look after jobs and workers from now on. The jobs must have been started."""
        self._watchman.start()

    def clear(self) -> None:
        """Hand back what is orchestrated here, and wait until that is done."""
        self.stopping.set()
        deadline = time.monotonic() + _STOP_PATIENCE
        while self._orchestrating and time.monotonic() < deadline:
            time.sleep(0.02)
        self._watchman.join(_STOP_PATIENCE)
        self._stage.report_renderer.close()

    def set_local_workers(self, wake_workers: Callable[[], None], count: Callable[[], int]) -> None:
        """Wake the workers of this host whenever tasks are enqueued."""
        self._wake_workers, self._local_workers = wake_workers, count

    @contextmanager
    def room(self, priority: int) -> Iterator[bool]:
        """Keep room for one more experiment here and now, if there is; some is left for the urgent ones."""
        with self._lock:
            most = self._most + (ORCHESTRATED_AT_ONCE if priority < DEFAULT_PRIORITY else 0)
            found = len(self._orchestrating) + self._starting < most and not self.stopping.is_set()
            self._starting += found
        try:
            yield found
        finally:
            with self._lock:
                self._starting -= found

    def _room_in_all(self) -> int:
        """How many experiments may be orchestrated here, those that came by the queue and those that were started."""
        return 0 if self.stopping.is_set() else self._most - self._starting

    def start(self, row: ExperimentRow) -> None:
        """Run an experiment that was entered; where that fails it is without a job, and the maintenance revives it."""
        try:
            self.jobs.start_experiment(row.id, row.run)
        except SQLAlchemyError as error:
            log.warning("starting is put off: %s", short_message(error), extra={"experiment": row.id})

    def _orchestrate(self, experiment: str, run: int) -> None:
        job = experiment_job(experiment, run)
        with self._lock:
            self._orchestrating[job] = experiment
            first = len(self._orchestrating) == 1
        try:
            if first:
                self._set_pace()
            orchestrate(self._stage, experiment, run)
        finally:
            with self._lock:
                del self._orchestrating[job]
                last = not self._orchestrating
            if last and not self.stopping.is_set():
                self._set_pace()

    def _call_workers(self) -> None:
        self._wake_workers()

    def _set_pace(self) -> None:
        try:
            with self._database.read() as connection:
                workers = len(process_ids(connection, "worker"))
            self._most = orchestrated_at_once(workers)
            called = self._database.sqlite and workers <= self._local_workers()
            self.jobs.pace(busy=bool(self._orchestrating), workers=workers, called=called)
        except Exception as error:  # only a matter of speed
            log.warning("the pace of workers could not be set: %s", error)

    def _watch(self) -> None:
        """Now and then: look for lost jobs, set the pace of the workers that there are, and say that one is here."""
        unstarted = UnstartedJobs(self.jobs, self._member.id, lambda: set(self._orchestrating))
        greeted = paced = time.monotonic()
        while not self.stopping.wait(1.0):
            unstarted.look()
            if time.monotonic() - paced > _PACE_SECONDS:
                paced = time.monotonic()
                self._set_pace()
            if time.monotonic() - greeted > _HEARTBEAT_SECONDS:
                greeted = time.monotonic()
                try:
                    self._member.heartbeat()
                except SQLAlchemyError as error:
                    log.warning("the database refuses: %s", short_message(error))
