"""Recovers the work of processes that died: DBOS by itself does so only when a process of the same name comes back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.jobs.leases import forget_lease, free_leases, take_lease
from valleyscope.app.jobs.process_registry import ProcessEntry, deregister, process_ids
from valleyscope.app.jobs.queue import JobQueue
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
GRACE_SECONDS = 1.5
"""For so long the lease of a process must be free before the process counts as dead: it may be reconnecting."""
_STRAY_SECONDS = 15.0
_STOP_PATIENCE = 5.0


class Reaper:
    """Looks in a thread for processes whose lease is free, and puts their jobs back into the queues."""

    def __init__(self, database: Database, jobs: JobQueue, member: ProcessEntry) -> None:
        self._database = database
        self._jobs = jobs
        self._member = member
        self._suspected: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(_STOP_PATIENCE)

    def look(self) -> None:
        """One round. While our own lease is gone or fresh nobody is suspected: the database may just have come back."""
        with self._database.read() as connection:
            everyone = {*process_ids(connection), self._member.id}
        free = free_leases(self._database, sorted(everyone))
        if self._member.id in free or not self._member.lease.stable:
            self._suspected.clear()
            return
        now = time.monotonic()
        self._suspected = {name: self._suspected.get(name, now) for name in free}
        for process, since in list(self._suspected.items()):
            if now - since < GRACE_SECONDS:
                continue
            with take_lease(self._database, process) as taken:
                if taken:  # and held meanwhile, so that its owner cannot come back between the two
                    self._requeue_jobs_of(process)

    def _requeue_jobs_of(self, process: str) -> None:
        count = self._jobs.hand_back(process)
        deregister(self._database, process)
        forget_lease(self._database, process)
        log.warning("process %s died; %d of its jobs are back in their queues", process, count)

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self.look()
            except (SQLAlchemyError, OSError) as error:
                log.warning("cannot look for dead processes: %s", short_message(error))


class UnstartedJobs:
    """Jobs that this process took from a queue and never began, since the database failed at that moment."""

    def __init__(self, jobs: JobQueue, process: str, at_work: Callable[[], set[str]]) -> None:
        self._jobs = jobs
        self._process = process
        self._at_work = at_work
        self._suspected: set[str] = set()
        self._looked = time.monotonic()

    def look(self) -> None:
        """Call it often; it looks now and then. A job counts as lost when two looks find it idle."""
        if time.monotonic() - self._looked < _STRAY_SECONDS:
            return
        self._looked = time.monotonic()
        try:
            idle = self._jobs.begun_by(self._process) - self._at_work()
            lost = idle & self._suspected
            if lost:
                self._jobs.hand_back(self._process, only=lost)
                log.warning("%d jobs were taken and never begun; they are back in their queues", len(lost))
            self._suspected = idle - lost
        except SQLAlchemyError as error:
            log.warning("cannot look for lost jobs: %s", short_message(error))
