"""A worker: takes tasks from the queue `gpu`, one at a time, and lets a warm child process compute them.

This process has no torch in it, so it stays small, notices at once when a task is no longer wanted, and survives
whatever a task does to the child.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from types import FrameType
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.devices import checked_device, describe, memory_of
from valleyscope.app.experiments.plan import Task, plan
from valleyscope.app.experiments.result_codec import encode
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.jobs.file_sync import LAST_SECONDS, retry_store
from valleyscope.app.jobs.process_registry import ProcessEntry
from valleyscope.app.jobs.queue import GPU, JobQueue, Requeue, task_job
from valleyscope.app.jobs.reaper import UnstartedJobs
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.settings import Settings
from valleyscope.app.shutdown import exit_after, exit_despite_threads
from valleyscope.app.storage.cleanup import remove_unused_copies
from valleyscope.app.storage.database import Database, Stopped
from valleyscope.app.storage.file_store import open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.tasks.failures import FULL, WorkerFault, disk_fault
from valleyscope.app.worker.cancel_watch import CancelWatch
from valleyscope.app.worker.child_runner import ChildDied, ChildRunner, Interrupted, TaskFailed
from valleyscope.app.worker.gpu_lease import ANY_GPU, GpuLease, lease_gpu
from valleyscope.app.worker.health_file import HealthFile
from valleyscope.app.worker.progress_buffer import outcome_events
from valleyscope.app.worker.self_test import WorkerSelfTest
from valleyscope.app.worker.supervisor import watch_parent
from valleyscope.app.worker.task_executor import LEAVE_PATIENCE, TaskExecutor

log = logging.getLogger(__name__)

T = TypeVar("T")

NICENESS = 10
_DESK_PATIENCE = 2.0
_FRESH_SECONDS = 60.0
_WARM_SECONDS = 900.0
_HEARTBEAT_SECONDS = 10.0
_CONNECTIONS = 2  # that are kept open, beside that of the lease: Postgres pays for each, and there may be many workers
_TIDY_SECONDS = 600.0


def run_worker(settings: Settings, *, device: str | None = None, attached: bool = False) -> None:
    """Work until SIGTERM or SIGINT, then hand back what is unfinished. Call it in the main thread.

    `device` is cpu, or cuda:N, which the worker's child then sees as its only one; gpu for any that
    no other worker has; by default the first GPU, if any. An attached worker belongs to the server that started it.
    """
    device = device if device == ANY_GPU else checked_device(device)
    os.nice(NICENESS)
    worker = Worker(settings, device)

    def leave(_number: int, _frame: FrameType | None) -> None:
        if not worker.stopping.is_set():
            worker.stopping.set()
            exit_after()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    if attached:
        watch_parent(worker.call)
    worker.run()
    exit_despite_threads()


@dataclass(frozen=True)
class _Known:
    spec: Spec
    tasks: dict[str, Task]


@lru_cache(maxsize=4)
def _known(text: str) -> _Known:
    spec = Spec.model_validate_json(text)
    return _Known(spec, {task.id: task for task in plan(spec)})


class Worker:
    """One worker on one device."""

    def __init__(self, settings: Settings, device: str) -> None:
        self.stopping = threading.Event()
        self._settings = settings
        self._storage = Home(settings.home)
        self._store = open_store(settings.store, self._storage)
        self._device = device
        self._gpu_lease: GpuLease | None = None
        self._child_runner = ChildRunner(device, stall_seconds=settings.stall_seconds)
        self._child_lock = threading.Lock()
        self._self_test = WorkerSelfTest(self._storage, lambda: self._child_runner.self_test(self._check))
        self._ready = False
        self._at_work: set[str] = set()
        self._idle_since = time.monotonic()
        self._joined = threading.Event()
        self._cancel_watch = CancelWatch(lambda: self._process.lease.listening)
        self._database = Database(settings.database, connections=_CONNECTIONS)
        self._tidy_at = 0.0
        self._task_table = TaskTable(self._database)
        self._executor = TaskExecutor(
            self._database,
            self._storage,
            self._store,
            settings.data,
            self._cancel_watch,
            self.stopping,
            me=lambda: self._process.id,
            child_runner=lambda: self._child_runner,
        )

    def run(self) -> None:
        try:
            retry_store(self._store.probe, self._check)  # who cannot reach the store must not take work
            self._with_retry(lambda: retry_store(HomeIdentity(self._database, self._store).check, self._check))
            self._with_retry(self._join)
        except Stopped:
            self._database.close()
            return
        log.info("worker started on %s", self._device, extra={"worker": self._process.id})
        self._run_self_test()
        path, said = self._settings.heartbeat, self._self_test.fault
        self._heartbeat = None if path is None else HealthFile(path, self._process.id, said)
        unstarted = UnstartedJobs(self._jobs, self._process.id, lambda: set(self._at_work))
        if said is None:
            with self._child_lock:
                self._child_runner.warm_up()
        self._send_heartbeat()
        greeted = time.monotonic()
        while not self.stopping.wait(1.0):
            unstarted.look()
            self._rest()
            self._tidy()
            self._run_self_test()
            if time.monotonic() - greeted > _HEARTBEAT_SECONDS or said != self._self_test.fault:
                greeted, said = time.monotonic(), self._self_test.fault
                self._send_heartbeat()
        self._leave()

    def call(self) -> None:
        """There is work: look into the queue now. Whoever has not joined yet looks when it does."""
        if self._joined.is_set():
            self._jobs.call()

    def _join(self) -> None:
        """Take part in the work, or leave no trace of having tried: a full disk is waited for."""
        with self._database.exclusive("start"):
            migrate(self._database)
            lease = self._settings.lease_seconds
            if self._device == ANY_GPU:
                self._gpu_lease = lease_gpu(self._database, seconds=lease, taken=self._yield_gpu)
                self._device = self._gpu_lease.shown
                self._child_runner = ChildRunner(self._gpu_lease.pinned, stall_seconds=self._settings.stall_seconds)
            member = ProcessEntry(
                self._database,
                "worker",
                self._device,
                describe(self._device),
                lease_seconds=lease,
                hear=self._cancel_watch.hear,
                back=self._cancel_watch.hear_everything,
            )
            jobs = JobQueue(self._database, member.id, GPU, self.perform, self._room)
            self._process, self._jobs = member, jobs  # before jobs start: the first may come at once
            try:
                jobs.start()
            except BaseException:
                member.lease.release()
                raise
        self._joined.set()

    def _room(self) -> int:
        """How many tasks this worker may have."""
        return int(self._self_test.ready and not self.stopping.is_set())

    def _run_self_test(self) -> None:
        """Prove that this worker can work, when it is time to, and look for work when it can."""
        if self._self_test.due and self._child_lock.acquire(blocking=False):
            try:
                with suppress(Stopped):
                    self._self_test.run()
            finally:
                self._child_lock.release()
        if self._self_test.ready and not self._ready:
            self._jobs.call()
        self._ready = self._self_test.ready

    def _yield_gpu(self) -> None:
        """Another worker took the GPU while this one was silent: end, and whoever restarts workers finds a free one."""
        log.error("%s belongs to another worker now; this one hands its task back and ends", self._device)
        self.stopping.set()

    def perform(self, experiment: str, name: str, issue: int) -> None:
        """The job of one task."""
        job = task_job(experiment, name, issue)
        self._at_work.add(job)
        try:
            if not self._child_lock.acquire(timeout=_DESK_PATIENCE):
                self._return(job)
                raise Requeue("two jobs came at once")
            returns = self._process.times_evicted
            try:
                self._perform(experiment, name, issue)
            except WorkerFault as trouble:
                self._return(job)
                raise Requeue(str(trouble)) from None
            finally:
                self._child_lock.release()
            if self._process.times_evicted != returns:
                raise Requeue("others have the job")  # DBOS would wait here until they are done with it
        except Stopped as error:
            raise Requeue(str(error)) from error
        finally:
            self._at_work.discard(job)
            self._idle_since = time.monotonic()

    def _return(self, job: str) -> None:
        """Put a job back into the queue at once; where the database refuses, it counts as a stray soon."""
        with suppress(SQLAlchemyError):
            self._jobs.hand_back(self._process.id, only={job})

    def _perform(self, experiment: str, name: str, issue: int) -> None:
        if self.stopping.is_set():
            raise Requeue("the worker leaves")
        if self._self_test.fault is not None:
            raise WorkerFault(self._self_test.fault)
        me, task_table = self._process.id, self._task_table
        self._cancel_watch.listen_for(experiment)
        text = self._with_retry(lambda: task_table.begin(experiment, name, issue, me))
        if text is None:
            return
        extra = {"experiment": experiment, "task": name, "worker": me}
        began = time.monotonic()
        try:
            known = _known(text)
            task = known.tasks[name]
            result, unsaid = self._executor.compute(experiment, known.spec, task)
            seconds = time.monotonic() - began
            payload, events = encode(result), [*unsaid, *outcome_events(known.spec, task, result, seconds)]
        except Interrupted:
            if self.stopping.is_set():
                self._with_retry(lambda: task_table.hand_back(experiment, name, me))
                raise Requeue("the worker leaves") from None
            self._with_retry(lambda: task_table.stop(experiment, name, me))
        except ChildDied:
            log.warning("the child process died once too often", extra=extra)
        except WorkerFault as trouble:
            self._blame(experiment, name, trouble)
        except TaskFailed as failure:
            reason = str(failure)
            log.warning("task failed: %s", reason, extra=extra)
            self._with_retry(lambda: task_table.fail(experiment, name, me, reason))
        except Stopped:
            raise
        except Exception as error:
            if (disk := disk_fault(error)) is not None:
                self._blame(experiment, name, WorkerFault(str(disk), full=disk.errno in FULL))
                return
            reason = f"unexpectedly: {type(error).__name__}: {error}"
            log.exception("task failed unexpectedly", extra=extra)
            self._with_retry(lambda: task_table.fail(experiment, name, me, reason))
        else:
            if self._with_retry(lambda: task_table.complete(experiment, name, me, payload, seconds, events)):
                self._self_test.reset_backoff()
                log.info("task done", extra=extra | {"seconds": round(seconds, 3)})
            else:
                log.warning("the task was taken from this worker meanwhile", extra=extra)
                raise Requeue("others have the job")

    def _check(self) -> None:
        if self.stopping.is_set():
            raise Stopped("the worker leaves")

    def _blame(self, experiment: str, task: str, trouble: WorkerFault) -> None:
        """A task could not be done here. Raises the trouble when it is to be tried again, here or elsewhere.

        It is counted only where this worker then proves to be well: one bad worker must not fail an experiment.
        """
        me, reason = self._process.id, str(trouble)
        log.warning("the task could not be done here: %s", reason, extra={"experiment": experiment, "task": task})
        try:
            mine = self.stopping.is_set() or self._self_test.run_after_failure(trouble)
        except Stopped:
            mine = True
        if mine:
            self._with_retry(lambda: self._task_table.hand_back(experiment, task, me))
        elif not self._with_retry(lambda: self._task_table.record_failed_attempt(experiment, task, me, reason)):
            return
        raise trouble

    def _rest(self) -> None:
        """Give back memory that nobody needs.

        After a minute without work a new child takes the place of the one that has data sets and networks of past
        experiments in it; it has torch loaded, so the next task still starts at once. After a long time it ends, too.
        """
        idle = time.monotonic() - self._idle_since
        if self._at_work or not self._child_runner.warm or idle < _FRESH_SECONDS:
            return
        with self._child_lock:
            if idle > _WARM_SECONDS:
                self._child_runner.clear()
            elif self._child_runner.used:
                self._child_runner.clear()
                self._child_runner.warm_up()

    def _tidy(self) -> None:
        """Remove copies that nobody needs, now and then, and where there is a store that has them."""
        if not self._store.remote or time.monotonic() < self._tidy_at:
            return
        self._tidy_at = time.monotonic() + _TIDY_SECONDS
        self._executor.forget()
        try:
            remove_unused_copies(self._database, self._storage)
        except (SQLAlchemyError, OSError) as error:
            log.warning("copies of files that nobody needs are removed later: %s", error)

    def _send_heartbeat(self) -> None:
        memory = memory_of(self._device, [os.getpid(), *self._child_runner.processes])
        with suppress(Stopped):
            self._with_retry(lambda: self._process.heartbeat(memory, self._self_test.fault))
            if self._heartbeat is not None:
                self._beat(self._heartbeat)

    def _beat(self, heartbeat: HealthFile) -> None:
        try:
            heartbeat.beat(self._self_test.fault)
        except OSError as error:
            log.warning("the heartbeat cannot be written: %s", error)

    def _leave(self) -> None:
        log.info("worker leaves", extra={"worker": self._process.id})
        patient = self._child_lock.acquire(
            timeout=LEAVE_PATIENCE + 2.0 + (2 * LAST_SECONDS if self._store.remote else 0)
        )
        try:
            if not patient:
                self._give_up()
            self._jobs.stop()
            self._process.leave(self.stopping)
        finally:
            self._child_runner.clear()
            if self._heartbeat is not None:
                self._heartbeat.end()
            if self._gpu_lease is not None:
                self._gpu_lease.lease.release()
            if patient:
                self._child_lock.release()
            self._database.close()

    def _give_up(self) -> None:
        """Hand tasks back that do not end, so that nobody takes this worker for one that died under them."""
        for job in set(self._at_work):
            experiment, _, rest = job.partition(":")
            task = rest.rpartition(":")[0]
            with suppress(Stopped):
                self._with_retry(partial(self._task_table.hand_back, experiment, task, self._process.id))

    def _with_retry(self, action: Callable[[], T]) -> T:
        return self._database.with_retry(action, self.stopping)
