"""Many workers at small cost: the real worker loop on the real database, with tasks that sleep and have ready results.

    python -m tests.cluster.light_tasks RESULTS SECONDS COUNT    # settings from the environment, as for `valley worker`

All are forked from one process that has loaded the libraries, so fifty of them start in seconds and share their memory.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from valleyscope.app.experiments.plan import plan
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.settings import Settings
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.worker.child_process import Advance
from valleyscope.app.worker.child_runner import ChildRunner, Interrupted
from valleyscope.app.worker.worker import NICENESS, Worker

HOUSE = Path(__file__).parents[2]
LIGHT: dict[str, Any] = {
    "name": "light",
    "training": {"epochs": 1, "batch_size": 256},
    "minima": {"sgd": {}},
    "planes": {},
    "points": 3,
}
"""Two tasks, one after the other."""
RESULTS = "results.pickle"
_POLL_SECONDS = 0.4  # as often as a real child runner polls


class LightRunner(ChildRunner):
    """Sleeps instead of computing, and returns results that were computed before.

    Tasks take between half and one and a half times as long as they take on average. Were they all of one length,
    workers that began together would end together, and in between no urgent task could start anywhere.
    """

    def __init__(self, results: dict[str, Result], folder: Path, seconds: float) -> None:
        super().__init__("cpu")
        self.results = results
        self.folder = folder
        self.seconds = seconds
        self._lengths = random.Random(os.getpid())

    def warm_up(self) -> None:
        """There is no child to start."""

    def clear(self) -> None:
        """Nor one to end."""

    def run(
        self,
        assignment: Assignment,
        on_progress: Callable[[Advance], None],
        should_stop: Callable[[], float | None],
    ) -> Result:
        on_progress(Advance(0.5, {}))
        deadline = time.monotonic() + self.seconds * self._lengths.uniform(0.5, 1.5)
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_SECONDS))
            if left > _POLL_SECONDS and should_stop() is not None:
                raise Interrupted
        for file in self.folder.glob("*.safetensors"):
            shutil.copy(file, assignment.directory)
        return self.results[assignment.task.id]


def prepare(folder: Path, spec: dict[str, Any] | None = None) -> Path:
    """Compute the results of a spec once, in a process of its own; returns the file that they are in."""
    script = "import sys, pathlib; from tests.cluster.light_tasks import compute; compute(pathlib.Path(sys.argv[1]))"
    folder.mkdir()
    (folder / "spec.pickle").write_bytes(pickle.dumps(spec or LIGHT))
    subprocess.run([sys.executable, "-c", script, str(folder)], cwd=HOUSE, check=True)
    return folder / RESULTS


def compute(folder: Path) -> None:
    from valleyscope.app.tasks.tasks import run_task  # loads torch

    spec = Spec.model_validate(pickle.loads((folder / "spec.pickle").read_bytes()))
    (folder / "work").mkdir()
    found = {
        task.id: run_task(Assignment(task, spec, folder, None, {}), lambda *_: None, lambda: False)
        for task in plan(spec)
    }
    (folder / RESULTS).write_bytes(pickle.dumps(found))


def work(file: Path, seconds: float) -> None:
    """One worker, until SIGTERM."""
    os.nice(NICENESS)
    worker = Worker(Settings.load(), "cpu")
    worker._child_runner = LightRunner(pickle.loads(file.read_bytes()), file.parent, seconds)
    signal.signal(signal.SIGTERM, lambda *_: worker.stopping.set())
    worker.run()


def main() -> None:
    file, seconds, count = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            work(file, seconds)
            os._exit(0)
        children.append(child)

    def leave(*_: object) -> None:
        for child in children:
            os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
