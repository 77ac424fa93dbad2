"""The processes of the service: each has an entry in the table, and holds a lease while it is alive."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa

from valleyscope.app.devices import Memory
from valleyscope.app.jobs.leases import LEASE_SECONDS, Lease, hold_lease
from valleyscope.app.jobs.queue import Job
from valleyscope.app.storage.database import Database, Stopped
from valleyscope.app.storage.tables import processes

log = logging.getLogger(__name__)

Role = Literal["api", "worker"]
LONGEST_DEVICE = 40  # characters; the identifier of a GPU may be longer, and is cut
LONGEST_NAME = 120


@dataclass(frozen=True)
class WorkerRow:
    """A living worker, and the task that it runs."""

    id: str
    host: str
    pid: int
    device: str
    device_name: str | None
    memory_used: int | None
    memory_total: int | None
    state: Literal["idle", "busy"]
    experiment: str | None
    task: str | None
    since: datetime
    seen: datetime


class ProcessEntry:
    """The entry of this process. Its id is new at every start, so no process is taken for one that died."""

    def __init__(
        self,
        database: Database,
        role: Role,
        device: str = "-",
        device_name: str | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
        on_notify: Callable[[str], None] | None = None,
        on_regained: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_notify` is called with the id of a cancelled experiment, `on_regained` after a lost lease is held again:
        notifications may have been missed.
        """
        self.id = f"{role}-{os.getpid()}-{secrets.token_hex(6)}"
        self.role = role
        self.times_evicted = 0
        """How often this process was taken for dead and its jobs were requeued, though it lives."""
        self._database = database
        self._device_name = device_name
        self._on_regained = on_regained
        self._entry = {
            "id": self.id,
            "role": role,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "device": device[:LONGEST_DEVICE],
            "device_name": device_name,
            "started": time.time(),
        }
        database.name_sessions(self.id)
        # The lease first: a process with an entry and without a lease counts as dead.
        self.lease: Lease = hold_lease(
            database, self.id, seconds=lease_seconds, on_regained=self._register_again, on_notify=on_notify
        )
        try:
            self._register()
        except BaseException:
            self.lease.release()
            raise

    def heartbeat(self, memory: Memory | None = None, fault: str | None = None) -> None:
        """Save the time, the memory in use, and why this worker takes no tasks. For people: nothing depends on it."""
        values: dict[str, float | str | None] = {"seen": time.time(), "device_name": self._device_name}
        if fault is not None:
            values["device_name"] = f"{self._device_name}; takes no work: {fault}"[:LONGEST_NAME]
        if memory is not None:
            values |= {"memory_used": memory.used, "memory_total": memory.total}
        with self._database.write() as connection:
            connection.execute(processes.update().where(processes.c.id == self.id).values(values))

    def leave(self, stopping: threading.Event) -> None:
        """Remove the entry, after all jobs were requeued. If the database fails, the reaper sees it by the lease."""
        try:
            self._database.with_retry(lambda: deregister(self._database, self.id), stopping)
        except Stopped as error:
            log.warning("the entry of this process stays for the reaper: %s", error)
        finally:
            self.lease.release()

    def _register(self) -> None:
        with self._database.write() as connection:
            connection.execute(processes.insert().values({**self._entry, "seen": time.time()}))

    def _register_again(self) -> None:
        self._on_regained()
        with self._database.read() as connection:
            known = self.id in process_ids(connection)
        if not known:
            self._register()
            self.times_evicted += 1
            log.warning("this process lost its lease and its jobs were requeued; it is registered again")


def deregister(database: Database, process: str) -> None:
    with database.write() as connection:
        connection.execute(processes.delete().where(processes.c.id == process))


def process_ids(connection: sa.Connection, role: Role | None = None) -> list[str]:
    chosen = sa.select(processes.c.id)
    if role is not None:
        chosen = chosen.where(processes.c.role == role)
    return list(connection.execute(chosen.order_by(processes.c.id)).scalars())


def worker_rows(connection: sa.Connection, running: Iterable[Job]) -> list[WorkerRow]:
    """All workers, each with its job among those `running`."""
    jobs = {job.process: job for job in running}
    chosen = sa.select(processes).where(processes.c.role == "worker").order_by(processes.c.started, processes.c.id)
    return [_worker_row(row, jobs.get(row.id)) for row in connection.execute(chosen)]


def _worker_row(row: sa.Row[tuple[object, ...]], job: Job | None) -> WorkerRow:
    return WorkerRow(
        id=row.id,
        host=row.host,
        pid=row.pid,
        device=row.device,
        device_name=row.device_name,
        memory_used=row.memory_used,
        memory_total=row.memory_total,
        state="idle" if job is None else "busy",
        experiment=None if job is None else job.experiment,
        task=None if job is None else job.task,
        since=datetime.fromtimestamp(row.started, UTC) if job is None else job.since,
        seen=datetime.fromtimestamp(row.seen, UTC),
    )
