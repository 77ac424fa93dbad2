"""A service of real processes for tests, an API process without HTTP and workers, that tests can kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tests.app.task_views import TaskView, TaskViews
from tests.processes import computing_children
from tests.waiting import until
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.jobs.process_registry import WorkerRow, worker_rows
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import EventRow, read_events
from valleyscope.app.storage.experiment_table import ExperimentRow, ExperimentTable

Found = TypeVar("Found")

TINY: dict[str, Any] = {
    "name": "tiny",
    "model": {"name": "mlp", "hidden": [8]},
    "training": {"epochs": 3, "batch_size": 128},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}},
    "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 2}},
    "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9}},
    "points": 5,
    "verdict": {"resamples": 100},
}
"""An experiment with every stage that takes a second or two."""

LONG: dict[str, Any] = TINY | {
    "name": "long",
    "model": {"name": "tests.app.plugins:slow", "seconds": 0.01},
    "minima": {"sgd": {"epochs": 600}, "altsdp": {"optimizer": "altsdp", "target": 0.3, "epochs": 600}},
}
"""An experiment that trains for minutes, mostly asleep, so it still runs when a slow test checks it."""

_HOUSE = Path(__file__).parents[2]
_SETTINGS = (
    "import sys; from valleyscope.app.settings import Settings; "
    "s = Settings.load(home=sys.argv[1], database=sys.argv[2])"
)
_WORKER = f"{_SETTINGS}; from valleyscope.app.worker.worker import run_worker; run_worker(s)"
_API = f"{_SETTINGS}; from tests.app.cluster import serve; serve(s)"


def serve(settings: Any) -> None:
    """The API process: a started service that receives calls and answers as lines of JSON."""
    from valleyscope.app.api.service import Service

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    service = Service(settings)
    service.start()
    table = service.checkpoint_table
    calls: dict[str, Any] = {"add_checkpoint": table.add, "remove_checkpoint": table.remove}
    signal.signal(signal.SIGTERM, interrupt)
    print(json.dumps("ready"), flush=True)
    try:
        for line in sys.stdin:
            name, arguments = json.loads(line)
            try:
                for field in ("spec", "amended"):
                    if field in arguments:
                        arguments[field] = Spec.model_validate(arguments[field])
                if name == "add_checkpoint":
                    arguments["source"] = Path(arguments["source"])
                answer: Any = (calls.get(name) or getattr(service, name))(**arguments)
                print(json.dumps({"answer": getattr(answer, "id", None)}), flush=True)
            except Exception as error:
                print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    except KeyboardInterrupt:
        pass
    service.stop()


class Cluster:
    """Starts, watches and kills the processes of one service."""

    def __init__(self, home: Path, database: str | None = None, *, preamble: str = "pass") -> None:
        self.home = home
        self.url = database or f"sqlite:///{home / 'valley.db'}"
        self.preamble = preamble
        self.database = Database(self.url)
        self.experiment_table = ExperimentTable(self.database)
        self._tasks = TaskViews(self.database)
        self.api: subprocess.Popen[str] | None = None
        self.workers: list[subprocess.Popen[str]] = []

    def start_api(self) -> None:
        self.api = self._start(_API, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.api.stdout is not None
        assert json.loads(self.api.stdout.readline() or "null") == "ready", "the API process did not start"

    def start_workers(self, count: int) -> None:
        self.workers += [self._start(_WORKER) for _ in range(count)]

    def start(self, workers: int) -> None:
        self.start_api()
        self.start_workers(workers)

    def call(self, method: str, /, **arguments: Any) -> Any:
        """Call a method of the service in the API process."""
        assert self.api is not None
        assert self.api.stdin is not None
        assert self.api.stdout is not None
        self.api.stdin.write(json.dumps([method, arguments]) + "\n")
        self.api.stdin.flush()
        answer = json.loads(self.api.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["answer"]

    def submit(self, spec: dict[str, Any], **arguments: Any) -> str:
        return str(self.call("submit", spec=spec, **arguments))

    def get(self, experiment: str) -> ExperimentRow:
        return self.experiment_table.get(experiment)

    def directory(self, experiment: str) -> Path:
        return self.home / "experiments" / experiment

    def events(self, experiment: str) -> list[EventRow]:
        with self.database.read() as connection:
            return read_events(connection, experiment, 0, 100_000)

    def tasks(self, experiment: str) -> list[TaskView]:
        return list(self._tasks.find(experiment).values())

    def task(self, experiment: str, name: str) -> TaskView:
        """A task; one that DBOS and our tables do not have is `gone`."""
        return self._tasks.find(experiment).get((experiment, name), TaskView(experiment, name, 0))

    def living_workers(self) -> list[WorkerRow]:
        running = self._tasks.running()
        with self.database.read() as connection:
            return worker_rows(connection, running)

    def wait(self, experiment: str, *states: str, timeout: float = 240.0) -> ExperimentRow:
        """Wait until the experiment is in one of these states; fail early if it ended in another."""
        ends = {"done", "failed", "cancelled", *states}

        def arrived() -> ExperimentRow | None:
            row = self.get(experiment)
            return row if row.state in ends else None

        row = self.until(arrived, timeout)
        assert row is not None
        assert not states or row.state in states, f"{row.state}: {row.error}"
        return row

    def until(self, condition: Callable[[], Found], timeout: float = 240.0) -> Found:
        return until(condition, timeout)

    def children(self, worker: subprocess.Popen[str]) -> list[int]:
        """The processes that a worker started for its tasks."""
        return computing_children(worker.pid)

    def kill_api(self) -> None:
        if self.api is not None:
            self.api.kill()
            self.api.wait()
            self.api = None

    def kill_worker(self, index: int = 0) -> None:
        worker = self.workers.pop(index)
        worker.kill()
        worker.wait()

    def kill_everything(self) -> None:
        processes = [*self.workers, *([self.api] if self.api else [])]
        pids = [process.pid for process in processes]
        for worker in self.workers:
            pids += self.children(worker)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in processes:
            process.wait()
        self.workers.clear()
        self.api = None

    def stop(self) -> None:
        """Shut everything down with SIGTERM."""
        processes = [*self.workers, *([self.api] if self.api else [])]
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.workers.clear()
        self.api = None

    def close(self) -> None:
        self.stop()
        self.database.close()

    def _start(self, script: str, **pipes: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", f"{self.preamble}; {script}", str(self.home), self.url]
        return subprocess.Popen(command, cwd=_HOUSE, text=True, **pipes)
