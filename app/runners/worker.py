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
from functools import lru_cache
from types import FrameType
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from app.experiments.experiment import WORK
from app.experiments.parcels import pack
from app.experiments.plan import Kind, Task, plan
from app.experiments.results import Result
from app.experiments.spec import Spec
from app.runners.child import Assignment
from app.runners.claims import ANY_GPU, Claim, claim_gpu
from app.runners.courier import TaskCourier, patiently
from app.runners.crew import heed_parent
from app.runners.desk import ChildDied, Desk, Interrupted, TaskFailed
from app.runners.devices import checked_device, describe, memory_of
from app.runners.heartbeat import Heartbeat
from app.runners.jobs import GPU, HandedBack, Jobs, task_job
from app.runners.reaper import Strays
from app.runners.relay import Relay, outcome
from app.runners.roster import Member
from app.settings import Settings
from app.storage.database import Database, Stopped
from app.storage.folders import Storage
from app.storage.ledger import Found, Ledger
from app.storage.migrations import migrate
from app.storage.store import open_store
from app.storage.tidying import tidy

log = logging.getLogger(__name__)

T = TypeVar("T")

NICENESS = 10
_CANCEL_PATIENCE = 1.0
_LEAVE_PATIENCE = 8.0
_DESK_PATIENCE = 2.0
_FRESH_SECONDS = 60.0
_WARM_SECONDS = 900.0
_GREET_SECONDS = 10.0
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
        worker.stopping.set()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    if attached:
        heed_parent(worker.call)
    worker.run()


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
        self._storage = Storage(settings.home)
        self._store = open_store(settings.store, self._storage)
        self._device = device
        self._claim: Claim | None = None
        self._desk = Desk(device, stall_seconds=settings.stall_seconds)
        self._at_desk = threading.Lock()
        self._at_work: set[str] = set()
        self._idle_since = time.monotonic()
        self._free = threading.Event()
        self._database = Database(settings.database, connections=_CONNECTIONS)
        self._tidy_at = 0.0
        self._brought: set[tuple[str, str]] = set()
        self._ledger = Ledger(self._database)

    def run(self) -> None:
        try:
            patiently(self._store.probe, self._check)  # who cannot reach the store must not take work
            self._insist(self._join)
        except Stopped:
            self._database.close()
            return
        path = self._settings.heartbeat
        self._heartbeat = None if path is None else Heartbeat(path, self._member.id)
        log.info("worker started on %s", self._device, extra={"worker": self._member.id})
        strays = Strays(self._jobs, self._member.id, lambda: set(self._at_work))
        with self._at_desk:
            self._desk.warm_up()
        self._greet()
        greeted = time.monotonic()
        fetching = threading.Thread(target=self._fetch, name="fetching", daemon=True)
        fetching.start()
        while not self.stopping.wait(1.0):
            strays.look()
            self._rest()
            self._tidy()
            if time.monotonic() - greeted > _GREET_SECONDS:
                greeted = time.monotonic()
                self._greet()
        self._free.set()
        fetching.join()
        self._leave()

    def call(self) -> None:
        """There is work: look into the queue now."""
        if not self._at_work:
            self._free.set()

    def _join(self) -> None:
        """Take part in the work, or leave no trace of having tried: a full disk is waited for."""
        with self._database.alone("start"):
            migrate(self._database)
            lease = self._settings.lease_seconds
            if self._device == ANY_GPU:
                self._claim = claim_gpu(self._database, seconds=lease, taken=self._yield_gpu)
                self._device = self._claim.shown
                self._desk = Desk(self._claim.pinned, stall_seconds=self._settings.stall_seconds)
            member = Member(self._database, "worker", self._device, describe(self._device), lease_seconds=lease)
            jobs = Jobs(self._database, member.id, GPU, self.perform)
            self._member, self._jobs = member, jobs  # before jobs start: the first may come at once
            try:
                jobs.start()
            except BaseException:
                member.lease.release()
                raise

    def _yield_gpu(self) -> None:
        """Another worker took the GPU while this one was silent: end, and whoever restarts workers finds a free one."""
        log.error("%s belongs to another worker now; this one hands its task back and ends", self._device)
        self.stopping.set()

    def perform(self, experiment: str, name: str, issue: int) -> None:
        """The job of one task."""
        job = task_job(experiment, name, issue)
        self._at_work.add(job)
        try:
            if not self._at_desk.acquire(timeout=_DESK_PATIENCE):
                with suppress(SQLAlchemyError):  # else it counts as a stray soon
                    self._jobs.hand_back(self._member.id, only={job})
                raise HandedBack("two jobs came at once")
            returns = self._member.returns
            try:
                self._perform(experiment, name, issue)
            finally:
                self._at_desk.release()
                self._free.set()
            if self._member.returns != returns:
                raise HandedBack("others have the job")  # DBOS would wait here until they are done with it
        except Stopped as error:
            raise HandedBack(str(error)) from error
        finally:
            self._at_work.discard(job)
            self._idle_since = time.monotonic()

    def _fetch(self) -> None:
        """Whenever a task has ended, or somebody calls, take the next one at once."""
        while self._free.wait() and not self.stopping.is_set():
            self._free.clear()
            try:
                self._jobs.take_next()
            except Exception as error:  # only a matter of speed: DBOS looks into the queue by itself, too
                log.warning("the next task could not be fetched at once: %s", error)

    def _perform(self, experiment: str, name: str, issue: int) -> None:
        if self.stopping.is_set():
            raise HandedBack("the worker leaves")
        me, ledger = self._member.id, self._ledger
        text = self._insist(lambda: ledger.begin(experiment, name, issue, me))
        if text is None:
            return
        extra = {"experiment": experiment, "task": name, "worker": me}
        began = time.monotonic()
        try:
            known = _known(text)
            task = known.tasks[name]
            result, unsaid = self._compute(experiment, known.spec, task)
            seconds = time.monotonic() - began
            parcel, events = pack(result), [*unsaid, *outcome(known.spec, task, result, seconds)]
        except Interrupted:
            if self.stopping.is_set():
                self._insist(lambda: ledger.hand_back(experiment, name, me))
                raise HandedBack("the worker leaves") from None
            self._insist(lambda: ledger.stop(experiment, name, me))
        except ChildDied:
            log.warning("the child process died once too often", extra=extra)
        except TaskFailed as failure:
            reason = str(failure)
            log.warning("task failed: %s", reason, extra=extra)
            self._insist(lambda: ledger.fail(experiment, name, me, reason))
        except Stopped:
            raise
        except Exception as error:
            reason = f"unexpectedly: {type(error).__name__}: {error}"
            log.exception("task failed unexpectedly", extra=extra)
            self._insist(lambda: ledger.fail(experiment, name, me, reason))
        else:
            if self._insist(lambda: ledger.complete(experiment, name, me, parcel, seconds, events)):
                log.info("task done", extra=extra | {"seconds": round(seconds, 3)})
            else:
                log.warning("the task was taken from this worker meanwhile", extra=extra)
                raise HandedBack("others have the job")

    def _compute(self, experiment: str, spec: Spec, task: Task) -> tuple[Result, Found]:
        """The result of a task, and the events that were not passed on yet."""
        courier = TaskCourier(self._store, experiment, spec, task)
        place = (experiment, task.subject)
        if task.kind is not Kind.SURFACE or place not in self._brought:
            patiently(courier.bring, lambda: self._check_wanted(experiment, task))
            if task.kind is Kind.SURFACE:
                self._brought.add(place)  # all tiles of a plane read the same files, which do not change any more
        assignment = self._assignment(experiment, spec, task)
        relay = Relay(task)
        try:
            with courier.delivering():
                result = self._finish(experiment, assignment, relay)
        except TaskFailed:
            courier.deliver_if_possible()
            raise
        except Interrupted:
            if self.stopping.is_set():  # else it may be another's task by now
                courier.deliver_if_possible()
            raise
        if self._store.remote:
            self._check_wanted(experiment, task)
            patiently(courier.deliver, lambda: self._check_wanted(experiment, task))
        return result, relay.take()[1]

    def _finish(self, experiment: str, assignment: Assignment, relay: Relay) -> Result:
        while True:
            try:
                return self._desk.run(assignment, relay.hear, lambda: self._look(experiment, relay))
            except ChildDied as death:
                self._mourn(experiment, assignment.task.id, death)

    def _look(self, experiment: str, relay: Relay) -> float | None:
        """Pass on what was heard; returns for how long the task may save its state when it has to stop."""
        me, ledger, task = self._member.id, self._ledger, relay.task.id
        if self.stopping.is_set():
            return _LEAVE_PATIENCE
        if relay.due:
            share, events = relay.take()
            wanted = self._insist(lambda: ledger.advance(experiment, task, me, share, events))
        else:
            wanted = self._insist(lambda: ledger.is_wanted(experiment, task, me))
        return None if wanted else _CANCEL_PATIENCE

    def _check(self) -> None:
        if self.stopping.is_set():
            raise Stopped("the worker leaves")

    def _check_wanted(self, experiment: str, task: Task) -> None:
        me = self._member.id
        if self.stopping.is_set() or not self._insist(lambda: self._ledger.is_wanted(experiment, task.id, me)):
            raise Interrupted

    def _mourn(self, experiment: str, task: str, death: ChildDied) -> None:
        """A child died; raises its death when the task is not to be tried again."""
        me = self._member.id
        if not self._insist(lambda: self._ledger.mourn(experiment, task, me, str(death))):
            raise death
        log.warning("the child process died (%s); trying again", death, extra={"experiment": experiment, "task": task})

    def _assignment(self, experiment: str, spec: Spec, task: Task) -> Assignment:
        directory = self._storage.experiment(experiment)
        (directory / WORK).mkdir(parents=True, exist_ok=True)  # the API made them on its host, which may be another
        checkpoints = {
            name: self._storage.checkpoint(minimum.checkpoint)
            for name, minimum in spec.minima.items()
            if minimum.checkpoint is not None
        }
        wanted = checkpoints.get(task.subject) if task.kind is Kind.TRAIN else None
        if wanted is not None and not (wanted.is_file() or (directory / f"{task.subject}.safetensors").is_file()):
            raise TaskFailed(f"minima.{task.subject}.checkpoint={wanted.stem!r} is gone: upload it again")
        return Assignment(task, spec, directory, self._settings.data, checkpoints)

    def _rest(self) -> None:
        """Give back memory that nobody needs.

        After a minute without work a new child takes the place of the one that has data sets and networks of past
        experiments in it; it has torch loaded, so the next task still starts at once. After a long time it ends, too.
        """
        idle = time.monotonic() - self._idle_since
        if self._at_work or not self._desk.warm or idle < _FRESH_SECONDS:
            return
        with self._at_desk:
            if idle > _WARM_SECONDS:
                self._desk.clear()
            elif self._desk.used:
                self._desk.clear()
                self._desk.warm_up()

    def _tidy(self) -> None:
        """Remove copies that nobody needs, now and then, and where there is a store that has them."""
        if not self._store.remote or time.monotonic() < self._tidy_at:
            return
        self._tidy_at = time.monotonic() + _TIDY_SECONDS
        self._brought.clear()
        try:
            tidy(self._database, self._storage)
        except (SQLAlchemyError, OSError) as error:
            log.warning("copies of files that nobody needs are removed later: %s", error)

    def _greet(self) -> None:
        memory = memory_of(self._device, [os.getpid(), *self._desk.processes])
        with suppress(Stopped):
            self._insist(lambda: self._member.greet(memory))
            if self._heartbeat is not None:
                self._heartbeat.beat()

    def _leave(self) -> None:
        log.info("worker leaves", extra={"worker": self._member.id})
        patient = self._at_desk.acquire(timeout=_LEAVE_PATIENCE + 2.0)
        try:
            self._jobs.stop()
            self._member.leave(self.stopping)
        finally:
            self._desk.clear()
            if self._heartbeat is not None:
                self._heartbeat.end()
            if self._claim is not None:
                self._claim.lease.release()
            if patient:
                self._at_desk.release()
            self._database.close()

    def _insist(self, action: Callable[[], T]) -> T:
        return self._database.insist(action, self.stopping)
