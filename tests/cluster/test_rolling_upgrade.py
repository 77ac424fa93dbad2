"""A rolling restart of everything under load is seen by nobody but by clients whose connection is reset."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.runs import assert_same_results
from tests.cluster.deployment import FINAL, Deployment
from tests.cluster.postgres import Postgres

WORKERS = 2
MOST = 3  # experiments of one visitor, however long the restart takes
SPEC: dict[str, Any] = {
    "name": "rolling",
    "training": {"epochs": 3, "batch_size": 64},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.6}},
    "planes": {"around": {"around": "sgd", "resolution": 3}},
    "points": 3,
    "verdict": {"resamples": 100},
}


class Visitor:
    """A client in a thread of its own that reads and submits; a lost connection is tried again, nothing else is."""

    def __init__(self, deployment: Deployment, number: int) -> None:
        self.submitted: list[str] = []
        self.answers = 0
        self.resets = 0
        self.failures: list[str] = []
        self._number = number
        self._base = str(deployment.client.base_url)
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._visit, name=f"visitor-{number}")
        self._thread.start()

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join()

    def _visit(self) -> None:
        due = time.monotonic()
        with httpx.Client(base_url=self._base, timeout=150) as client:
            while not self._leaving.wait(0.1):
                self._ask(client, "GET", "/api/experiments")
                self._ask(client, "GET", "/api/workers")
                for experiment in self.submitted[-1:]:
                    self._ask(client, "GET", f"/api/experiments/{experiment}")
                if time.monotonic() >= due and len(self.submitted) < MOST:
                    due = time.monotonic() + 6.0
                    key = {"Idempotency-Key": f"visitor-{self._number}-{len(self.submitted)}"}
                    answer = self._ask(client, "POST", "/api/experiments", json=SPEC, headers=key)
                    if answer is not None:
                        self.submitted.append(answer.json()["id"])

    def _ask(self, client: httpx.Client, method: str, path: str, **content: Any) -> httpx.Response | None:
        while True:
            try:
                answer = client.request(method, path, **content)
            except httpx.TransportError:
                self.resets += 1
                if self._leaving.wait(0.2):
                    return None
                continue
            if answer.is_success:
                self.answers += 1
                return answer
            self.failures.append(f"{method} {path}: {answer.status_code} {answer.text}")
            return None


@pytest.fixture
def deployment(postgres: Postgres, tmp_path: Path) -> Iterator[Deployment]:
    name = f"rolling_{os.getpid()}_{time.monotonic_ns()}"
    with closing(Deployment(postgres, tmp_path / "home", name)) as found:
        found.start(workers=WORKERS)
        yield found


def crashes(deployment: Deployment) -> int:
    """All that were ever counted, since rows of tasks are cleared away some time after the end of an experiment."""
    return sum(row.crashes for row in deployment.tasks().values())


def failures(visitors: list[Visitor]) -> list[str]:
    return [failure for visitor in visitors for failure in visitor.failures]


def test_everything_is_restarted_under_load_and_nobody_notices(deployment: Deployment) -> None:
    visitors = [Visitor(deployment, number) for number in range(2)]
    try:
        deployment.until(lambda: deployment.running() or failures(visitors), 240, "nothing begins")
        assert not failures(visitors)
        before = {deployment.api.pid, *(worker.pid for worker in deployment.workers)}
        for worker in list(deployment.workers):
            assert worker.end(120) == 0
            deployment.workers.remove(worker)
            deployment.start_worker()
            deployment.until(lambda: len(deployment.roster()) == WORKERS + 1, 180, "the new worker does not sign on")
            assert crashes(deployment) == 0
        assert deployment.api.end(120) in (0, 130)
        deployment.start_api()
        deployment.until(lambda: before.isdisjoint(deployment.roster()), 60, "an old process is still on the roster")
    finally:
        for visitor in visitors:
            visitor.leave()
    assert not failures(visitors)
    assert all(visitor.answers > 20 for visitor in visitors)
    experiments = [experiment for visitor in visitors for experiment in visitor.submitted]
    assert len(set(experiments)) == len(experiments) >= 2
    for experiment in experiments:
        deployment.until(lambda one=experiment: deployment.experiment(one)["state"] in FINAL, 900, "it does not end")
        row = deployment.experiment(experiment)
        assert (row["state"], row["error"], row["run"]) == ("done", None, 1)
        assert_same_results(deployment.directory(experiments[0]), deployment.directory(experiment))
    assert crashes(deployment) == 0
    assert not deployment.buried(), "a process that left in order was taken for dead"
