"""Requeues the jobs of processes that died: DBOS itself does so only if a process with the same id starts again."""

from __future__ import annotations

import logging
import time

from valleyscope.app.jobs.leases import forget_lease, free_leases, take_lease
from valleyscope.app.jobs.process_registry import ProcessEntry, deregister, process_ids
from valleyscope.app.jobs.queue import JobQueue
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.periodic_thread import PeriodicThread
from valleyscope.app.storage.database import Database

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
GRACE_SECONDS = 1.5
"""How long the lease of a process must be free before the process counts as dead: it may be reconnecting."""


class Reaper(PeriodicThread):
    """Looks for processes whose lease is free."""

    def __init__(self, database: Database, jobs: JobQueue, process: ProcessEntry) -> None:
        super().__init__("reaper", CHECK_SECONDS, self.check)
        self._database = database
        self._jobs = jobs
        self._process = process
        self._task_table = TaskTable(database)
        self._suspected: dict[str, float] = {}

    def check(self) -> None:
        """Requeue the jobs of processes that are dead.

        While our own lease is lost or fresh no process is suspected: the database may just have restarted.
        """
        with self._database.read() as connection:
            everyone = {*process_ids(connection), self._process.id}
        free = free_leases(self._database, sorted(everyone))
        if self._process.id in free or not self._process.lease.stable:
            self._suspected.clear()
            return
        now = time.monotonic()
        self._suspected = {name: self._suspected.get(name, now) for name in free}
        for process, since in list(self._suspected.items()):
            if now - since < GRACE_SECONDS:
                continue
            with take_lease(self._database, process) as taken:
                if taken:  # and held meanwhile, so that the process cannot come back in between
                    self._requeue_jobs_of(process)

    def _requeue_jobs_of(self, process: str) -> None:
        self._database.end_sessions(process)  # they may hold locks on the rows of its jobs
        for job in self._jobs.jobs_of(process).values():
            if job.task is not None:  # a task that crashed too often has failed; the next worker sees that
                self._task_table.record_crash(job.experiment, job.run, job.task, "its worker process died")
        count = self._jobs.requeue_jobs_of(process)
        deregister(self._database, process)
        forget_lease(self._database, process)
        log.warning("process %s died; %d of its jobs are back in their queues", process, count)
