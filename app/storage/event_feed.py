"""Events as they arrive: one thread polls the table for any number of readers, in threads or in an event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable

from valleyscope.app.periodic_thread import PeriodicThread
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import EventRow, newest_event, read_all_events, read_events

_BATCH = 1000
_REMEMBERED_CHARACTERS = 8_000_000


class EventFeed:
    """Reads new events once for all readers, and keeps the latest ones in memory."""

    def __init__(self, database: Database, *, interval: float = 0.1, idle_interval: float = 1.0) -> None:
        self.listeners: list[Callable[[EventRow], None]] = []
        """Called with every event of every experiment, in the polling thread."""
        self._database = database
        self._idle_interval = idle_interval
        self._lock = threading.Lock()
        self._waiters: dict[str, set[_Waiter]] = {}
        self._order: deque[EventRow] = deque()
        self._recent: dict[str, deque[EventRow]] = {}
        self._characters = 0
        self._last = self._forgotten = self._newest()
        self._read_at = 0.0
        self._thread = PeriodicThread("event feed", interval, self._poll)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._thread.stop()
        with self._lock:
            waiters = [waiter for group in self._waiters.values() for waiter in group]
        for waiter in waiters:
            waiter.wake()

    @property
    def latest(self) -> int:
        """The id of the last event that was read."""
        return self._last

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
            while not (found := self.after(experiment, after, limit)) and not self._thread.stopping.is_set():
                left = deadline - time.monotonic()
                if left <= 0 or not waiter.happened.wait(left):
                    break
                waiter.happened.clear()
            return found
        finally:
            self._leave(experiment, waiter)

    async def wait_async(self, experiment: str, after: int, timeout: float, limit: int = _BATCH) -> list[EventRow]:
        """The same without a thread for each reader."""
        waiter = _AsyncWaiter()
        self._join(experiment, waiter)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        try:
            while (
                not (found := await self._after_async(experiment, after, limit)) and not self._thread.stopping.is_set()
            ):
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

    def _leave(self, experiment: str, waiter: _Waiter) -> None:
        with self._lock:
            group = self._waiters[experiment]
            group.discard(waiter)
            if not group:
                del self._waiters[experiment]

    def _poll(self) -> None:
        now = time.monotonic()
        if self._waiters or now - self._read_at >= self._idle_interval:
            self._read_at = now
            while self._read() == _BATCH:
                pass

    def _newest(self) -> int:
        with self._database.read() as connection:
            return newest_event(connection)

    def _read(self) -> int:
        with self._database.read() as connection:
            rows = read_all_events(connection, self._last, _BATCH)
        if rows:
            with self._lock:
                for row in rows:
                    self._remember(row)
                woken = [waiter for name in {row.experiment for row in rows} for waiter in self._waiters.get(name, ())]
            for waiter in woken:
                waiter.wake()
            for listener in self.listeners:
                for row in rows:
                    listener(row)
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
