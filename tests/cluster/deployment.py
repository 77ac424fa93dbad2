"""A deployment as an operator has it: Postgres, `valley serve`, and workers on wires of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from tests.app.task_views import TaskView, TaskViews
from tests.cluster.postgres import Postgres
from tests.cluster.proxy import Proxy
from tests.ports import free_port
from tests.processes import computing_children
from tests.waiting import until
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import EventRow, read_events
from valleyscope.app.storage.tables import processes

HOUSE = Path(__file__).parents[2]
FINAL = ("done", "failed", "cancelled")
_BURIED = re.compile(r"process (\w+-(\d+)-\w+) died")


@dataclass
class Process:
    """A process of the service, the wire that it has to Postgres, and what it wrote."""

    popen: subprocess.Popen[bytes]
    log: Path
    wire: Proxy | None = None

    @property
    def pid(self) -> int:
        return self.popen.pid

    def children(self) -> list[int]:
        """The processes that a worker started for its tasks."""
        return computing_children(self.pid)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def end(self, patience: float = 120.0) -> int:
        """SIGTERM; returns the exit code."""
        self.popen.terminate()
        try:
            return self.popen.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"process {self.pid} does not end: {self.log.read_text()[-2000:]}") from None


@dataclass
class Deployment:
    """One service on one database of a Postgres server."""

    postgres: Postgres
    home: Path
    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: list[Process] = field(default_factory=list)
    frozen: list[Process] = field(default_factory=list)
    """Workers that are stopped for ever; they count for nothing, and end with the deployment."""

    def __post_init__(self) -> None:
        self.postgres.create(self.name)
        self.home.mkdir()
        self.port = free_port()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=150)
        self.database = Database(self.postgres.url(self.name))
        self._tasks = TaskViews(self.database)
        self.logs: list[Path] = []
        self.wires: list[Proxy] = []

    def start_api(self) -> None:
        """Start the API process and wait until it answers."""
        options = ("serve", "--port", str(self.port), "--workers", "0")
        self.api = self._start("api", options, self.postgres.url(self.name))
        self.until(self._ready, 180, "the API process does not start")

    def start_worker(self) -> Process:
        wire = Proxy(self.postgres.port)
        self.wires.append(wire)
        worker = self._start("worker", ("worker",), self.postgres.url(self.name, wire.port))
        worker.wire = wire
        self.workers.append(worker)
        return worker

    def start(self, workers: int) -> None:
        self.start_api()
        for _ in range(workers):
            self.start_worker()
        self.until(lambda: len(self.roster()) == workers + 1, 180, "the workers do not start")

    def with_retry(self, method: str, path: str, **content: Any) -> httpx.Response:
        """A request as a patient client makes it: repeated while nobody answers, or the server says that it cannot."""
        deadline = time.monotonic() + 180
        while True:
            try:
                response = self.client.request(method, path, **content)
                if response.status_code < 500:
                    return response
                failure = response.text
            except httpx.TransportError as error:
                failure = repr(error)
            assert time.monotonic() < deadline, failure
            time.sleep(0.2)

    def submit(self, spec: Mapping[str, Any], key: str) -> str:
        """Submit once, however often it has to be tried; a very busy machine may fail to look at the network."""
        for _ in range(5):
            response = self.with_retry("POST", "/api/experiments", json=dict(spec), headers={"Idempotency-Key": key})
            if "no answer after" not in response.text:
                break
        assert response.status_code in (200, 202), response.text
        return str(response.json()["id"])

    def experiment(self, id: str) -> dict[str, Any]:
        row: dict[str, Any] = self.with_retry("GET", f"/api/experiments/{id}").json()
        return row

    def directory(self, experiment: str) -> Path:
        return self.home / "experiments" / experiment

    def roster(self) -> dict[int, str]:
        """The ids of all processes that the service takes for alive, by process number."""
        with self.database.read() as connection:
            return {row.pid: row.id for row in connection.execute(sa.select(processes))}

    def tasks(self, experiment: str | None = None) -> dict[tuple[str, str], TaskView]:
        return self._tasks.find(experiment)

    def running(self, worker: str | None = None) -> dict[tuple[str, str], TaskView]:
        """Tasks that a worker, or any, runs."""
        running = {key: task for key, task in self.tasks().items() if task.state == "running"}
        return {key: task for key, task in running.items() if worker in (None, task.worker)}

    def events(self, experiment: str) -> list[EventRow]:
        with self.database.read() as connection:
            return read_events(connection, experiment, 0, 100_000)

    def buried(self) -> set[int]:
        """The numbers of all processes that were taken for dead."""
        return {int(found[1]) for log in self.logs for found in _BURIED.findall(log.read_text(encoding="utf-8"))}

    def until(self, condition: Callable[[], object], timeout: float = 120.0, what: str = "it did not happen") -> float:
        """Wait for a condition; returns the seconds that it took."""
        began = time.monotonic()
        until(condition, timeout, lambda: f"{what}\n{self.last_words()}")
        return time.monotonic() - began

    def last_words(self) -> str:
        return "\n".join(f"{log.name}: {log.read_text(encoding='utf-8')[-1500:]}" for log in self.logs[-6:])

    def close(self) -> None:
        for process in [*self.workers, *self.frozen, *([self.api] if hasattr(self, "api") else [])]:
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
                process.kill()
        for wire in self.wires:
            wire.close()
        self.client.close()
        self.database.close()

    def _ready(self) -> bool:
        assert self.api.popen.poll() is None, self.last_words()
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def _start(self, role: str, options: tuple[str, ...], database: str) -> Process:
        log = self.home.with_name(f"{self.home.name}-{role}-{len(self.logs)}.log")
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("VALLEY_") or name == "VALLEY_ONNX"
        }
        settings = {"VALLEY_HOME": str(self.home), "VALLEY_DATABASE": database, "VALLEY_LOG_FORMAT": "text"}
        with log.open("wb") as file:
            popen = subprocess.Popen(
                [sys.executable, "-m", "valleyscope.app.cli", *options],
                cwd=HOUSE,
                env={**inherited, **settings, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self.logs.append(log)
        return Process(popen, log)
