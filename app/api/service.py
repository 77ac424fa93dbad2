"""The service as its API sees it: submit experiments, watch them, cancel, retry and delete them. Torch-free."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from app.experiments.artefacts import is_keepers
from app.experiments.experiment import LANDSCAPE
from app.experiments.spec import Spec
from app.runners.jobs import LARGEST_PRIORITY
from app.runners.podium import DEFAULT_PRIORITY, Podium
from app.runners.reaper import Reaper
from app.runners.roster import Member, WorkerRow, worker_rows
from app.runners.upkeep import Upkeep
from app.settings import Settings
from app.storage.catalogue import ACTIVE, Catalogue, ExperimentRow, Page, State, WrongState
from app.storage.checkpoints import CheckpointRow, Checkpoints
from app.storage.database import Database
from app.storage.events import EventRow, Warned, read_events, warnings_of
from app.storage.folders import Storage
from app.storage.hands import Hand, hands_of
from app.storage.identity import Identity
from app.storage.ledger import Ledger, QueueRow
from app.storage.migrations import migrate
from app.storage.objects import StoreTrouble
from app.storage.obstacles import reason
from app.storage.orphans import Orphans
from app.storage.pump import Pump
from app.storage.store import open_store
from landscape.store import DamagedLandscape, Landscape, NotALandscape

log = logging.getLogger(__name__)

Events = list[EventRow]
Workers = list[WorkerRow]
Queue = list[QueueRow]
Hands = list[Hand]
Warnings = list[Warned]
Uploads = list[CheckpointRow]

_FETCH_SECONDS = 5.0


class Service:
    """Opened once in the API process: conducts experiments, and answers whoever asks about them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._storage = Storage(settings.home)
        self.store = open_store(settings.store, self._storage)
        self._database = Database(settings.database)
        self._catalogue = Catalogue(self._database)
        self._ledger = Ledger(self._database)
        self._checkpoints = Checkpoints(self._database, self._storage, self.store)
        self.identity = Identity(self._database, self.store)

    def start(self) -> None:
        """Take part in the work. Raises what makes that impossible: a folder or a database that cannot be written."""
        self._storage.prepare()
        try:
            self.store.probe()
            reachable = True
        except StoreTrouble as error:
            log.error("%s; trying again until it does", error)
            reachable = False
        with self._database.alone("start"):
            migrate(self._database)
            if reachable:
                self.identity.settle()
            self._member = Member(self._database, "api", lease_seconds=self._settings.lease_seconds)
            self._pump = Pump(self._database)
            self.podium = Podium(
                self._database,
                self._catalogue,
                self._ledger,
                self._pump,
                self._member,
                self._storage.experiment,
                self.store,
            )
            jobs = self.podium.jobs
            jobs.start()
        self._pump.start()
        self._reaper = Reaper(self._database, jobs, self._member)
        self._reaper.start()
        self._upkeep = Upkeep(
            self._database,
            self._catalogue,
            jobs,
            self._storage,
            self.store,
            lambda: self.podium.experiments,
            (self.identity.settle_late, Orphans(self._checkpoints, self._storage, self.identity).look),
        )
        self._upkeep.start()
        self.podium.watch()

    def stop(self) -> None:
        """Hand back what is conducted here, and leave; workers go on with the tasks that they have."""
        self.podium.clear()
        self._upkeep.stop()
        self._reaper.stop()
        self._pump.stop()
        self.podium.jobs.stop()
        self._member.leave(self.podium.stopping)
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
            return self._catalogue.known_by_key(connection, key, spec)

    def get(self, experiment: str) -> ExperimentRow:
        return self._catalogue.get(experiment)

    def list(
        self, *, state: State | None = None, search: str | None = None, after: str | None = None, limit: int = 50
    ) -> Page:
        return self._catalogue.list(state=state, search=search, after=after, limit=limit)

    def count(self) -> dict[State, int]:
        """How many experiments are in each state."""
        return self._catalogue.count()

    def cancel(self, experiment: str) -> ExperimentRow:
        """Stop an experiment: at once where nothing has begun, else within two seconds. What it computed stays."""
        with self._database.write(durable=True) as connection:
            row = self._catalogue.find(connection, experiment, change=True)
            if row.state not in ACTIVE:
                raise WrongState(f"experiment {experiment} is {row.state}: only one that is queued or running can stop")
            self._catalogue.cancel(connection, experiment)
            return self._catalogue.find(connection, experiment)

    def retry(self, experiment: str) -> ExperimentRow:
        """Run an experiment again that failed, was cancelled, or lost files; it goes on from what it has."""
        with self.podium.room(DEFAULT_PRIORITY) as direct:
            with self._database.write(durable=True) as connection:
                row = self._catalogue.find(connection, experiment, change=True)
                if row.state in ACTIVE or (row.state == "done" and self._intact(row)):
                    raise WrongState(
                        f"experiment {experiment} is {row.state}: retry is for those that ended early or lost files"
                    )
                self._ledger.forgive(connection, experiment)
                row = self._catalogue.begin_again(connection, experiment)
                if not direct:
                    self.podium.jobs.enqueue_experiment(connection, row.id, row.run, row.priority)
            if direct:
                self.podium.start(row)
            return row

    def delete(self, experiment: str) -> None:
        """Remove an experiment with all its files; refused while it runs.

        Files that the disk does not let go are out of sight, and removed as soon as it does.
        """
        with self._database.write(durable=True) as connection:
            row = self._catalogue.find(connection, experiment, change=True)
            if row.state in ACTIVE:
                raise WrongState(f"experiment {experiment} is {row.state}: cancel it first")
            self._catalogue.mark_deleted(connection, experiment)
        try:
            self._upkeep.remove(experiment)
        except (OSError, SQLAlchemyError) as error:
            log.warning("deleting is put off: %s", reason(error), extra={"experiment": experiment})

    def events(self, experiment: str, after: int = 0, limit: int = 1000) -> Events:
        """Events with ids above `after`, in order."""
        self.get(experiment)
        return self._pump.after(experiment, after, limit)

    def stored_events(self, experiment: str, after: int, limit: int = 1000) -> Events:
        """The same from the database itself: also those that the poller has not seen yet."""
        with self._database.read() as connection:
            return read_events(connection, experiment, after, limit)

    def wait_for_event(self, experiment: str, after: int, timeout: float, limit: int = 1000) -> Events:
        """The same, waiting for the first one; none when the time is up."""
        return self._pump.wait(experiment, after, timeout, limit)

    async def next_events(self, experiment: str, after: int, timeout: float, limit: int = 1000) -> Events:
        """The same in an event loop: one poller serves all who wait."""
        return await self._pump.wait_async(experiment, after, timeout, limit)

    def observe(self, listener: Callable[[EventRow], None]) -> None:
        """Call a function with every event of every experiment from now on; it must be quick."""
        self._pump.listeners.append(listener)

    def workers(self) -> Workers:
        with self._database.read() as connection:
            return worker_rows(connection)

    def queue(self, limit: int = 1000) -> Queue:
        """Tasks that wait for a worker, the next one first."""
        return self._ledger.queue(limit)

    def waiting(self) -> int:
        """How many tasks wait for a worker."""
        return self._ledger.waiting()

    def hands(self, experiment: str) -> Hands:
        """The workers that took part in an experiment."""
        with self._database.read() as connection:
            return hands_of(connection, experiment)

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
        if not self.store.remote or (row.id in self.podium.experiments and is_keepers(name)):
            return path
        if row.state == "done" and path.is_file():
            return path  # nothing changes any more
        try:
            self.store.fetch(row.id, name, age=_FETCH_SECONDS)
        except StoreTrouble:
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
        with self.podium.room(priority) as direct:
            with self._database.write(durable=True) as connection:
                if key is not None:
                    known = self._catalogue.known_by_key(connection, key, spec)
                    if known is not None:
                        return known
                self._checkpoints.require(connection, spec)
                row = self._catalogue.add(connection, spec, key=key, priority=priority)
                if not direct:
                    self.podium.jobs.enqueue_experiment(connection, row.id, row.run, priority)
            if direct:
                self.podium.start(row)
            return row

    def _intact(self, row: ExperimentRow) -> bool:
        """Whether the files of an experiment that is done are all there, and its landscape can be read."""
        path = self.located(row, LANDSCAPE)
        try:
            Landscape.open(path)
        except (OSError, DamagedLandscape, NotALandscape):
            return False
        return {f"{name}.safetensors" for name in row.spec["minima"]} <= self.files(row).keys()
