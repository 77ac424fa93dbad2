"""Whether the API sees the weights that workers report: one with another home or store writes them elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.jobs.file_sync import retry_store
from valleyscope.app.storage.file_store import FileStore

_PATIENCE: Final = 10.0  # a client of NFS may remember for a while that a file was not there
_LOOK_SECONDS: Final = 0.5


def missing_weights(
    store: FileStore, experiment: str, directory: Path, tasks: Iterable[Task], check: Callable[[], None]
) -> dict[str, str]:
    """The training tasks whose weights are nowhere to be found, with the reason; `check` raises to end the search."""
    wanted = {task.id: f"{task.subject}.safetensors" for task in tasks if task.kind is Kind.TRAIN}
    deadline = time.monotonic() + _PATIENCE
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
        time.sleep(_LOOK_SECONDS)
