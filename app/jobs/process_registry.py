"""The processes of the service that are alive: each writes itself down, and holds a lease while it lives."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa

from valleyscope.app.devices import Memory
from valleyscope.app.jobs.leases import LEASE_SECONDS, Lease, hold_lease
from valleyscope.app.storage.database import Database, Stopped
from valleyscope.app.storage.tables import processes, tasks

log = logging.getLogger(__name__)

Role = Literal["api", "worker"]
LONGEST_DEVICE = 40  # characters; the identifier of a GPU may be longer, and is cut
LONGEST_NAME = 120


@dataclass(frozen=True)
class WorkerRow:
    """A living worker, and what it works at."""

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
    """This process on the roster. Its id is new at every start, so that nobody is taken for one who died."""

    def __init__(
        self,
        database: Database,
        role: Role,
        device: str = "-",
        device_name: str | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
        hear: Callable[[str], None] | None = None,
        back: Callable[[], None] = lambda: None,
    ) -> None:
        """`hear` is called with what somebody tells; `back` when this process can hear again after a while."""
        self.id = f"{role}-{os.getpid()}-{secrets.token_hex(6)}"
        self.role = role
        self.times_evicted = 0
        """How often this process was taken for dead, and came back to find its work given to others."""
        self._database = database
        self._device_name = device_name
        self._back = back
        self._entry = {
            "id": self.id,
            "role": role,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "device": device[:LONGEST_DEVICE],
            "device_name": device_name,
            "started": time.time(),
        }
        # The lease first: whoever is on the roster without one is dead.
        self.lease: Lease = hold_lease(database, self.id, seconds=lease_seconds, back=self._come_back, hear=hear)
        try:
            self._sign_on()
        except BaseException:
            self.lease.release()
            raise

    def heartbeat(self, memory: Memory | None = None, fault: str | None = None) -> None:
        """Say that this process was there just now, and its memory: for people, nothing depends on it.

        Why it takes no work is told behind the name of its device.
        """
        values: dict[str, float | str | None] = {"seen": time.time(), "device_name": self._device_name}
        if fault is not None:
            values["device_name"] = f"{self._device_name}; takes no work: {fault}"[:LONGEST_NAME]
        if memory is not None:
            values |= {"memory_used": memory.used, "memory_total": memory.total}
        with self._database.write() as connection:
            connection.execute(processes.update().where(processes.c.id == self.id).values(values))

    def _sign_on(self) -> None:
        with self._database.write() as connection:
            connection.execute(processes.insert().values({**self._entry, "seen": time.time()}))

    def _come_back(self) -> None:
        """Be on the roster again after having been taken for dead: whoever is not on it is never missed."""
        self._back()
        with self._database.read() as connection:
            known = self.id in process_ids(connection)
        if not known:
            self._sign_on()
            self.times_evicted += 1
            log.warning("this process was silent for so long that its work was given to others; it is back")

    def leave(self, stopping: threading.Event) -> None:
        """Sign off, after all work was handed back. Where the database refuses, others see it by the lease."""
        try:
            self._database.with_retry(lambda: deregister(self._database, self.id), stopping)
        except Stopped as error:
            log.warning("leaving without having signed off: %s", error)
        finally:
            self.lease.release()


def deregister(database: Database, process: str) -> None:
    """Remove a process from the roster."""
    with database.write() as connection:
        connection.execute(processes.delete().where(processes.c.id == process))


def process_ids(connection: sa.Connection, role: Role | None = None) -> list[str]:
    chosen = sa.select(processes.c.id)
    if role is not None:
        chosen = chosen.where(processes.c.role == role)
    return list(connection.execute(chosen.order_by(processes.c.id)).scalars())


def worker_rows(connection: sa.Connection) -> list[WorkerRow]:
    """All workers, with the task that each one runs."""
    running = sa.and_(tasks.c.owner == processes.c.id, tasks.c.state == "running")
    chosen = (
        sa.select(processes, tasks.c.experiment, tasks.c.task, tasks.c.started.label("task_started"))
        .outerjoin(tasks, running)
        .where(processes.c.role == "worker")
        .order_by(processes.c.started, processes.c.id)
    )
    return [
        WorkerRow(
            id=row.id,
            host=row.host,
            pid=row.pid,
            device=row.device,
            device_name=row.device_name,
            memory_used=row.memory_used,
            memory_total=row.memory_total,
            state="idle" if row.task is None else "busy",
            experiment=row.experiment,
            task=row.task,
            since=datetime.fromtimestamp(row.task_started or row.started, UTC),
            seen=datetime.fromtimestamp(row.seen, UTC),
        )
        for row in connection.execute(chosen)
    ]
