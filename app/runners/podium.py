"""The podium: the experiments that this process conducts, the room for more, and the pace of the workers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from app.experiments.press import Press
from app.runners.conductor import Stage, conduct
from app.runners.crew import Crew
from app.runners.jobs import CONDUCTED_AT_ONCE, CONTROL, Jobs, conducted_at_once, experiment_job
from app.runners.reaper import Strays
from app.runners.roster import Member, process_ids
from app.storage.catalogue import Catalogue, ExperimentRow
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.storage.obstacles import reason
from app.storage.pump import Pump
from app.storage.store import Store

log = logging.getLogger(__name__)

DEFAULT_PRIORITY = 100
_STOP_PATIENCE = 10.0
_GREET_SECONDS = 10.0
_PACE_SECONDS = 5.0


class Podium:
    """Conducts experiments for one member of the service until it is told to stop."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        ledger: Ledger,
        pump: Pump,
        member: Member,
        directory: Callable[[str], Path],
        store: Store,
    ) -> None:
        self.jobs = Jobs(database, member.id, CONTROL, self._conduct, self._room_in_all)
        self.stopping = threading.Event()
        self._database = database
        self._member = member
        self._stage = Stage(
            database=database,
            catalogue=catalogue,
            ledger=ledger,
            jobs=self.jobs,
            pump=pump,
            process=member.id,
            conducted=lambda: len(self._conducting),
            directory=directory,
            store=store,
            stopping=self.stopping,
            call_workers=self._call_workers,
            press=Press(),
        )
        self._crew: Crew | None = None
        self._lock = threading.Lock()
        self._conducting: dict[str, str] = {}
        self._starting = 0
        self._most = CONDUCTED_AT_ONCE
        self._watchman = threading.Thread(target=self._watch, name="watchman", daemon=True)

    @property
    def experiments(self) -> set[str]:
        """Those that are conducted here now."""
        with self._lock:
            return set(self._conducting.values())

    def watch(self) -> None:
        """Look after jobs and workers from now on. The jobs must have been started."""
        self._watchman.start()

    def clear(self) -> None:
        """Hand back what is conducted here, and wait until that is done."""
        self.stopping.set()
        deadline = time.monotonic() + _STOP_PATIENCE
        while self._conducting and time.monotonic() < deadline:
            time.sleep(0.02)
        self._watchman.join(_STOP_PATIENCE)
        self._stage.press.close()

    def employ(self, crew: Crew) -> None:
        """Let local workers know at once when there is work."""
        self._crew = crew

    @contextmanager
    def room(self, priority: int) -> Iterator[bool]:
        """Keep room for one more experiment here and now, if there is; some is left for the urgent ones."""
        with self._lock:
            most = self._most + (CONDUCTED_AT_ONCE if priority < DEFAULT_PRIORITY else 0)
            found = len(self._conducting) + self._starting < most and not self.stopping.is_set()
            self._starting += found
        try:
            yield found
        finally:
            with self._lock:
                self._starting -= found

    def _room_in_all(self) -> int:
        """How many experiments may be conducted here, those that came by the queue and those that were started."""
        return 0 if self.stopping.is_set() else self._most - self._starting

    def start(self, row: ExperimentRow) -> None:
        """Run an experiment that was entered; where that fails it is without a job, and the upkeep revives it."""
        try:
            self.jobs.start_experiment(row.id, row.run)
        except SQLAlchemyError as error:
            log.warning("starting is put off: %s", reason(error), extra={"experiment": row.id})

    def _conduct(self, experiment: str, run: int) -> None:
        job = experiment_job(experiment, run)
        with self._lock:
            self._conducting[job] = experiment
            first = len(self._conducting) == 1
        try:
            if first:
                self._set_pace()
            conduct(self._stage, experiment, run)
        finally:
            with self._lock:
                del self._conducting[job]
                last = not self._conducting
            if last and not self.stopping.is_set():
                self._set_pace()

    def _call_workers(self) -> None:
        if self._crew is not None:
            self._crew.call()

    def _set_pace(self) -> None:
        try:
            with self._database.read() as connection:
                workers = len(process_ids(connection, "worker"))
            self._most = conducted_at_once(workers)
            called = self._database.sqlite and self._crew is not None and workers <= len(self._crew.processes)
            self.jobs.pace(busy=bool(self._conducting), workers=workers, called=called)
        except Exception as error:  # only a matter of speed
            log.warning("the pace of workers could not be set: %s", error)

    def _watch(self) -> None:
        """Now and then: look for lost jobs, set the pace of the workers that there are, and say that one is here."""
        strays = Strays(self.jobs, self._member.id, lambda: set(self._conducting))
        greeted = paced = time.monotonic()
        while not self.stopping.wait(1.0):
            strays.look()
            if time.monotonic() - paced > _PACE_SECONDS:
                paced = time.monotonic()
                self._set_pace()
            if time.monotonic() - greeted > _GREET_SECONDS:
                greeted = time.monotonic()
                try:
                    self._member.greet()
                except SQLAlchemyError as error:
                    log.warning("the database refuses: %s", reason(error))
