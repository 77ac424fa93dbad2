"""Couriers carry files between this host and the store: those of a task that is run here, those of an experiment.

With a shared folder they have nothing to do. Trouble with the store never fails a task or an experiment: what must
travel is tried again until it does, what is only for safety at the next occasion.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_files import is_input, is_output, is_written_by_orchestrator
from valleyscope.app.shutdown import run_with_timeout
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.object_store import StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

PUSH_SECONDS = 5.0
"""How often the state of a task, and the snapshot of an experiment, go to the store."""
LAST_SECONDS = 8.0
"""How long a process that leaves waits for the store."""
_SELDOM = 10.0  # times as long as a delivery takes: large states on a slow network must not fill it
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 15.0
_CHECK_SECONDS = 0.5


def retry_store(action: Callable[[], T], check: Callable[[], None]) -> T:
    """Repeat what the store refuses until it happens; `check` raises when it is not wanted any more."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return action()
        except StoreUnavailable as error:
            log.warning("%s; trying again in %.1f s", error, pause)
        deadline = time.monotonic() + pause
        while (left := deadline - time.monotonic()) > 0:
            check()
            time.sleep(min(left, _CHECK_SECONDS))
        pause = min(2 * pause, _LONGEST_PAUSE)


class TaskFileSync:
    """Brings what a task reads, and takes away what it writes."""

    def __init__(self, store: FileStore, experiment: str, spec: Spec, task: Task) -> None:
        self._store = store
        self._experiment = experiment
        self._spec = spec
        self._task = task

    def bring(self) -> None:
        """All that the task reads is here when this returns."""
        spec, task = self._spec, self._task
        self._store.pull(self._experiment, lambda name: is_input(spec, task, name))
        if task.kind is Kind.TRAIN and (upload := spec.minima[task.subject].checkpoint) is not None:
            self._store.fetch_checkpoint(upload)

    def deliver(self) -> None:
        """All that the task wrote is in the store when this returns."""
        self._store.push(self._experiment, lambda name: is_output(self._task, name))

    def deliver_if_possible(self) -> None:
        """The same, once: for a task that did not end, so that whoever goes on with it has less to do again."""
        try:
            self.deliver()
        except OSError as error:
            log.warning("the state of %s stays on this host: %s", self._task.id, error)

    def deliver_briefly(self) -> None:
        """The same, for a process that leaves and has little time."""
        run_with_timeout(self.deliver_if_possible, LAST_SECONDS)

    @contextmanager
    def delivering(self) -> Iterator[None]:
        """Deliver every few seconds while the task runs, beside it: another host may have to go on from there."""
        if not self._store.remote or not _has_state(self._task):
            yield
            return
        over = threading.Event()

        def deliver() -> None:
            pause = PUSH_SECONDS
            while not over.wait(pause):
                began = time.monotonic()
                self.deliver_if_possible()
                pause = max(PUSH_SECONDS, _SELDOM * (time.monotonic() - began))

        thread = threading.Thread(target=deliver, name="file_sync", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(LAST_SECONDS / 2)


class SnapshotSync:
    """Takes landscape.h5, the report, the verdict and the spec of an experiment to the store."""

    def __init__(self, store: FileStore, experiment: str) -> None:
        self._store = store
        self._experiment = experiment
        self._last = time.monotonic()
        self._pause = PUSH_SECONDS
        self.behind = False
        """Whether there are results that no snapshot in the store has."""

    def fetch(self) -> set[str]:
        """Bring what the writer needs to go on; returns the names of all files that the store has."""
        self._store.pull(self._experiment, is_written_by_orchestrator)
        return set(self._store.file_sizes(self._experiment))

    def note(self) -> None:
        """There are new results."""
        self.behind = self._store.remote

    def deliver(self) -> None:
        self._store.push(self._experiment, is_written_by_orchestrator)
        self.behind = False

    def deliver_if_possible(self) -> None:
        """The same, once; where it fails, the next time is later than usual."""
        try:
            self.deliver()
            self._pause = PUSH_SECONDS
        except OSError as error:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            log.warning("%s; trying again in %.0f s", error, self._pause, extra={"experiment": self._experiment})
        self._last = time.monotonic()

    def deliver_briefly(self) -> None:
        """The same, for a process that leaves and has little time."""
        run_with_timeout(self.deliver_if_possible, LAST_SECONDS)

    def deliver_when_due(self) -> None:
        if self.behind and time.monotonic() - self._last >= self._pause:
            self.deliver_if_possible()


def _has_state(task: Task) -> bool:
    return task.kind in (Kind.TRAIN, Kind.FIT)
