"""Errands: the tasks that a worker does, each from the files that it needs to its result."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from valleyscope.app.experiments.experiment_writer import WORK
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.jobs.file_sync import TaskFileSync, retry_store
from valleyscope.app.jobs.task_table import Found, TaskTable
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.home import Home
from valleyscope.app.tasks.assignment import Assignment
from valleyscope.app.tasks.failures import WorkerFault
from valleyscope.app.worker.cancel_watch import CancelWatch
from valleyscope.app.worker.child_runner import ChildDied, ChildRunner, Interrupted, TaskFailed
from valleyscope.app.worker.progress_buffer import ProgressBuffer

log = logging.getLogger(__name__)

T = TypeVar("T")

LEAVE_PATIENCE = 8.0
"""For so long a task may save its state when its worker leaves."""
_CANCEL_PATIENCE = 1.0


class TaskExecutor:
    """Runs tasks at a child_runner, and tells the task_table how far they are."""

    def __init__(
        self,
        database: Database,
        storage: Home,
        store: FileStore,
        data: Path | None,
        cancel_watch: CancelWatch,
        stopping: threading.Event,
        *,
        me: Callable[[], str],
        child_runner: Callable[[], ChildRunner],
    ) -> None:
        """`me` is the name of this worker on the roster; it, and the child_runner, are known once the worker has
        joined."""
        self._database = database
        self._task_table = TaskTable(database)
        self._storage = storage
        self._store = store
        self._data = data
        self._cancel_watch = cancel_watch
        self._stopping = stopping
        self._me = me
        self._child_runner = child_runner
        self._brought: set[tuple[str, str]] = set()

    def forget(self) -> None:
        """Files that were brought may not be here any more."""
        self._brought.clear()

    def compute(self, experiment: str, spec: Spec, task: Task) -> tuple[Result, Found]:
        """The result of a task, and the events that were not passed on yet."""
        file_sync = TaskFileSync(self._store, experiment, spec, task)
        place = (experiment, task.subject)
        if task.kind is not Kind.SURFACE or place not in self._brought:
            retry_store(file_sync.bring, lambda: self._check_wanted(experiment, task))
            if task.kind is Kind.SURFACE:
                self._brought.add(place)  # all tiles of a plane read the same files, which do not change any more
        assignment = self._assignment(experiment, spec, task)
        relay = ProgressBuffer(task)
        try:
            with file_sync.delivering():
                result = self._finish(experiment, assignment, relay)
        except (TaskFailed, WorkerFault):
            file_sync.deliver_if_possible()
            raise
        except Interrupted:
            if self._stopping.is_set():  # else it may be another's task by now
                file_sync.deliver_briefly()
            raise
        if self._store.remote:
            self._check_wanted(experiment, task)
            retry_store(file_sync.deliver, lambda: self._check_wanted(experiment, task))
        return result, relay.take()[1]

    def _finish(self, experiment: str, assignment: Assignment, relay: ProgressBuffer) -> Result:
        while True:
            try:
                return self._child_runner().run(assignment, relay.hear, lambda: self._look(experiment, relay))
            except ChildDied as death:
                self._record_child_crash(experiment, assignment.task.id, death)

    def _look(self, experiment: str, relay: ProgressBuffer) -> float | None:
        """Pass on what was heard; returns for how long the task may save its state when it has to stop."""
        me, task_table, task = self._me(), self._task_table, relay.task.id
        if self._stopping.is_set():
            return LEAVE_PATIENCE
        if not (relay.due or self._cancel_watch.curious):
            return None
        self._cancel_watch.note_answer()
        if relay.due:
            share, events = relay.take()
            wanted = self._with_retry(lambda: task_table.advance(experiment, task, me, share, events))
        else:
            wanted = self._with_retry(lambda: task_table.is_wanted(experiment, task, me))
        return None if wanted else _CANCEL_PATIENCE

    def _check_wanted(self, experiment: str, task: Task) -> None:
        me = self._me()
        if self._stopping.is_set() or not self._with_retry(lambda: self._task_table.is_wanted(experiment, task.id, me)):
            raise Interrupted

    def _record_child_crash(self, experiment: str, task: str, death: ChildDied) -> None:
        """A child died; raises its death when the task is not to be tried again."""
        me = self._me()
        if not self._with_retry(lambda: self._task_table.record_child_crash(experiment, task, me, str(death))):
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

    def _with_retry(self, action: Callable[[], T]) -> T:
        return self._database.with_retry(action, self._stopping)
