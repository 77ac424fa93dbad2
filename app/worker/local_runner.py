"""Runs the plan of an experiment in warm child processes on this machine (`valley run`)."""

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
from valleyscope.app.experiments.plan import PlanState, Task
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.worker.child_process import Advance, Child, Failed, Finished, Message

log = logging.getLogger(__name__)

ATTEMPTS = 3


@dataclass(frozen=True)
class Event:
    """A task started, advanced, is done, or failed."""

    what: str
    task: Task
    share: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    result: Result | None = None


@dataclass
class _Slot:
    """A child process on a device, and the task that it runs."""

    child: Child
    device: str
    task: Task | None = None


class LocalRunner:
    """Gives ready tasks to idle child processes, most urgent first, until no task can run any more."""

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
        self._plan = PlanState(experiment.tasks, (task.id for task in experiment.tasks if experiment.is_done(task)))
        self._data_root = data_root
        self._checkpoints = dict(checkpoints or {})
        self._attempts: dict[str, int] = {}
        devices = devices_for(workers)[: len(self._plan.open)]
        self._slots = [_Slot(Child(device), device) for device in devices]

    @property
    def already_done(self) -> frozenset[str]:
        return frozenset(self._plan.done)

    @property
    def failures(self) -> dict[str, str]:
        """Why tasks failed or were not run, by task id."""
        plan = self._plan
        missing = {id: ", ".join(need for need in plan.tasks[id].needs if need not in plan.done) for id in plan.open}
        return plan.failed | {id: f"not run, since it needs {needs}" for id, needs in missing.items()}

    def run(self) -> None:
        """Run until no task can run any more."""
        try:
            while True:
                self._assign()
                if not self._busy():
                    break
                self._receive()
        except BaseException:
            self._cancel()
            raise
        finally:
            for slot in self._slots:
                slot.child.close() if slot.task is None else slot.child.kill()
            self.experiment.snapshot()

    def _busy(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot.task is not None]

    def _assign(self) -> None:
        running = {slot.task.id for slot in self._busy() if slot.task is not None}
        idle = [slot for slot in self._slots if slot.task is None]
        for slot, task in zip(idle, self._plan.ready(running), strict=False):
            slot.task = task
            self._attempts[task.id] = self._attempts.get(task.id, 0) + 1
            directory = self.experiment.directory.resolve()
            slot.child.start(Assignment(task, self.experiment.spec, directory, self._data_root, self._checkpoints))
            self.watch(Event("started", task))

    def _receive(self) -> None:
        busy = self._busy()
        ready = wait([slot.child.connection for slot in busy], timeout=self.experiment.snapshot_every)
        for slot in busy:
            if slot.child.connection in ready:
                try:
                    message = slot.child.connection.recv()
                except (EOFError, OSError):
                    slot.child.kill()
                    code = slot.child.process.exitcode
                    self._retry(slot, f"its process crashed (exit code {code}); out of memory?")
                else:
                    self._handle(slot, message)
        self.experiment.snapshot(force=False)

    def _handle(self, slot: _Slot, message: Message) -> None:
        task = slot.task
        assert task is not None
        match message:
            case Advance(share, details):
                self.watch(Event("advanced", task, share, details))
            case Finished(result):
                self.experiment.add_result(task, result)
                self._plan.done.add(task.id)
                slot.task = None
                self.watch(Event("done", task, 1.0, result=result))
            case Failed():
                log.debug("%s failed: %s", task.id, message.traceback)
                if message.fault == "device":
                    self._retry(slot, message.reason)
                else:
                    slot.task = None
                    self._fail(task, message.reason)

    def _retry(self, slot: _Slot, reason: str) -> None:
        """Replace a child that crashed or lost its device, and try its task again unless that keeps happening."""
        task = slot.task
        assert task is not None
        slot.child.kill()
        slot.child, slot.task = Child(slot.device), None
        if self._attempts[task.id] >= ATTEMPTS:
            self._fail(task, f"{reason} ({ATTEMPTS} times)")
        else:
            log.warning("%s is tried again: %s", task.id, reason)

    def _fail(self, task: Task, reason: str) -> None:
        self._plan.failed[task.id] = reason
        self.watch(Event("failed", task, details={"reason": reason}))

    def _cancel(self, seconds: float = 10.0) -> None:
        """Let running tasks save their state."""
        for slot in self._busy():
            slot.child.cancel()
        deadline = time.monotonic() + seconds
        for slot in self._busy():
            while time.monotonic() < deadline and slot.task is not None:
                if not slot.child.connection.poll(max(0.0, deadline - time.monotonic())):
                    break
                try:
                    message = slot.child.connection.recv()
                except (EOFError, OSError):
                    break
                if isinstance(message, Finished | Failed):
                    slot.task = None
