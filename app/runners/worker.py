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

from app.experiments.parcels import pack
from app.experiments.plan import Task, plan
from app.experiments.spec import Spec
from app.runners.claims import ANY_GPU, Claim, claim_gpu
from app.runners.courier import LAST_SECONDS, patiently
from app.runners.crew import heed_parent
from app.runners.departure import leave_behind, leave_within
from app.runners.desk import ChildDied, Desk, Interrupted, TaskFailed
from app.runners.devices import checked_device, describe, memory_of
from app.runners.ear import Ear
from app.runners.errands import LEAVE_PATIENCE, Errands
from app.runners.faults import FULL, WorkerTrouble, disk_fault
from app.runners.fitness import Fitness
from app.runners.heartbeat import Heartbeat
from app.runners.jobs import GPU, HandedBack, Jobs, task_job
from app.runners.reaper import Strays
from app.runners.relay import outcome
from app.runners.roster import Member
from app.settings import Settings
from app.storage.database import Database, Stopped
from app.storage.folders import Storage
from app.storage.identity import Identity
from app.storage.ledger import Ledger
from app.storage.migrations import migrate
from app.storage.store import open_store
from app.storage.tidying import tidy

log = logging.getLogger(__name__)

T = TypeVar("T")

NICENESS = 10
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
        if not worker.stopping.is_set():
            worker.stopping.set()
            leave_within()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    if attached:
        heed_parent(worker.call)
    worker.run()
    leave_behind()


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
        self._fitness = Fitness(self._storage, lambda: self._desk.prove(self._check))
        self._ready = False
        self._at_work: set[str] = set()
        self._idle_since = time.monotonic()
        self._joined = threading.Event()
        self._ear = Ear(lambda: self._member.lease.listening)
        self._database = Database(settings.database, connections=_CONNECTIONS)
        self._tidy_at = 0.0
        self._ledger = Ledger(self._database)
        self._errands = Errands(
            self._database,
            self._storage,
            self._store,
            settings.data,
            self._ear,
            self.stopping,
            me=lambda: self._member.id,
            desk=lambda: self._desk,
        )

    def run(self) -> None:
        try:
            patiently(self._store.probe, self._check)  # who cannot reach the store must not take work
            self._insist(lambda: patiently(Identity(self._database, self._store).check, self._check))
            self._insist(self._join)
        except Stopped:
            self._database.close()
            return
        log.info("worker started on %s", self._device, extra={"worker": self._member.id})
        self._prove()
        path, said = self._settings.heartbeat, self._fitness.ailment
        self._heartbeat = None if path is None else Heartbeat(path, self._member.id, said)
        strays = Strays(self._jobs, self._member.id, lambda: set(self._at_work))
        if said is None:
            with self._at_desk:
                self._desk.warm_up()
        self._greet()
        greeted = time.monotonic()
        while not self.stopping.wait(1.0):
            strays.look()
            self._rest()
            self._tidy()
            self._prove()
            if time.monotonic() - greeted > _GREET_SECONDS or said != self._fitness.ailment:
                greeted, said = time.monotonic(), self._fitness.ailment
                self._greet()
        self._leave()

    def call(self) -> None:
        """There is work: look into the queue now. Whoever has not joined yet looks when it does."""
        if self._joined.is_set():
            self._jobs.call()

    def _join(self) -> None:
        """Take part in the work, or leave no trace of having tried: a full disk is waited for."""
        with self._database.alone("start"):
            migrate(self._database)
            lease = self._settings.lease_seconds
            if self._device == ANY_GPU:
                self._claim = claim_gpu(self._database, seconds=lease, taken=self._yield_gpu)
                self._device = self._claim.shown
                self._desk = Desk(self._claim.pinned, stall_seconds=self._settings.stall_seconds)
            member = Member(
                self._database,
                "worker",
                self._device,
                describe(self._device),
                lease_seconds=lease,
                hear=self._ear.hear,
                back=self._ear.hear_everything,
            )
            jobs = Jobs(self._database, member.id, GPU, self.perform, self._room)
            self._member, self._jobs = member, jobs  # before jobs start: the first may come at once
            try:
                jobs.start()
            except BaseException:
                member.lease.release()
                raise
        self._joined.set()

    def _room(self) -> int:
        """How many tasks this worker may have."""
        return int(self._fitness.ready and not self.stopping.is_set())

    def _prove(self) -> None:
        """Prove that this worker can work, when it is time to, and look for work when it can."""
        if self._fitness.due and self._at_desk.acquire(blocking=False):
            try:
                with suppress(Stopped):
                    self._fitness.prove()
            finally:
                self._at_desk.release()
        if self._fitness.ready and not self._ready:
            self._jobs.call()
        self._ready = self._fitness.ready

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
                self._return(job)
                raise HandedBack("two jobs came at once")
            returns = self._member.returns
            try:
                self._perform(experiment, name, issue)
            except WorkerTrouble as trouble:
                self._return(job)
                raise HandedBack(str(trouble)) from None
            finally:
                self._at_desk.release()
            if self._member.returns != returns:
                raise HandedBack("others have the job")  # DBOS would wait here until they are done with it
        except Stopped as error:
            raise HandedBack(str(error)) from error
        finally:
            self._at_work.discard(job)
            self._idle_since = time.monotonic()

    def _return(self, job: str) -> None:
        """Put a job back into the queue at once; where the database refuses, it counts as a stray soon."""
        with suppress(SQLAlchemyError):
            self._jobs.hand_back(self._member.id, only={job})

    def _perform(self, experiment: str, name: str, issue: int) -> None:
        if self.stopping.is_set():
            raise HandedBack("the worker leaves")
        if self._fitness.ailment is not None:
            raise WorkerTrouble(self._fitness.ailment)
        me, ledger = self._member.id, self._ledger
        self._ear.listen_for(experiment)
        text = self._insist(lambda: ledger.begin(experiment, name, issue, me))
        if text is None:
            return
        extra = {"experiment": experiment, "task": name, "worker": me}
        began = time.monotonic()
        try:
            known = _known(text)
            task = known.tasks[name]
            result, unsaid = self._errands.compute(experiment, known.spec, task)
            seconds = time.monotonic() - began
            parcel, events = pack(result), [*unsaid, *outcome(known.spec, task, result, seconds)]
        except Interrupted:
            if self.stopping.is_set():
                self._insist(lambda: ledger.hand_back(experiment, name, me))
                raise HandedBack("the worker leaves") from None
            self._insist(lambda: ledger.stop(experiment, name, me))
        except ChildDied:
            log.warning("the child process died once too often", extra=extra)
        except WorkerTrouble as trouble:
            self._blame(experiment, name, trouble)
        except TaskFailed as failure:
            reason = str(failure)
            log.warning("task failed: %s", reason, extra=extra)
            self._insist(lambda: ledger.fail(experiment, name, me, reason))
        except Stopped:
            raise
        except Exception as error:
            if (disk := disk_fault(error)) is not None:
                self._blame(experiment, name, WorkerTrouble(str(disk), full=disk.errno in FULL))
                return
            reason = f"unexpectedly: {type(error).__name__}: {error}"
            log.exception("task failed unexpectedly", extra=extra)
            self._insist(lambda: ledger.fail(experiment, name, me, reason))
        else:
            if self._insist(lambda: ledger.complete(experiment, name, me, parcel, seconds, events)):
                self._fitness.praise()
                log.info("task done", extra=extra | {"seconds": round(seconds, 3)})
            else:
                log.warning("the task was taken from this worker meanwhile", extra=extra)
                raise HandedBack("others have the job")

    def _check(self) -> None:
        if self.stopping.is_set():
            raise Stopped("the worker leaves")

    def _blame(self, experiment: str, task: str, trouble: WorkerTrouble) -> None:
        """A task could not be done here. Raises the trouble when it is to be tried again, here or elsewhere.

        It is counted only where this worker then proves to be well: one bad worker must not fail an experiment.
        """
        me, reason = self._member.id, str(trouble)
        log.warning("the task could not be done here: %s", reason, extra={"experiment": experiment, "task": task})
        try:
            mine = self.stopping.is_set() or self._fitness.blame(trouble)
        except Stopped:
            mine = True
        if mine:
            self._insist(lambda: self._ledger.hand_back(experiment, task, me))
        elif not self._insist(lambda: self._ledger.blame(experiment, task, me, reason)):
            return
        raise trouble

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
        self._errands.forget()
        try:
            tidy(self._database, self._storage)
        except (SQLAlchemyError, OSError) as error:
            log.warning("copies of files that nobody needs are removed later: %s", error)

    def _greet(self) -> None:
        memory = memory_of(self._device, [os.getpid(), *self._desk.processes])
        with suppress(Stopped):
            self._insist(lambda: self._member.greet(memory, self._fitness.ailment))
            if self._heartbeat is not None:
                self._beat(self._heartbeat)

    def _beat(self, heartbeat: Heartbeat) -> None:
        try:
            heartbeat.beat(self._fitness.ailment)
        except OSError as error:
            log.warning("the heartbeat cannot be written: %s", error)

    def _leave(self) -> None:
        log.info("worker leaves", extra={"worker": self._member.id})
        patient = self._at_desk.acquire(timeout=LEAVE_PATIENCE + 2.0 + (2 * LAST_SECONDS if self._store.remote else 0))
        try:
            if not patient:
                self._give_up()
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

    def _give_up(self) -> None:
        """Hand tasks back that do not end, so that nobody takes this worker for one that died under them."""
        for job in set(self._at_work):
            experiment, _, rest = job.partition(":")
            task = rest.rpartition(":")[0]
            with suppress(Stopped):
                self._insist(partial(self._ledger.hand_back, experiment, task, self._member.id))

    def _insist(self, action: Callable[[], T]) -> T:
        return self._database.insist(action, self.stopping)
