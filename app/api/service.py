"""The service behind the routes: submit, cancel, retry and delete experiments. Imports no torch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from valleyscope.app.api.schemas import MOST_TAGS
from valleyscope.app.devices import CPU
from valleyscope.app.experiments.amendments import extends
from valleyscope.app.experiments.cost import CORE, GPU, Device
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.experiments.gallery import find_entry, is_gallery_id
from valleyscope.app.experiments.landscape_import import ImportedLandscape
from valleyscope.app.experiments.spec import Spec, parse_spec
from valleyscope.app.experiments.task_files import is_written_by_orchestrator
from valleyscope.app.jobs.maintenance import Maintenance
from valleyscope.app.jobs.orchestrator_pool import DEFAULT_PRIORITY, OrchestratorPool
from valleyscope.app.jobs.process_registry import ProcessEntry, WorkerRow, worker_rows
from valleyscope.app.jobs.queue import experiment_job
from valleyscope.app.jobs.reaper import Reaper
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.jobs.webhook import Webhook
from valleyscope.app.settings import Settings
from valleyscope.app.storage.checkpoint_table import CheckpointTable
from valleyscope.app.storage.cleanup import OrphanCleanup
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.earlier_verdicts import EarlierVerdicts
from valleyscope.app.storage.event_feed import EventFeed
from valleyscope.app.storage.experiment_table import ACTIVE, ExperimentRow, ExperimentTable, Unknown, WrongState
from valleyscope.app.storage.file_store import open_store
from valleyscope.app.storage.gallery_rows import gallery_row, require_own
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity
from valleyscope.app.storage.ids import new_id
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.storage.share_table import ShareRow, ShareTable
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape, NotALandscape

log = logging.getLogger(__name__)

_FETCH_SECONDS = 5.0


class Service:
    """One per API process: runs the orchestrator and maintenance threads, and owns the tables that routes read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.home = Home(settings.home)
        self.store = open_store(settings.store, self.home)
        self.database = Database(settings.database)
        self.experiment_table = ExperimentTable(self.database)
        self.share_table = ShareTable(self.database)
        self.task_table = TaskTable(self.database)
        self.checkpoint_table = CheckpointTable(self.database, self.home, self.store)
        self.identity = HomeIdentity(self.database, self.store)
        self._webhook: Webhook | None = None

    def start(self) -> None:
        """Start all threads. Raises if the home or the database cannot be written."""
        self.home.prepare()
        if (url := self._settings.webhook) is not None:
            secret = self._settings.webhook_secret
            self._webhook = Webhook(url.get_secret_value(), None if secret is None else secret.get_secret_value())
        try:
            self.store.probe()
            reachable = True
        except StoreUnavailable as error:
            log.error("%s; the service keeps trying to reach it", error)
            reachable = False
        with self.database.exclusive("start"):
            migrate(self.database)
            if reachable:
                self.identity.establish()
            self._process = ProcessEntry(self.database, "api", lease_seconds=self._settings.lease_seconds)
            self.event_feed = EventFeed(self.database)
            self.orchestrator_pool = OrchestratorPool(
                self.database,
                self.experiment_table,
                self.task_table,
                self.event_feed,
                self._process,
                self.home.experiment,
                self.store,
                self._announce_end,
            )
            jobs = self.orchestrator_pool.jobs
            jobs.start()
        self.event_feed.start()
        self._reaper = Reaper(self.database, jobs, self._process)
        self._reaper.start()
        self._maintenance = Maintenance(
            self.database,
            self.experiment_table,
            jobs,
            self.home,
            self.store,
            lambda: self.orchestrator_pool.experiments,
            (
                self.identity.establish_if_missing,
                OrphanCleanup(self.checkpoint_table, self.home, self.identity).run_if_due,
                EarlierVerdicts(
                    self.database, self.experiment_table, lambda row: self.located(row, LANDSCAPE)
                ).run_if_due,
            ),
        )
        self._maintenance.start()
        self.orchestrator_pool.start_threads()

    def stop(self) -> None:
        """Release the experiments of this process and stop. Workers continue with their tasks."""
        self.orchestrator_pool.drain()
        self._maintenance.stop()
        self._reaper.stop()
        self.event_feed.stop()
        self.orchestrator_pool.jobs.stop()
        self._process.leave(self.orchestrator_pool.stopping)
        if self._webhook is not None:
            self._webhook.stop()
        self.database.close()

    def submit(self, spec: Spec, *, key: str | None = None, priority: int = DEFAULT_PRIORITY) -> ExperimentRow:
        """Add an experiment to the queue. The same key and spec return the same experiment.

        A lower `priority` runs first; equal ones run in the order of submission.
        """
        try:
            return self._submit(spec, key, priority)
        except IntegrityError:
            if key is None:
                raise
            return self._submit(spec, key, priority)  # another request with the same key was faster

    def add_landscapes(self, landscapes: Sequence[ImportedLandscape]) -> list[ExperimentRow]:
        """Take over the folders of uploaded landscapes as experiments that are done: all of them or none."""
        folders = {new_id(): landscape for landscape in landscapes}
        try:
            for identifier, landscape in folders.items():
                self.home.experiment(identifier).parent.mkdir(parents=True, exist_ok=True)
                landscape.folder.rename(self.home.experiment(identifier))
                self.store.push(identifier, is_written_by_orchestrator)
            with self.database.write(durable=True) as connection:
                return [
                    self.experiment_table.add_imported(connection, identifier, landscape)
                    for identifier, landscape in folders.items()
                ]
        except BaseException:
            for identifier in folders:
                with suppress(OSError):
                    self.home.remove_experiment(identifier)
                    self.store.remove(identifier)
            raise

    def get(self, experiment: str) -> ExperimentRow:
        """An experiment, or an entry of the gallery."""
        return gallery_row(experiment) if is_gallery_id(experiment) else self.experiment_table.get(experiment)

    def submitted(self, key: str, spec: Spec) -> ExperimentRow | None:
        """The experiment that was submitted with this key, if any. Raises KeyReused if its spec differs."""
        with self.database.read() as connection:
            return self.experiment_table.find_by_key(connection, key, spec)

    def cancel(self, experiment: str) -> ExperimentRow:
        """Cancel an experiment: at once if it is queued, otherwise within two seconds. Its results stay."""
        require_own(experiment)
        with self.database.read() as connection:
            row = self.experiment_table.find(connection, experiment)
        job = experiment_job(row.id, row.run)
        dropped = row.state in ACTIVE and self.orchestrator_pool.jobs.cancel_queued([job])
        with self.database.write(durable=True) as connection:
            row = self.experiment_table.find(connection, experiment, for_update=True)
            if row.state not in ACTIVE:
                raise WrongState(f"experiment {experiment} is {row.state}: you can cancel queued and running ones only")
            if dropped:
                self.experiment_table.end(connection, experiment, "cancelled")
            else:
                self.experiment_table.cancel(connection, experiment)
            row = self.experiment_table.find(connection, experiment)
        if dropped:
            self._announce_end(experiment)
        return row

    def retry(self, experiment: str) -> ExperimentRow:
        """Continue an experiment that failed, was cancelled, or lost files."""
        require_own(experiment)
        with self.database.write(durable=True) as connection:
            row = self.experiment_table.find(connection, experiment, for_update=True)
            if row.imported is not None:
                raise WrongState(f"experiment {experiment} is an uploaded landscape: upload its files again instead")
            if row.state in ACTIVE or (row.state == "done" and self._intact(row)):
                rule = "you can retry one that failed, was cancelled or lost files"
                raise WrongState(f"experiment {experiment} is {row.state}: {rule}")
            row = self.experiment_table.start_next_run(connection, experiment)
            self.orchestrator_pool.jobs.enqueue_experiment(connection, row.id, row.run, row.priority)
            return row

    def add_plane(self, experiment: str, amended: Spec) -> ExperimentRow:
        """Continue an experiment that has ended with a spec that has one plane more."""
        require_own(experiment)
        with self.database.write(durable=True) as connection:
            row = self.experiment_table.find(connection, experiment, for_update=True)
            if row.state in ACTIVE:
                raise WrongState(f"experiment {experiment} is {row.state}: you can add a plane once it has ended")
            if not extends(amended, parse_spec(row.spec)):
                raise WrongState(f"experiment {experiment} got another plane meanwhile: try again")
            self.experiment_table.amend(connection, experiment, amended)
            row = self.experiment_table.start_next_run(connection, experiment)
            self.orchestrator_pool.jobs.enqueue_experiment(connection, row.id, row.run, row.priority)
            return row

    def delete(self, experiment: str, *, permanent: bool = False) -> None:
        """Move an experiment that is not running to the trash, where it stays for a day, or delete it at once.

        One in the trash can be deleted at once, too. Files that cannot be removed now are removed later.
        """
        require_own(experiment)
        with self.database.write(durable=True) as connection:
            if not (permanent and self.experiment_table.in_trash(connection, experiment)):
                row = self.experiment_table.find(connection, experiment, for_update=True)
                if row.state in ACTIVE:
                    raise WrongState(f"experiment {experiment} is {row.state}: cancel it first")
            if not permanent:
                self.experiment_table.move_to_trash(connection, experiment)
                return
            self.experiment_table.mark_deleted(connection, experiment)
        try:
            self._maintenance.remove(experiment)
        except (OSError, SQLAlchemyError) as error:
            log.warning("its files are deleted later: %s", short_message(error), extra={"experiment": experiment})

    def restore(self, experiment: str) -> ExperimentRow:
        """Take an experiment out of the trash."""
        require_own(experiment)
        with self.database.write(durable=True) as connection:
            return self.experiment_table.restore(connection, experiment)

    def describe(self, experiment: str, values: Mapping[str, Any]) -> ExperimentRow:
        """Change the name, the tags or the note of an experiment."""
        require_own(experiment)
        with self.database.write(durable=True) as connection:
            row = self.experiment_table.find(connection, experiment, for_update=True)
            return self.experiment_table.describe(connection, row.id, values) if values else row

    def change_tags(self, experiment: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> ExperimentRow:
        """Add tags that an experiment does not have yet, and remove others; upper and lower case count as the same."""
        with self.database.write(durable=True) as connection:
            row = self.experiment_table.find(connection, experiment, for_update=True)
            unwanted = {tag.casefold() for tag in remove}
            tags = {tag.casefold(): tag for tag in row.tags if tag.casefold() not in unwanted}
            for tag in add:
                tags.setdefault(tag.casefold(), tag)
            if len(tags) > MOST_TAGS:
                raise WrongState(f"experiment {experiment} would have {len(tags)} tags, {MOST_TAGS} is the most")
            return self.experiment_table.describe(connection, row.id, {"tags": list(tags.values())})

    def share(self, experiment: str, *, days: float) -> ShareRow:
        """Make a read-only link to an experiment."""
        require_own(experiment)
        with self.database.write(durable=True) as connection:
            row = self.experiment_table.find(connection, experiment)
            return self.share_table.add(connection, row.id, days=days)

    def revoke(self, experiment: str, share: str | None = None) -> None:
        """Revoke a link to an experiment, or all of them."""
        require_own(experiment)
        with self.database.write(durable=True) as connection:
            row = self.experiment_table.find(connection, experiment)
            self.share_table.remove(connection, row.id, share)

    def _announce_end(self, experiment: str) -> None:
        if self._webhook is None:
            return
        try:
            row = self.experiment_table.get(experiment)
        except (Unknown, SQLAlchemyError):
            return
        shown = ("id", "name", "state", "run", "error", "verdict_kind", "sentence", "rise", "barrier")
        self._webhook.send({"event": "experiment-ended", **{name: getattr(row, name) for name in shown}})

    def workers(self) -> list[WorkerRow]:
        running = self.orchestrator_pool.jobs.running_tasks()
        with self.database.read() as connection:
            return worker_rows(connection, running)

    def devices(self) -> list[Device]:
        """What the running workers compute on."""
        with self.database.read() as connection:
            return [CORE if row.device == CPU else GPU for row in worker_rows(connection, [])]

    def located(self, row: ExperimentRow, name: str) -> Path:
        """The local path of a file, after downloading a newer version from the store, if any.

        While the store is unreachable, the local version is used.
        """
        if (entry := find_entry(row.id)) is not None:
            return entry.folder / name
        path = self.home.experiment(row.id) / name
        if not self.store.remote or (row.id in self.orchestrator_pool.experiments and is_written_by_orchestrator(name)):
            return path
        if row.state == "done" and path.is_file():
            return path  # final
        try:
            self.store.fetch(row.id, name, age=_FETCH_SECONDS)
        except StoreUnavailable:
            if not path.is_file():
                raise
        return path

    def files(self, row: ExperimentRow) -> dict[str, int]:
        """The files of an experiment, local and in the store, with their sizes."""
        entry = find_entry(row.id)
        directory = entry.folder if entry is not None else self.home.experiment(row.id)
        local = {path.name: path.stat().st_size for path in directory.glob("*") if path.is_file()}
        return local if entry is not None else self.store.file_sizes(row.id) | local

    def _submit(self, spec: Spec, key: str | None, priority: int) -> ExperimentRow:
        with self.database.write(durable=True) as connection:
            if key is not None:
                known = self.experiment_table.find_by_key(connection, key, spec)
                if known is not None:
                    return known
            self.checkpoint_table.require(connection, spec)
            row = self.experiment_table.add(connection, spec, key=key, priority=priority)
            self.orchestrator_pool.jobs.enqueue_experiment(connection, row.id, row.run, priority)
        if priority < DEFAULT_PRIORITY:
            self.orchestrator_pool.try_update_limits()
        return row

    def _intact(self, row: ExperimentRow) -> bool:
        """Whether all files of a finished experiment exist and its landscape can be read."""
        path = self.located(row, LANDSCAPE)
        try:
            Landscape.open(path)
        except (OSError, DamagedLandscape, NotALandscape):
            return False
        return {f"{name}.safetensors" for name in row.spec["minima"]} <= self.files(row).keys()
