"""Processes that are asked to leave while something that they need is away do so in time, and lose nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.deployment import Deployment, Process
from tests.cluster.postgres import Postgres
from valleyscope.app.shutdown import SHUTDOWN_SECONDS

pytestmark = pytest.mark.long

SPEC: dict[str, Any] = {
    "name": "departure",
    "model": {"name": "tests.cluster.plugins:unhurried", "seconds": 0.01},
    "training": {"epochs": 30, "batch_size": 64},
    "minima": {"sgd": {}, "other": {"seed": 7}},
    "planes": {},
    "points": 3,
}
_AWAY_SECONDS = 20.0
"""Long enough for every round that a process makes to have met the outage, and for the pauses of DBOS to have grown."""
_IN_TIME = SHUTDOWN_SECONDS
"""Then a process ends itself wherever it is; whoever leaves in good order has left before."""
_AT_LAST = SHUTDOWN_SECONDS + 15.0
"""For whoever waits for an answer that never comes; deployments give the API 45 s, and a worker 60 s."""


@pytest.fixture
def deployment(tmp_path: Path, postgres: Postgres) -> Iterator[Deployment]:
    environment = {"VALLEY_ALLOWED_MODELS": SPEC["model"]["name"]}
    with closing(Deployment(postgres, tmp_path / "home", "departure", environment)) as found:
        found.start(workers=2)
        yield found


def end(processes: list[Process]) -> dict[int, float]:
    """Ask all to leave; the seconds that each one took."""
    began = time.monotonic()
    for process in processes:
        process.popen.terminate()
    seconds: dict[int, float] = {}
    while len(seconds) < len(processes) and time.monotonic() - began < 90:
        ended = [process for process in processes if process.popen.poll() is not None and process.pid not in seconds]
        seconds |= {process.pid: time.monotonic() - began for process in ended}
        time.sleep(0.05)
    for process in processes:
        assert process.popen.poll() == 0, process.log.read_text(encoding="utf-8")[-2000:]
    return seconds


def test_the_api_and_workers_leave_while_postgres_is_away(deployment: Deployment, postgres: Postgres) -> None:
    experiment = deployment.submit(SPEC, "departure")
    deployment.until(lambda: len(deployment.running()) == 2, 120, "the tasks do not start")
    silent = deployment.workers[0]
    assert silent.wire is not None
    silent.wire.swallow()  # this one hears nothing any more, the others are refused
    postgres.stop("immediate")
    try:
        time.sleep(_AWAY_SECONDS)
        seconds = end([deployment.api, *deployment.workers])
        assert seconds.pop(silent.pid) < _AT_LAST
        assert max(seconds.values()) < _IN_TIME
    finally:
        postgres.start()
    deployment.workers.clear()
    deployment.start_api()
    deployment.start_worker()
    deployment.until(lambda: deployment.experiment(experiment)["state"] == "done", 400, "it is not done")
