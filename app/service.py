"""The service as its API sees it: submit experiments, watch them, cancel, retry and delete them. Torch-free."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from app.catalogue import Catalogue, ExperimentRow, Page, State, WrongState
from app.checkpoints import CheckpointRow, Checkpoints
from app.conductor import Stage, conduct
from app.database import Database
from app.events import EventRow
from app.jobs import CONDUCTED_AT_ONCE, CONTROL, LARGEST_PRIORITY, Jobs, experiment_job
from app.ledger import Ledger, QueueRow
from app.migrations import migrate
from app.pump import Pump
from app.reaper import Reaper, Strays
from app.roster import Member, WorkerRow, worker_rows
from app.settings import Settings
from app.spec import Spec
from app.storage import Storage
from app.upkeep import Upkeep

log = logging.getLogger(__name__)

DEFAULT_PRIORITY = 100
_STOP_PATIENCE = 10.0


class Service:
    """Opened once in the API process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._storage = Storage(settings.home)
        self._database = Database(settings.database)
        self._catalogue = Catalogue(self._database)
        self._ledger = Ledger(self._database)
        self._checkpoints = Checkpoints(self._database, self._storage)
        self._stopping = threading.Event()
        self._conducting: set[str] = set()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Take part in the work: conduct experiments, look after processes that die, serve events."""
        self._storage.prepare()
        with self._database.alone("start"):
            migrate(self._database)
            self._member = Member(self._database, "api")
            self._pump = Pump(self._database)
            self._jobs = Jobs(self._database, self._member.id, CONTROL, self._conduct)
            self._jobs.start()
        self._stage = Stage(...)
