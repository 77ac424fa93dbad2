"""A deployment with any number of light workers, and what it costs its Postgres."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil
import sqlalchemy as sa

from tests.cluster.deployment import HOUSE, Deployment
from tests.cluster.light_tasks import LIGHT, RESULTS, prepare
from tests.cluster.postgres import Postgres


@dataclass(frozen=True)
class Burden:
    """What Postgres did in a while: its share of one core, transactions a second, and tasks that ended a second.

    Beside it the shares of one core that the API process and all workers together took.
    """

    core: float
    api: float
    workers: float
    transactions: float
    tasks: float
    seconds: float


class Fleet:
    """Light workers around a real API and a real Postgres."""

    def __init__(self, base: Path, *, task_seconds: float, connections: int = 600) -> None:
        self.postgres = Postgres(connections=connections)
        self.deployment = Deployment(self.postgres, base / "home", "fleet", {"VALLEY_MAX_QUEUE": "5000"})
        self._folder = base / "results"
        self._task_seconds = task_seconds
        self._processes: list[subprocess.Popen[bytes]] = []
        self._submitted = 0
        self.workers = 0
        self.deployment.start_api()

    def hire(self, count: int) -> float:
        """Add workers; returns the seconds until all are on the roster."""
        settings = {
            "VALLEY_HOME": str(self.deployment.home),
            "VALLEY_DATABASE": self.postgres.url("fleet"),
            "VALLEY_LOG_LEVEL": "ERROR",
        }
        results = self._folder / RESULTS if self._folder.exists() else prepare(self._folder)
        command = [sys.executable, "-m", "tests.cluster.light_tasks", results, self._task_seconds, count]
        self._processes.append(subprocess.Popen([*map(str, command)], cwd=HOUSE, env=os.environ | settings))
        self.workers += count
        return self.deployment.until(lambda: len(self.deployment.roster()) == self.workers + 1, 600, "no full fleet")

    def submit(self, count: int) -> None:
        for _ in range(count):
            self._submitted += 1
            self.deployment.submit(LIGHT, f"queued-{self._submitted}")

    def probe(self, count: int, pause: float) -> list[float]:
        """Seconds from submission to start of urgent experiments, as the service itself wrote them down."""
        found = []
        for _ in range(count):
            self._submitted += 1
            id = self.deployment.submit(LIGHT | {"priority": 0}, f"urgent-{self._submitted}")
            self.deployment.until(lambda one=id: self.deployment.experiment(one)["started"], 120, "it does not start")
            row = self.deployment.experiment(id)
            created, started = (datetime.fromisoformat(row[name]) for name in ("created", "started"))
            found.append((started - created).total_seconds())
            time.sleep(pause)
        return found

    @contextmanager
    def burden(self) -> Iterator[list[Burden]]:
        """What Postgres does while the block runs; the list is filled when it ends."""
        found: list[Burden] = []
        before, began = self._counters(), time.monotonic()
        yield found
        after, seconds = self._counters(), time.monotonic() - began
        found.append(Burden(*((late - early) / seconds for early, late in zip(before, after, strict=True)), seconds))

    def calm(self) -> None:
        """Cancel everything that waits or runs, and wait until nothing does."""
        for state in ("queued", "running"):
            for row in self.deployment.with_retry("GET", f"/api/experiments?state={state}&limit=200").json()["items"]:
                self.deployment.with_retry("POST", f"/api/experiments/{row['id']}/cancel")
        active = "SELECT count(*) FROM valley_experiments WHERE state IN ('queued', 'running')"
        self.deployment.until(lambda: self._ask(active) == 0, 180, "it does not calm down")

    def dismiss(self) -> None:
        """End the API and all workers; Postgres goes on."""
        self.deployment.api.kill()
        for process in self._processes:
            process.terminate()
            process.wait(120)

    def connections(self) -> int:
        return int(self._ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"))

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(120)
        self.deployment.close()
        self.postgres.close()

    def _counters(self) -> tuple[float, ...]:
        transactions = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ended = "SELECT sum(tasks) FROM valley_contributions"  # the rows of tasks go with their experiments
        used = [processor_seconds(pid) for pid in (self.postgres.pid, self.deployment.api.pid)]
        return (
            *used,
            sum(processor_seconds(one.pid) for one in self._processes),
            self._ask(transactions),
            self._ask(ended),
        )

    def _ask(self, question: str) -> float:
        with self.deployment.database.read() as connection:
            return float(connection.execute(sa.text(question)).scalar() or 0)


def processor_seconds(pid: int) -> float:
    """CPU seconds of a process and all its descendants so far, those that ended included."""
    process = psutil.Process(pid)
    total = sum(process.cpu_times()[:4])
    for child in process.children(recursive=True):
        try:
            total += _own_seconds(child)
        except psutil.NoSuchProcess:
            continue
    return float(total)


def _own_seconds(process: psutil.Process) -> float:
    """CPU seconds of one process; to the nanosecond where it has one thread, as sessions of Postgres have."""
    with suppress(OSError):
        if process.num_threads() == 1:
            return int(Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    return float(sum(process.cpu_times()[:2]))


@contextmanager
def fleet(task_seconds: float) -> Iterator[Fleet]:
    base = Path(tempfile.mkdtemp(prefix="valley-fleet-"))
    found = Fleet(base, task_seconds=task_seconds)
    try:
        yield found
    finally:
        found.close()
        shutil.rmtree(base, ignore_errors=True)


def middle_and_longest(values: list[float]) -> tuple[float, float]:
    return statistics.median(values), max(values)
