"""A worker: takes tasks from the queue `gpu`, one at a time, and computes them in a warm child process.

This process does not import torch: it stays small, notices a cancelled task at once, and survives a crash of the child.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.devices import checked_device, describe, memory_of
from valleyscope.app.jobs.file_sync import LAST_SECONDS, retry_store
from valleyscope.app.jobs.process_registry import ProcessEntry
from valleyscope.app.jobs.queue import GPU, JobQueue
from valleyscope.app.settings import Settings
from valleyscope.app.shutdown import exit_after, exit_despite_threads
from valleyscope.app.storage.cleanup import remove_unused_copies
from valleyscope.app.storage.database import Database, Stopped
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.file_store import open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.worker.cancel_watch import CancelWatch
from valleyscope.app.worker.child_runner import ChildRunner
from valleyscope.app.worker.gpu_lease import ANY_GPU, GpuLease, lease_gpu
from valleyscope.app.worker.health_file import HealthFile
from valleyscope.app.worker.self_test import WorkerSelfTest
from valleyscope.app.worker.supervisor import watch_parent
from valleyscope.app.worker.task_executor import SHUTDOWN_SECONDS, TaskExecutor

log = logging.getLogger(__name__)

T = TypeVar("T")

NICENESS = 10
_FRESH_SECONDS = 60.0
_WARM_SECONDS = 900.0
_HEARTBEAT_SECONDS = 10.0
_UNSTARTED_SECONDS = 15.0
_CONNECTIONS = 2  # kept open, beside that of the lease: Postgres pays for each, and there may be many workers
_COPIES_SECONDS = 600.0


def run_worker(settings: Settings, *, device: str | None = None, attached: bool = False) -> None:
    """Work until SIGTERM or SIGINT, then requeue what is unfinished. Call it in the main thread.

    `device` is cpu, or cuda:N, which the child process then sees as its only one, or gpu for any that no other worker
    has; by default the first GPU, if there is one. An attached worker ends with the server that started it.
    """
    device = device if device == ANY_GPU else checked_device(device)
    os.nice(NICENESS)
    worker = Worker(settings, device)

    def shut_down(_number: int, _frame: FrameType | None) -> None:
        if not worker.stopping.is_set():
            worker.stopping.set()
            exit_after()

    signal.signal(signal.SIGTERM, shut_down)
    signal.signal(signal.SIGINT, shut_down)
    if attached:
        watch_parent()
    worker.run()
    exit_despite_threads()


class Worker:
    """One worker on one device."""

    def __init__(self, settings: Settings, device: str) -> None:
        self.stopping = threading.Event()
        self._settings = settings
        self._home = Home(settings.home)
        self._store = open_store(settings.store, self._home)
        self._device = device
        self._gpu_lease: GpuLease | None = None
        self._child_runner = ChildRunner(device, stall_seconds=settings.stall_seconds)
        self._self_test = WorkerSelfTest(self._home, lambda: self._child_runner.self_test(self._check))
        self._database = Database(settings.database, connections=_CONNECTIONS)
        self._health_file: HealthFile | None = None
        self._due: dict[str, float] = {}

    def run(self) -> None:
        try:
            retry_store(self._store.probe, self._check)  # take no tasks until the object store is reachable
            self._with_retry(lambda: retry_store(HomeIdentity(self._database, self._store).check, self._check))
            self._with_retry(self._register)
        except Stopped:
            self._database.close()
            return
        log.info("worker started on %s", self._device, extra={"worker": self._process.id})
        self._run_self_test()
        fault = self._self_test.fault
        if self._settings.heartbeat is not None:
            self._health_file = HealthFile(self._settings.heartbeat, self._process.id, fault)
        if fault is None:
            with self._executor.child_lock:
                self._child_runner.warm_up()
        self._send_heartbeat()
        with suppress(Stopped):
            self._listen()
        while not self.stopping.wait(1.0):
            with suppress(Stopped):
                self._release_memory()
                self._remove_copies()
                self._run_self_test()
                self._listen()
                if self._jobs.listening and self._is_due("unstarted jobs", _UNSTARTED_SECONDS):
                    self._requeue_unstarted()
                if self._is_due("heartbeat", _HEARTBEAT_SECONDS) or fault != self._self_test.fault:
                    fault = self._self_test.fault
                    self._send_heartbeat()
        self._shutdown()

    def _register(self) -> None:
        """Register this worker, or leave no trace of a failed attempt: a full disk is waited for."""
        with self._database.exclusive("start"):
            migrate(self._database)
            lease = self._settings.lease_seconds
            if self._device == ANY_GPU:
                self._gpu_lease = lease_gpu(self._database, seconds=lease, on_taken=self._on_gpu_taken)
                self._device = self._gpu_lease.shown
                self._child_runner = ChildRunner(self._gpu_lease.pinned, stall_seconds=self._settings.stall_seconds)
            cancel_watch = CancelWatch(lambda: self._process.lease.listening)
            self._process = ProcessEntry(
                self._database,
                "worker",
                self._device,
                describe(self._device),
                lease_seconds=lease,
                on_notify=cancel_watch.on_notify,
                on_regained=cancel_watch.on_regained,
            )
        self._executor = TaskExecutor(
            self._database,
            self._home,
            self._store,
            self._settings.data,
            self._process,
            self._child_runner,
            self._self_test,
            cancel_watch,
            self.stopping,
        )
        self._jobs = JobQueue(self._database, self._process.id, GPU, self._executor.execute)

    def _listen(self) -> None:
        """Take tasks while the self-test passes, and none while it fails."""
        ready = self._self_test.ready
        if ready and not self._jobs.listening:
            self._with_retry(self._start_jobs)
        elif not ready and self._jobs.listening and not self._jobs.active:
            self._jobs.pause()

    def _start_jobs(self) -> None:
        with self._database.exclusive("start"):
            self._jobs.start()

    def _run_self_test(self) -> None:
        if self._self_test.due and self._executor.child_lock.acquire(blocking=False):
            try:
                with suppress(Stopped):
                    self._self_test.run()
            finally:
                self._executor.child_lock.release()

    def _on_gpu_taken(self) -> None:
        """Another worker took the GPU while this one was silent: whatever restarts workers finds a free one."""
        log.error("%s belongs to another worker now; this one requeues its task and ends", self._device)
        self.stopping.set()

    def _check(self) -> None:
        if self.stopping.is_set():
            raise Stopped("the worker shuts down")

    def _release_memory(self) -> None:
        """After a minute without tasks replace the child, which has data sets and networks of past experiments loaded.

        The new one has torch loaded, so the next task still starts at once. After a long time it ends, too.
        """
        idle = time.monotonic() - self._executor.idle_since
        if self._jobs.active or not self._child_runner.warm or idle < _FRESH_SECONDS:
            return
        with self._executor.child_lock:
            if idle > _WARM_SECONDS:
                self._child_runner.clear()
            elif self._child_runner.used:
                self._child_runner.clear()
                self._child_runner.warm_up()

    def _remove_copies(self) -> None:
        """Remove local copies of files that the store has and no active experiment needs."""
        if not self._store.remote or not self._is_due("copies", _COPIES_SECONDS):
            return
        self._executor.forget_downloads()
        try:
            remove_unused_copies(self._database, self._home)
        except (SQLAlchemyError, OSError) as error:
            log.warning("unused copies of files are removed later: %s", error)

    def _requeue_unstarted(self) -> None:
        try:
            self._jobs.requeue_unstarted()
        except SQLAlchemyError as error:
            log.warning("cannot look for unstarted jobs: %s", short_message(error))

    def _send_heartbeat(self) -> None:
        memory = memory_of(self._device, [os.getpid(), *self._child_runner.processes])
        with suppress(Stopped):
            self._with_retry(lambda: self._process.heartbeat(memory, self._self_test.fault))
            try:
                if self._health_file is not None:
                    self._health_file.beat(self._self_test.fault)
            except OSError as error:
                log.warning("the health file cannot be written: %s", error)

    def _shutdown(self) -> None:
        log.info("worker shuts down", extra={"worker": self._process.id})
        seconds = SHUTDOWN_SECONDS + 2.0 + (2 * LAST_SECONDS if self._store.remote else 0)
        idle = self._executor.child_lock.acquire(timeout=seconds)
        try:
            self._jobs.stop()  # requeues its jobs, so the shutdown is not counted as a crash
            self._process.leave(self.stopping)
        finally:
            self._child_runner.clear()
            if self._health_file is not None:
                self._health_file.end()
            if self._gpu_lease is not None:
                self._gpu_lease.lease.release()
            if idle:
                self._executor.child_lock.release()
            self._database.close()

    def _is_due(self, what: str, seconds: float) -> bool:
        """Whether it is the first time, or so many seconds have passed since the last time that this was true."""
        now = time.monotonic()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + seconds
        return True

    def _with_retry(self, action: Callable[[], T]) -> T:
        return self._database.with_retry(action, self.stopping)
