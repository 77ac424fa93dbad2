"""Takes jobs from a queue of DBOS when this process has room for them: at once when called, else at the queue's pace.

The poller of DBOS would do for a few processes. But it counts only what came through its queue as under way, asks
Postgres also while there is no room, and brings rounds that each process makes once a second: for delayed jobs, for
jobs with a time limit, for new queues and for a queue of its own. There are none of these here. DBOS offers no call
that takes a job, so these are the ones that its own poller makes. Where a release of it has changed them, the poller
does the work as before: a matter of speed, nothing is lost.
"""

from __future__ import annotations

import inspect
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from valleyscope.app.storage.db_errors import short_message

log = logging.getLogger(__name__)

_CHANGED = (ImportError, AttributeError, TypeError)
_AFTER_TROUBLE_SECONDS = 1.0
_NO_ROOM_SECONDS = 5.0
_STOP_PATIENCE = 5.0
_COMING_SECONDS = 15.0
"""For so long a job that was taken counts as coming; one that never begins is a stray, and handed back."""


class Taker:
    """One queue, and the jobs of it that are under way in this process."""

    def __init__(
        self,
        queue: str,
        process: str,
        version: str,
        most: Callable[[], int],
        hand_back: Callable[[set[str]], object],
    ) -> None:
        """`most` says how many jobs may be under way here; `hand_back` puts some into their queue again."""
        self.usable = _fits()
        self._queue = queue
        self._process = process
        self._version = version
        self._most = most
        self._hand_back = hand_back
        self._lock = threading.Lock()
        self._coming: dict[str, float] = {}
        self._at_work: set[str] = set()
        self._called = threading.Event()
        self._stopping = threading.Event()
        self._quiet = False
        self._thread = threading.Thread(target=self._run, name="taking", daemon=True)

    def start(self) -> None:
        """Take jobs from now on. DBOS must be launched, and listen to the queue itself unless this is `usable`."""
        if self.usable:
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._called.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_PATIENCE)  # the database may be gone, and DBOS be waiting for it

    def call(self) -> None:
        """There may be a job, or room for one: look now."""
        self._called.set()

    @contextmanager
    def at_work(self, job: str) -> Iterator[None]:
        """A job is under way for the length of the block; where it ends there is room for the next one."""
        with self._lock:
            self._coming.pop(job, None)
            self._at_work.add(job)
        try:
            yield
        finally:
            with self._lock:
                self._at_work.discard(job)
            self.call()

    @property
    def room(self) -> int:
        """How many more jobs may be under way."""
        now = time.monotonic()
        with self._lock:
            self._coming = {job: since for job, since in self._coming.items() if now - since < _COMING_SECONDS}
            return max(0, self._most() - len(self._at_work) - len(self._coming))

    def quiet(self) -> None:
        """Let DBOS make no rounds in this process, as when it is shut down: the API process makes them for everyone.

        None of our jobs is delayed, has a time limit or a schedule, or waits in a queue that DBOS has for itself.
        """
        if not self.usable:
            return
        with suppress(*_CHANGED):
            from dbos._dbos import _get_dbos_instance

            dbos = _get_dbos_instance()
            for event in (*dbos.background_thread_stop_events, dbos._workflow_timeout_stop_event):
                event.set()
            self._quiet = True

    def look(self) -> float:
        """Take as many jobs as there is room for; returns after how many seconds it is time to look again."""
        room = self.room
        if not self.usable or not room:
            return _NO_ROOM_SECONDS
        chosen: list[str] = []
        try:
            from dbos._core import execute_dequeued_workflow
            from dbos._dbos import _get_dbos_instance
            from dbos._utils import generate_uuid

            dbos, token = _get_dbos_instance(), generate_uuid()
            queue = dbos._sys_db.get_queue(self._queue)
            if queue is None:
                return _AFTER_TROUBLE_SECONDS
            running = max(0, (queue._worker_concurrency or room) - room)
            chosen, _ = dbos._sys_db.start_queued_workflows(
                queue, self._process, self._version, None, running, owner_xid=token
            )
            with self._lock:
                self._coming |= dict.fromkeys(chosen, time.monotonic())
            for status in dbos._sys_db.get_workflow_statuses(chosen) if chosen else ():
                execute_dequeued_workflow(dbos, status, token)
            return queue._polling_interval_sec
        except _CHANGED as error:
            log.error(
                "this release of DBOS lets nobody take a job at once (%s); tasks start later than they could", error
            )
            self.usable = False
            self._hand_back(set(chosen))
            self._leave_it_to_dbos()
            return _NO_ROOM_SECONDS

    def _leave_it_to_dbos(self) -> None:
        from dbos._dbos import _get_dbos_instance
        from dbos._queue import queue_thread

        dbos = _get_dbos_instance()
        dbos._listening_queues = [self._queue]
        if self._quiet:
            stop = threading.Event()
            dbos.background_thread_stop_events.append(stop)
            threading.Thread(target=queue_thread, args=(stop, dbos), name="queues", daemon=True).start()

    def _run(self) -> None:
        while self.usable and not self._stopping.is_set():
            self._called.clear()
            try:
                pause = self.look()
            except Exception as error:  # the database refuses; whoever was taken and not begun is a stray
                log.warning("cannot look into the queue %r: %s", self._queue, short_message(error))
                pause = _AFTER_TROUBLE_SECONDS
            self._called.wait(pause * random.uniform(0.95, 1.05))


def _fits() -> bool:
    """Whether this release of DBOS has the calls that are made here."""
    try:
        from dbos._core import execute_dequeued_workflow
        from dbos._sys_db import SystemDatabase

        inspect.signature(execute_dequeued_workflow).bind("dbos", "status", "token")
        inspect.signature(SystemDatabase.get_queue).bind("self", "name")
        inspect.signature(SystemDatabase.get_workflow_statuses).bind("self", ["job"])
        asked = inspect.signature(SystemDatabase.start_queued_workflows)
        asked.bind("self", "queue", "process", "version", None, 0, owner_xid="token")
    except _CHANGED as error:
        log.error("this release of DBOS lets nobody take a job at once (%s); tasks start later than they could", error)
        return False
    return True
