"""The service as its API sees it: submit experiments, watch them, cancel, retry and delete them. Torch-free."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_files import is_written_by_orchestrator
from valleyscope.app.jobs.maintenance import Maintenance
from valleyscope.app.jobs.orchestrator_pool import DEFAULT_PRIORITY, OrchestratorPool
from valleyscope.app.jobs.process_registry import ProcessEntry, WorkerRow, worker_rows
from valleyscope.app.jobs.queue import LARGEST_PRIORITY, Job, experiment_job
from valleyscope.app.jobs.reaper import Reaper
from valleyscope.app.jobs.task_table import Contribution, TaskTable, contributions_of
from valleyscope.app.settings import Settings
from valleyscope.app.storage.checkpoint_table import CheckpointRow, CheckpointTable
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.event_feed import EventFeed
from valleyscope.app.storage.event_table import EventRow, MinimumWarning, read_events, warnings_of
from valleyscope.app.storage.experiment_table import (
    ACTIVE,
    ExperimentRow,
    ExperimentState,
    ExperimentTable,
    Page,
    WrongState,
)
from valleyscope.app.storage.file_store import open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.storage.orphans import Orphans
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape, NotALandscape

log = logging.getLogger(__name__)

Events = list[EventRow]
Workers = list[WorkerRow]
Queue = list[Job]
Hands = list[Contribution]
Warnings = list[MinimumWarning]
Uploads = list[CheckpointRow]

_FETCH_SECONDS = 5.0


class Service:
    """Opened once in the API process: conducts experiments, and answers whoever asks about them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._storage = Home(settings.home)
        self.store = open_store(settings.store, self._storage)
        self._database = Database(settings.database)
        self._experiment_table = ExperimentTable(self._database)
        self._task_table = TaskTable(self._database)
        self._checkpoints = CheckpointTable(self._database, self._storage, self.store)
        self.identity = HomeIdentity(self._database, self.store)

    def start(self) -> None:
        """Take part in the work. Raises what makes that impossible: a folder or a database that cannot be written."""
        self._storage.prepare()
        try:
            self.store.probe()
            reachable = True
        except StoreUnavailable as error:
            log.error("%s; trying again until it does", error)
            reachable = False
        with self._database.exclusive("start"):
            migrate(self._database)
            if reachable:
                self.identity.establish()
            self._member = ProcessEntry(self._database, "api", lease_seconds=self._settings.lease_seconds)
            self._event_feed = EventFeed(self._database)
            self.orchestrator_pool = OrchestratorPool(
                self._database,
                self._experiment_table,
                self._task_table,
                self._event_feed,
                self._member,
                self._storage.experiment,
                self.store,
            )
            jobs = self.orchestrator_pool.jobs
            jobs.start()
        self._event_feed.start()
        self._reaper = Reaper(self._database, jobs, self._member)
        self._reaper.start()
        self._maintenance = Maintenance(
            self._database,
            self._experiment_table,
            jobs,
            self._storage,
            self.store,
            lambda: self.orchestrator_pool.experiments,
            (self.identity.establish_late, Orphans(self._checkpoints, self._storage, self.identity).look),
        )
        self._maintenance.start()
        self.orchestrator_pool.start_threads()

    def stop(self) -> None:
        """Hand back what is orchestrated here, and leave; workers go on with the tasks that they have."""
        self.orchestrator_pool.drain()
        self._maintenance.stop()
        self._reaper.stop()
        self._event_feed.stop()
        self.orchestrator_pool.jobs.stop()
        self._member.leave(self.orchestrator_pool.stopping)
        self._database.close()

    def check(self) -> None:
        """Raise unless the database answers."""
        with self._database.read() as connection:
            connection.execute(sa.text("SELECT 1"))

    def submit(self, spec: Spec, *, key: str | None = None, priority: int = DEFAULT_PRIORITY) -> ExperimentRow:
        """Enter an experiment and start it as soon as there is room. The same key and spec give the same experiment.

        A lower `priority` goes first; among equals, the one that was submitted first.
        """
        if not 0 <= priority <= LARGEST_PRIORITY:
            raise ValueError(f"priority={priority} must be from 0 to {LARGEST_PRIORITY}")
        try:
            return self._submit(spec, key, priority)
        except IntegrityError:
            if key is None:
                raise
            return self._submit(spec, key, priority)  # somebody else was faster with the same key

    def submitted(self, key: str, spec: Spec) -> ExperimentRow | None:
        """The experiment that was submitted with this key; raises KeyReused where that had another spec."""
        with self._database.read() as connection:
            return self._experiment_table.known_by_key(connection, key, spec)

    def get(self, experiment: str) -> ExperimentRow:
        return self._experiment_table.get(experiment)

    def list(
        self,
        *,
        state: ExperimentState | None = None,
        search: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> Page:
        return self._experiment_table.list(state=state, search=search, after=after, limit=limit)

    def count(self) -> dict[ExperimentState, int]:
        """How many experiments are in each state."""
        return self._experiment_table.count()

    def cancel(self, experiment: str) -> ExperimentRow:
        """Stop an experiment: at once where nothing has begun, else within two seconds. What it computed stays."""
        row = self.get(experiment)
        job = experiment_job(row.id, row.run)
        dropped = row.state in ACTIVE and self.orchestrator_pool.jobs.cancel_queued([job])
        with self._database.write(durable=True) as connection:
            row = self._experiment_table.find(connection, experiment, change=True)
            if row.state not in ACTIVE:
                raise WrongState(f"experiment {experiment} is {row.state}: only one that is queued or running can stop")
            if dropped:
                self._experiment_table.end(connection, experiment, "cancelled")
            else:
                self._experiment_table.cancel(connection, experiment)
            return self._experiment_table.find(connection, experiment)

    def retry(self, experiment: str) -> ExperimentRow:
        """Run an experiment again that failed, was cancelled, or lost files; it goes on from what it has."""
        with self._database.write(durable=True) as connection:
            row = self._experiment_table.find(connection, experiment, change=True)
            if row.state in ACTIVE or (row.state == "done" and self._intact(row)):
                raise WrongState(
                    f"experiment {experiment} is {row.state}: retry is for those that ended early or lost files"
                )
            row = self._experiment_table.begin_again(connection, experiment)
            self.orchestrator_pool.jobs.enqueue_experiment(connection, row.id, row.run, row.priority)
            return row

    def delete(self, experiment: str) -> None:
        """Remove an experiment with all its files; refused while it runs.

        Files that the disk does not let go are out of sight, and removed as soon as it does.
        """
        with self._database.write(durable=True) as connection:
            row = self._experiment_table.find(connection, experiment, change=True)
            if row.state in ACTIVE:
                raise WrongState(f"experiment {experiment} is {row.state}: cancel it first")
            self._experiment_table.mark_deleted(connection, experiment)
        try:
            self._maintenance.remove(experiment)
        except (OSError, SQLAlchemyError) as error:
            log.warning("deleting is put off: %s", short_message(error), extra={"experiment": experiment})

    def events(self, experiment: str, after: int = 0, limit: int = 1000) -> Events:
        """Events with ids above `after`, in order."""
        self.get(experiment)
        return self._event_feed.after(experiment, after, limit)

    def stored_events(self, experiment: str, after: int, limit: int = 1000) -> Events:
        """The same from the database itself: also those that the poller has not seen yet."""
        with self._database.read() as connection:
            return read_events(connection, experiment, after, limit)

    def wait_for_event(self, experiment: str, after: int, timeout: float, limit: int = 1000) -> Events:
        """The same, waiting for the first one; none when the time is up."""
        return self._event_feed.wait(experiment, after, timeout, limit)

    async def next_events(self, experiment: str, after: int, timeout: float, limit: int = 1000) -> Events:
        """The same in an event loop: one poller serves all who wait."""
        return await self._event_feed.wait_async(experiment, after, timeout, limit)

    def observe(self, listener: Callable[[EventRow], None]) -> None:
        """Call a function with every event of every experiment from now on; it must be quick."""
        self._event_feed.listeners.append(listener)

    def workers(self) -> Workers:
        running = self.orchestrator_pool.jobs.running_tasks()
        with self._database.read() as connection:
            return worker_rows(connection, running)

    def queue(self, limit: int = 1000) -> Queue:
        """Tasks that wait for a worker, the next one first."""
        return self.orchestrator_pool.jobs.queued_tasks()[:limit]

    def waiting(self) -> int:
        """How many tasks wait for a worker."""
        return len(self.orchestrator_pool.jobs.queued_tasks())

    def contributions(self, experiment: str) -> Hands:
        """The workers that took part in an experiment."""
        with self._database.read() as connection:
            return contributions_of(connection, experiment)

    def warnings(self, experiment: str) -> Warnings:
        """What people should know of an experiment, also when it has ended."""
        with self._database.read() as connection:
            return warnings_of(connection, experiment)

    def directory(self, experiment: str) -> Path:
        """The folder of an experiment; it exists once the experiment has begun."""
        return self._storage.experiment(experiment)

    def located(self, row: ExperimentRow, name: str) -> Path:
        """Where a file of an experiment is, or would be; it is copied from the store where that has a newer one.

        A file that is here is good enough while the store cannot be asked.
        """
        path = self.directory(row.id) / name
        if not self.store.remote or (row.id in self.orchestrator_pool.experiments and is_written_by_orchestrator(name)):
            return path
        if row.state == "done" and path.is_file():
            return path  # nothing changes any more
        try:
            self.store.fetch(row.id, name, age=_FETCH_SECONDS)
        except StoreUnavailable:
            if not path.is_file():
                raise
        return path

    def files(self, row: ExperimentRow) -> dict[str, int]:
        """The files of an experiment, here and in the store, with their sizes."""
        directory = self.directory(row.id)
        here = {path.name: path.stat().st_size for path in directory.glob("*") if path.is_file()}
        return self.store.names(row.id) | here

    def add_checkpoint(
        self, source: Path, *, name: str, model: dict[str, Any], dataset: str, sha256: str
    ) -> CheckpointRow:
        """Take over an uploaded file that was checked already; it is moved into the home."""
        return self._checkpoints.add(source, name=name, model=model, dataset=dataset, sha256=sha256)

    def checkpoints(self) -> Uploads:
        return self._checkpoints.list()

    def checkpoint(self, identifier: str) -> CheckpointRow:
        return self._checkpoints.get(identifier)

    def checkpoint_file(self, identifier: str) -> Path:
        path = self._storage.checkpoint(self._checkpoints.get(identifier).id)
        self.store.fetch_checkpoint(identifier)
        return path

    def remove_checkpoint(self, identifier: str) -> None:
        self._checkpoints.remove(identifier)

    def _submit(self, spec: Spec, key: str | None, priority: int) -> ExperimentRow:
        with self._database.write(durable=True) as connection:
            if key is not None:
                known = self._experiment_table.known_by_key(connection, key, spec)
                if known is not None:
                    return known
            self._checkpoints.require(connection, spec)
            row = self._experiment_table.add(connection, spec, key=key, priority=priority)
            self.orchestrator_pool.jobs.enqueue_experiment(connection, row.id, row.run, priority)
        if priority < DEFAULT_PRIORITY:
            self.orchestrator_pool.try_update_limits()
        return row

    def _intact(self, row: ExperimentRow) -> bool:
        """Whether the files of an experiment that is done are all there, and its landscape can be read."""
        path = self.located(row, LANDSCAPE)
        try:
            Landscape.open(path)
        except (OSError, DamagedLandscape, NotALandscape):
            return False
        return {f"{name}.safetensors" for name in row.spec["minima"]} <= self.files(row).keys()
