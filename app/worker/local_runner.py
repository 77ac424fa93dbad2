"""Runs the plan of an experiment on warm child processes of this machine, and says what happens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from valleyscope.app.devices import devices_for
from valleyscope.app.experiments.experiment_writer import ExperimentWriter
from valleyscope.app.experiments.plan import Task, blocked_tasks, ready_tasks
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.tasks.assignment import Assignment
from valleyscope.app.worker.child_process import Advance, Child, Failed, Finished, Message

log = logging.getLogger(__name__)

ATTEMPTS = 3


@dataclass(frozen=True)
class Event:
    """Something happened to a task: it started, advanced, is done, or failed."""

    what: str
    task: Task
    share: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    result: Result | None = None


@dataclass
class _Worker:
    child: Child
    device: str
    task: Task | None = None


class LocalRunner:
    """Gives ready tasks to idle children, most urgent first, until all that can be done is done."""

    def __init__(
        self,
        experiment: ExperimentWriter,
        *,
        workers: int | None = None,
        data_root: Path | None = None,
        checkpoints: Mapping[str, Path] | None = None,
        watch: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self.experiment = experiment
        self.watch = watch
        self.failures: dict[str, str] = {}
        self._data_root = data_root
        self._checkpoints = dict(checkpoints or {})
        self._done = {task.id for task in experiment.tasks if experiment.is_done(task)}
        self._open = {task.id: task for task in experiment.tasks if task.id not in self._done}
        self._attempts: dict[str, int] = {}
        devices = devices_for(workers)[: max(1, len(self._open))]
        self._workers = [_Worker(Child(device), device) for device in devices] if self._open else []

    @property
    def already_done(self) -> frozenset[str]:
        return frozenset(self._done)

    def run(self) -> None:
        """Run until nothing more can be done; failures are kept by task id."""
        try:
            while self._open or self._busy():
                self._assign()
                if not self._busy():
                    break
                self._listen()
            for task_id, task in self._open.items():
                missing = ", ".join(need for need in task.needs if need not in self._done)
                self.failures.setdefault(task_id, f"not run, since it needs {missing}")
        except BaseException:
            self._hand_back()
            raise
        finally:
            for worker in self._workers:
                worker.child.close() if worker.task is None else worker.child.kill()
            self.experiment.snapshot()

    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.task is not None]

    def _assign(self) -> None:
        lost = blocked_tasks(self.experiment.tasks, self.failures.keys())
        under_way = {worker.task.id for worker in self._busy() if worker.task is not None}
        ready = [task for task in ready_tasks(self.experiment.tasks, self._done, lost) if task.id not in under_way]
        idle = [worker for worker in self._workers if worker.task is None]
        for worker, task in zip(idle, ready, strict=False):
            del self._open[task.id]
            worker.task = task
            self._attempts[task.id] = self._attempts.get(task.id, 0) + 1
            worker.child.start(
                Assignment(
                    task, self.experiment.spec, self.experiment.directory.resolve(), self._data_root, self._checkpoints
                )
            )
            self.watch(Event("started", task))

    def _listen(self) -> None:
        busy = self._busy()
        ready = wait([worker.child.connection for worker in busy], timeout=self.experiment.snapshot_every)
        for worker in busy:
            if worker.child.connection in ready:
                try:
                    message = worker.child.connection.recv()
                except (EOFError, OSError):
                    self._kill(worker)
                else:
                    self._hear(worker, message)
        self.experiment.snapshot(force=False)

    def _hear(self, worker: _Worker, message: Message) -> None:
        task = worker.task
        assert task is not None
        match message:
            case Advance(share, details):
                self.watch(Event("advanced", task, share, details))
            case Finished(result):
                self.experiment.take(task, result)
                self._done.add(task.id)
                worker.task = None
                self.watch(Event("done", task, 1.0, result=result))
            case Failed():
                log.debug("%s failed: %s", task.id, message.traceback)
                if message.fault == "device":
                    self._replace(worker, message.reason)
                else:
                    worker.task = None
                    self._fail(task, message.reason)

    def _kill(self, worker: _Worker) -> None:
        worker.child.kill()
        self._replace(worker, f"its process died (exit code {worker.child.process.exitcode}); out of memory?")

    def _replace(self, worker: _Worker, reason: str) -> None:
        """A child died under its task, or lost its device: start another, and try again unless it keeps happening."""
        task = worker.task
        assert task is not None
        worker.child.kill()
        worker.child, worker.task = Child(worker.device), None
        if self._attempts[task.id] >= ATTEMPTS:
            self._fail(task, f"{reason} ({ATTEMPTS} times)")
        else:
            log.warning("%s is tried again: %s", task.id, reason)
            self._open[task.id] = task

    def _fail(self, task: Task, reason: str) -> None:
        self.failures[task.id] = reason
        self.watch(Event("failed", task, details={"reason": reason}))

    def _hand_back(self, patience: float = 10.0) -> None:
        """On the way out: let running tasks save their state."""
        for worker in self._busy():
            worker.child.cancel()
        deadline = time.monotonic() + patience
        for worker in self._busy():
            while time.monotonic() < deadline and worker.task is not None:
                if not worker.child.connection.poll(max(0.0, deadline - time.monotonic())):
                    break
                try:
                    message = worker.child.connection.recv()
                except (EOFError, OSError):
                    break
                if isinstance(message, Finished | Failed):
                    worker.task = None
