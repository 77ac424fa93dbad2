"""Errands: the tasks that a worker does, each from the files that it needs to its result."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.experiments.experiment import WORK
from app.experiments.plan import Kind, Task
from app.experiments.results import Result
from app.experiments.spec import Spec
from app.runners.child import Assignment
from app.runners.courier import TaskCourier, patiently
from app.runners.desk import ChildDied, Desk, Interrupted, TaskFailed
from app.runners.ear import Ear
from app.runners.faults import WorkerTrouble
from app.runners.relay import Relay
from app.storage.database import Database
from app.storage.folders import Storage
from app.storage.ledger import Found, Ledger
from app.storage.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

LEAVE_PATIENCE = 8.0
"""For so long a task may save its state when its worker leaves."""
_CANCEL_PATIENCE = 1.0


class Errands:
    """Runs tasks at a desk, and tells the ledger how far they are."""

    def __init__(
        self,
        database: Database,
        storage: Storage,
        store: Store,
        data: Path | None,
        ear: Ear,
        stopping: threading.Event,
        *,
        me: Callable[[], str],
        desk: Callable[[], Desk],
    ) -> None:
        """`me` is the name of this worker on the roster; it, and the desk, are known once the worker has joined."""
        self._database = database
        self._ledger = Ledger(database)
        self._storage = storage
        self._store = store
        self._data = data
        self._ear = ear
        self._stopping = stopping
        self._me = me
        self._desk = desk
        self._brought: set[tuple[str, str]] = set()

    def forget(self) -> None:
        """Files that were brought may not be here any more."""
        self._brought.clear()

    def compute(self, experiment: str, spec: Spec, task: Task) -> tuple[Result, Found]:
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
        except (TaskFailed, WorkerTrouble):
            courier.deliver_if_possible()
            raise
        except Interrupted:
            if self._stopping.is_set():  # else it may be another's task by now
                courier.deliver_briefly()
            raise
        if self._store.remote:
            self._check_wanted(experiment, task)
            patiently(courier.deliver, lambda: self._check_wanted(experiment, task))
        return result, relay.take()[1]

    def _finish(self, experiment: str, assignment: Assignment, relay: Relay) -> Result:
        while True:
            try:
                return self._desk().run(assignment, relay.hear, lambda: self._look(experiment, relay))
            except ChildDied as death:
                self._mourn(experiment, assignment.task.id, death)

    def _look(self, experiment: str, relay: Relay) -> float | None:
        """Pass on what was heard; returns for how long the task may save its state when it has to stop."""
        me, ledger, task = self._me(), self._ledger, relay.task.id
        if self._stopping.is_set():
            return LEAVE_PATIENCE
        if not (relay.due or self._ear.curious):
            return None
        self._ear.note_answer()
        if relay.due:
            share, events = relay.take()
            wanted = self._insist(lambda: ledger.advance(experiment, task, me, share, events))
        else:
            wanted = self._insist(lambda: ledger.is_wanted(experiment, task, me))
        return None if wanted else _CANCEL_PATIENCE

    def _check_wanted(self, experiment: str, task: Task) -> None:
        me = self._me()
        if self._stopping.is_set() or not self._insist(lambda: self._ledger.is_wanted(experiment, task.id, me)):
            raise Interrupted

    def _mourn(self, experiment: str, task: str, death: ChildDied) -> None:
        """A child died; raises its death when the task is not to be tried again."""
        me = self._me()
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
        return Assignment(task, spec, directory, self._data, checkpoints)

    def _insist(self, action: Callable[[], T]) -> T:
        return self._database.insist(action, self._stopping)
