"""Events of experiments: numbered rows that any process adds, and one poller that serves every watcher."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from app.database import Database, lock_key
from app.tables import events

log = logging.getLogger(__name__)

KINDS = ("state", "progress", "epoch", "curve", "tile", "warning", "error", "verdict")
_LASTING = ("state", "warning", "error", "verdict")
_BATCH = 1000
_REMEMBERED_CHARACTERS = 8_000_000


@dataclass(frozen=True)
class EventRow:
    """Something that happened to an experiment; `text` is its JSON, ready to be sent."""

    id: int
    experiment: str
    at: datetime
    kind: str
    text: str

    @property
    def data(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.text)
        return content


def plain(value: Any) -> Any:
    """The value for JSON, which has no infinity: "Infinity", "-Infinity" and "NaN" are what Number() reads.

    >>> plain({"loss": [0.5, float("inf")]})
    {'loss': [0.5, 'Infinity']}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def record(connection: sa.Connection, experiment: str, found: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Add events as the last act of a transaction that writes.

    Readers ask for ids above the last one they saw, so ids must become visible in their order. SQLite has one writer
    at a time; in Postgres a lock, held until the commit, makes it so.
    """
    rows = [
        {
            "experiment": experiment,
            "at": time.time(),
            "kind": kind,
            "text": json.dumps(plain(data), allow_nan=False, separators=(",", ":")),
        }
        for kind, data in found
    ]
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock_key("events")})
    connection.execute(events.insert(), rows)


def read_events(connection: sa.Connection, experiment: str, after: int, limit: int) -> list[EventRow]:
    chosen = sa.select(events).where(events.c.experiment == experiment, events.c.id > after)
    return [_row(row) for row in connection.execute(chosen.order_by(events.c.id).limit(limit))]


def thin_out(connection: sa.Connection, experiment: str) -> None:
    """At the end of a run: progress is of interest only while it happens."""
    connection.execute(events.delete().where(events.c.experiment == experiment, events.c.kind == "progress"))


def forget_old(connection: sa.Connection, finished_experiments: Iterable[str]) -> int:
    """Of experiments that ended long ago keep what people ask for; values and metrics are in landscape.h5."""
    removed = 0
    for experiment in finished_experiments:
        old = events.delete().where(events.c.experiment == experiment, events.c.kind.not_in(_LASTING))
        removed += connection.execute(old).rowcount
    return removed


def _row(row: Any) -> EventRow:
    return EventRow(row.id, row.experiment, datetime.fromtimestamp(row.at, UTC), row.kind, row.text)


class Pump:
    """Reads new events once for all who wait for some, and remembers the latest ones for those who come back."""

    def __init__(self, database: Database, *, interval: float = 0.1, idle_interval: float = 1.0) -> None:
        self._database = database
        self._interval = interval
        self._idle_interval = idle_interval
        self._lock = threading.Lock()
        self._waiters: dict[str, set[_Waiter]] = {}
        self._order: deque[EventRow] = deque()
        self._recent: dict[str, deque[EventRow]] = {}
        self._characters = 0
        self._last = self._forgotten = self._newest()
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wanted.set()
        self._thread.join()
        with self._lock:
            everyone = [waiter for group in self._waiters.values() for waiter in group]
        for waiter in everyone:
            waiter.wake()

    def after(self, experiment: str, after: int, limit: int = _BATCH) -> list[EventRow]:
        """Events with higher ids, from memory unless they are too old for it."""
        with self._lock:
            if after >= self._forgotten:
                known = self._recent.get(experiment, ())
                return [row for row in known if row.id > after][:limit]
        with self._database.read() as connection:
            return read_events(connection, experiment, after, limit)

    def wait(self, experiment: str, after: int, timeout: float, limit: int = _BATCH) -> list[EventRow]:
        """Events with higher ids as soon as there are some; none when the time is up."""
        waiter = _Waiter()
        deadline = time.monotonic() + timeout
        self._join(experiment, waiter)
        try:
            while not (found := self.after(experiment, after, limit)) and not self._stopping.is_set():
                left = deadline - time.monotonic()
                if left <= 0 or not waiter.happened.wait(left):
                    break
                waiter.happened.clear()
            return found
        finally:
            self._leave(experiment, waiter)

    async def wait_async(self, experiment: str, after: int, timeout: float, limit: int = _BATCH) -> list[EventRow]:
        """The same without a thread for each watcher."""
        waiter = _AsyncWaiter()
        self._join(experiment, waiter)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        try:
            while not (found := await self._after_async(experiment, after, limit)) and not self._stopping.is_set():
                left = deadline - loop.time()
                if left <= 0:
                    break
                try:
                    await asyncio.wait_for(waiter.noticed.wait(), left)
                except TimeoutError:
                    break
                waiter.noticed.clear()
            return found
        finally:
            self._leave(experiment, waiter)

    async def _after_async(self, experiment: str, after: int, limit: int) -> list[EventRow]:
        if after >= self._forgotten:
            return self.after(experiment, after, limit)
        return await asyncio.to_thread(self.after, experiment, after, limit)

    def _join(self, experiment: str, waiter: _Waiter) -> None:
        with self._lock:
            self._waiters.setdefault(experiment, set()).add(waiter)
        self._wanted.set()

    def _leave(self, experiment: str, waiter: _Waiter) -> None:
        with self._lock:
            group = self._waiters[experiment]
            group.discard(waiter)
            if not group:
                del self._waiters[experiment]

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._waiters:
                self._wanted.clear()
                self._wanted.wait(self._idle_interval)
            try:
                while self._read() == _BATCH:
                    pass
            except SQLAlchemyError as error:
                log.warning("events cannot be read: %s", error)
                self._stopping.wait(1.0)
            self._stopping.wait(self._interval)

    def _newest(self) -> int:
        with self._database.read() as connection:
            return connection.execute(sa.select(sa.func.max(events.c.id))).scalar() or 0

    def _read(self) -> int:
        with self._database.read() as connection:
            chosen = sa.select(events).where(events.c.id > self._last).order_by(events.c.id).limit(_BATCH)
            rows = [_row(row) for row in connection.execute(chosen)]
        if rows:
            with self._lock:
                for row in rows:
                    self._remember(row)
                woken = [waiter for name in {row.experiment for row in rows} for waiter in self._waiters.get(name, ())]
            for waiter in woken:
                waiter.wake()
        return len(rows)

    def _remember(self, row: EventRow) -> None:
        self._order.append(row)
        self._recent.setdefault(row.experiment, deque()).append(row)
        self._characters += len(row.text)
        self._last = row.id
        while self._characters > _REMEMBERED_CHARACTERS:
            oldest = self._order.popleft()
            group = self._recent[oldest.experiment]
            group.popleft()
            if not group:
                del self._recent[oldest.experiment]
            self._characters -= len(oldest.text)
            self._forgotten = oldest.id


class _Waiter:
    def __init__(self) -> None:
        self.happened = threading.Event()

    def wake(self) -> None:
        self.happened.set()


class _AsyncWaiter(_Waiter):
    def __init__(self) -> None:
        super().__init__()
        self.noticed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.noticed.set)
