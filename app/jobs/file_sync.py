"""Copies files between this host and the store: those of a task, and those that the orchestrator writes.

With a shared folder there is nothing to copy. An unavailable store never fails a task or an experiment: uploads that
must happen are retried until they succeed, the others are tried again at the next occasion.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_files import is_input, is_output, is_written_by_orchestrator
from valleyscope.app.shutdown import run_with_timeout
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.object_store import StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

PUSH_SECONDS = 5.0
"""How often the state of a task, and the snapshot of an experiment, are uploaded."""
LAST_SECONDS = 8.0
"""How long a process that shuts down waits for the store."""
_UPLOAD_SHARE = 10.0  # a pause is this many times as long as an upload: large states must not fill a slow network
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 15.0
_CHECK_SECONDS = 0.5
_MISSING_SECONDS: Final = 10.0  # an NFS client may remember for a while that a file did not exist


def retry_store(action: Callable[[], T], check: Callable[[], None]) -> T:
    """Repeat an action until the store is available; `check` is called in between and raises to give up."""
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
    """Downloads what a task reads, and uploads what it writes."""

    def __init__(self, store: FileStore, experiment: str, spec: Spec, task: Task) -> None:
        self._store = store
        self._experiment = experiment
        self._spec = spec
        self._task = task

    def download(self) -> None:
        spec, task = self._spec, self._task
        self._store.pull(self._experiment, lambda name: is_input(spec, task, name))
        if task.kind is Kind.TRAIN and (checkpoint := spec.minima[task.subject].checkpoint) is not None:
            self._store.fetch_checkpoint(checkpoint)

    def upload(self) -> None:
        self._store.push(self._experiment, lambda name: is_output(self._task, name))

    def try_upload(self) -> None:
        """Upload once, for a task that did not end: the next attempt has less to do again."""
        try:
            self.upload()
        except OSError as error:
            log.warning("the state of %s stays on this host: %s", self._task.id, error)

    def upload_before_exit(self) -> None:
        run_with_timeout(self.try_upload, LAST_SECONDS)

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """Upload the state of a running task every few seconds: another host may have to continue from it."""
        if not self._store.remote or self._task.kind not in (Kind.TRAIN, Kind.FIT, Kind.CURVATURE, Kind.DIRECTIONS):
            yield
            return
        ended = threading.Event()

        def upload() -> None:
            pause = PUSH_SECONDS
            while not ended.wait(pause):
                began = time.monotonic()
                self.try_upload()
                pause = max(PUSH_SECONDS, _UPLOAD_SHARE * (time.monotonic() - began))

        thread = threading.Thread(target=upload, name="task upload", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(LAST_SECONDS / 2)


class SnapshotSync:
    """Uploads landscape.h5, the report, the verdict and the spec of an experiment."""

    def __init__(self, store: FileStore, experiment: str) -> None:
        self._store = store
        self._experiment = experiment
        self._last = time.monotonic()
        self._pause = PUSH_SECONDS
        self.behind = False
        """Whether there are results that no snapshot in the store has."""

    def download(self) -> set[str]:
        """Download what the orchestrator needs to continue; returns the names of all files in the store."""
        self._store.pull(self._experiment, is_written_by_orchestrator)
        return set(self._store.file_sizes(self._experiment))

    def mark_changed(self) -> None:
        self.behind = self._store.remote

    def upload(self) -> None:
        self._store.push(self._experiment, is_written_by_orchestrator)
        self.behind = False

    def try_upload(self) -> None:
        """Upload once; after a failure the next upload is due later."""
        try:
            self.upload()
            self._pause = PUSH_SECONDS
        except OSError as error:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            log.warning("%s; trying again in %.0f s", error, self._pause, extra={"experiment": self._experiment})
        self._last = time.monotonic()

    def upload_before_exit(self) -> None:
        run_with_timeout(self.try_upload, LAST_SECONDS)

    def upload_when_due(self) -> None:
        if self.behind and time.monotonic() - self._last >= self._pause:
            self.try_upload()


def missing_weights(
    store: FileStore, experiment: str, directory: Path, tasks: Iterable[Task], check: Callable[[], None]
) -> dict[str, str]:
    """Training tasks whose weights the API cannot find, with the reason: a worker has another home or store.

    `check` is called in between and raises to give up.
    """
    wanted = {task.id: f"{task.subject}.safetensors" for task in tasks if task.kind is Kind.TRAIN}
    deadline = time.monotonic() + _MISSING_SECONDS
    while True:
        absent = {task: name for task, name in wanted.items() if not (directory / name).is_file()}
        if absent and store.remote:
            stored = retry_store(lambda: store.file_sizes(experiment), check)
            absent = {task: name for task, name in absent.items() if name not in stored}
        if not absent or time.monotonic() > deadline:
            return {
                task: f"{name} is not in {store.location}: a worker has another one; retry when all have the same"
                for task, name in absent.items()
            }
        check()
        time.sleep(_CHECK_SECONDS)
