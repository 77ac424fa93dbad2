"""Executes the jobs of the queue `gpu`: each task from the files that it needs to its result."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from valleyscope.app.experiments.experiment_writer import WORK
from valleyscope.app.experiments.plan import Kind, Task, plan
from valleyscope.app.experiments.result_codec import encode
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.jobs.file_sync import TaskFileSync, retry_store
from valleyscope.app.jobs.process_registry import ProcessEntry
from valleyscope.app.jobs.queue import Requeue
from valleyscope.app.jobs.task_table import TaskTable
from valleyscope.app.storage.database import Database, Stopped
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.home import Home
from valleyscope.app.tasks.failures import FULL, WorkerFault, disk_fault
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.worker.cancel_watch import CancelWatch
from valleyscope.app.worker.child_runner import ChildCrashed, ChildRunner, Interrupted, TaskFailed
from valleyscope.app.worker.progress_buffer import ProgressBuffer, outcome_events
from valleyscope.app.worker.self_test import WorkerSelfTest

log = logging.getLogger(__name__)

T = TypeVar("T")

SHUTDOWN_SECONDS = 8.0
"""How long a task may save its state when its worker shuts down."""
_CANCEL_SECONDS = 1.0
_CHILD_SECONDS = 2.0


@lru_cache(maxsize=4)
def _parse(text: str) -> tuple[Spec, dict[str, Task]]:
    spec = Spec.model_validate_json(text)
    return spec, {task.id: task for task in plan(spec)}


@dataclass(frozen=True)
class _Attempt:
    """A task of a run, as this worker executes it; `evictions` are those of the process before it began."""

    experiment: str
    run: int
    spec: Spec
    task: Task
    evictions: int

    @property
    def key(self) -> tuple[str, int, str]:
        return self.experiment, self.run, self.task.id


class TaskExecutor:
    """Executes one task at a time in the child process."""

    def __init__(
        self,
        database: Database,
        home: Home,
        store: FileStore,
        data_root: Path | None,
        process: ProcessEntry,
        child_runner: ChildRunner,
        self_test: WorkerSelfTest,
        cancel_watch: CancelWatch,
        stopping: threading.Event,
    ) -> None:
        self.child_lock = threading.Lock()
        """Held while a task or a self-test uses the child process."""
        self.idle_since = time.monotonic()
        self._database = database
        self._task_table = TaskTable(database)
        self._home = home
        self._store = store
        self._data_root = data_root
        self._process = process
        self._child_runner = child_runner
        self._self_test = self_test
        self._cancel_watch = cancel_watch
        self._stopping = stopping
        self._downloaded: set[tuple[str, str]] = set()

    def forget_downloads(self) -> None:
        """Downloaded files may have been removed."""
        self._downloaded.clear()

    def execute(self, experiment: str, run: int, name: str) -> None:
        """Execute a task and save its outcome. Raises Requeue if another attempt must follow."""
        if not self.child_lock.acquire(timeout=_CHILD_SECONDS):
            raise Requeue("the child process is busy")
        try:
            if self._stopping.is_set() or not self._self_test.ready:
                raise Requeue(self._self_test.fault or "the worker takes no tasks")
            evictions = self._process.times_evicted
            self._cancel_watch.watch(experiment)
            text = self._with_retry(lambda: self._task_table.begin(experiment, run, name))
            if text is not None:
                spec, tasks = _parse(text)
                self._execute(_Attempt(experiment, run, spec, tasks[name], evictions))
            if self._process.times_evicted != evictions:
                raise Requeue("the job was requeued")  # DBOS would wait here for the process that has it now
        except Stopped as error:
            raise Requeue(str(error)) from error
        finally:
            self.idle_since = time.monotonic()
            self.child_lock.release()

    def _execute(self, attempt: _Attempt) -> None:
        extra = {"experiment": attempt.experiment, "task": attempt.task.id, "worker": self._process.id}
        began = time.monotonic()
        try:
            buffer = ProgressBuffer(attempt.task)
            result = self._compute(attempt, buffer)
            seconds = time.monotonic() - began
            payload = encode(result)
            events = [*buffer.flush()[1], *outcome_events(attempt.spec, attempt.task, result, seconds)]
        except Interrupted:
            if self._stopping.is_set():
                raise Requeue("the worker shuts down") from None
            log.info("task cancelled", extra=extra)
        except ChildCrashed as crash:
            log.warning("task failed: its process crashed too often (%s)", crash, extra=extra)
        except WorkerFault as fault:
            self._handle_fault(attempt, fault)
        except TaskFailed as failure:
            log.warning("task failed: %s", failure, extra=extra)
            self._fail(attempt, str(failure))
        except Stopped:
            raise
        except Exception as error:
            if (disk := disk_fault(error)) is not None:
                self._handle_fault(attempt, WorkerFault(str(disk), full=disk.errno in FULL))
                return
            log.exception("task failed unexpectedly", extra=extra)
            self._fail(attempt, f"unexpectedly: {type(error).__name__}: {error}")
        else:
            entered = self._with_retry(
                lambda: self._task_table.complete(
                    *attempt.key, worker=self._process.id, payload=payload, seconds=seconds, events=events
                )
            )
            self._self_test.reset_backoff()
            log.info(
                "task done" if entered else "task done, but not needed", extra=extra | {"seconds": round(seconds, 3)}
            )

    def _compute(self, attempt: _Attempt, buffer: ProgressBuffer) -> Result:
        task = attempt.task
        files = TaskFileSync(self._store, attempt.experiment, attempt.spec, task)
        # Exact tiles after an estimate come when its files do not change any more either.
        place = (attempt.experiment, f"{task.kind}:{task.subject}")
        if task.kind is not Kind.SURFACE or place not in self._downloaded:
            retry_store(files.download, lambda: self._check_wanted(attempt))
            if task.kind is Kind.SURFACE:
                self._downloaded.add(place)  # all tiles of a plane read the same files, which do not change any more
        assignment = self._assignment(attempt)
        try:
            with files.uploading():
                result = self._run_child(attempt, assignment, buffer)
        except (TaskFailed, WorkerFault):
            files.try_upload()
            raise
        except Interrupted:
            if self._stopping.is_set():  # else another worker may have the task by now
                files.upload_before_exit()
            raise
        if self._store.remote:
            self._check_wanted(attempt)
            retry_store(files.upload, lambda: self._check_wanted(attempt))
        return result

    def _run_child(self, attempt: _Attempt, assignment: Assignment, buffer: ProgressBuffer) -> Result:
        while True:
            try:
                return self._child_runner.run(assignment, buffer.add, lambda: self._should_stop(attempt, buffer))
            except ChildCrashed as crash:
                if not self._record_crash(attempt, f"its process crashed ({crash})"):
                    raise
                extra = {"experiment": attempt.experiment, "task": attempt.task.id}
                log.warning("the child process crashed (%s); trying again", crash, extra=extra)

    def _should_stop(self, attempt: _Attempt, buffer: ProgressBuffer) -> float | None:
        """Save progress; returns how long the task may save its state if it has to stop."""
        if self._stopping.is_set():
            return SHUTDOWN_SECONDS
        if self._process.times_evicted != attempt.evictions:
            return _CANCEL_SECONDS
        if not (buffer.due or self._cancel_watch.check_due):
            return None
        self._cancel_watch.start_check()
        if buffer.due:
            share, events = buffer.flush()
            wanted = self._with_retry(lambda: self._task_table.advance(*attempt.key, share, events))
        else:
            wanted = self._with_retry(lambda: self._task_table.is_wanted(*attempt.key))
        return None if wanted else _CANCEL_SECONDS

    def _check_wanted(self, attempt: _Attempt) -> None:
        evicted = self._process.times_evicted != attempt.evictions
        wanted = not evicted and self._with_retry(lambda: self._task_table.is_wanted(*attempt.key))
        if self._stopping.is_set() or not wanted:
            raise Interrupted

    def _handle_fault(self, attempt: _Attempt, fault: WorkerFault) -> None:
        """Requeue a task that the disk or the device failed, unless it has failed too often.

        That counts as a crash only if this worker then passes its self-test: one bad worker must not fail a task.
        """
        reason = str(fault)
        extra = {"experiment": attempt.experiment, "task": attempt.task.id}
        log.warning("the task could not run here: %s", reason, extra=extra)
        try:
            faulty = self._stopping.is_set() or self._self_test.run_after_failure(fault)
        except Stopped:
            faulty = True
        if faulty or self._record_crash(attempt, reason):
            raise Requeue(reason)

    def _record_crash(self, attempt: _Attempt, reason: str) -> bool:
        return self._with_retry(lambda: self._task_table.record_crash(*attempt.key, reason))

    def _fail(self, attempt: _Attempt, reason: str) -> None:
        self._with_retry(lambda: self._task_table.fail(*attempt.key, reason))

    def _assignment(self, attempt: _Attempt) -> Assignment:
        spec, task = attempt.spec, attempt.task
        directory = self._home.experiment(attempt.experiment)
        (directory / WORK).mkdir(parents=True, exist_ok=True)  # the API made them on its host, which may be another
        checkpoints = {
            name: self._home.checkpoint(minimum.checkpoint)
            for name, minimum in spec.minima.items()
            if minimum.checkpoint is not None
        }
        wanted = checkpoints.get(task.subject) if task.kind is Kind.TRAIN else None
        if wanted is not None and not (wanted.is_file() or (directory / f"{task.subject}.safetensors").is_file()):
            raise TaskFailed(f"minima.{task.subject}.checkpoint={wanted.stem!r} is gone: upload it again")
        return Assignment(task, spec, directory, self._data_root, checkpoints)

    def _with_retry(self, action: Callable[[], T]) -> T:
        return self._database.with_retry(action, self._stopping)
