"""Runs and servers that several tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.cluster import TINY
from tests.app.databases import database
from tests.app.runs import run, run_alone, write_spec
from tests.app.servers import Server, serving

__all__ = ["bare", "database", "finished"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the small experiment after `valley run`."""
    base = tmp_path_factory.mktemp("finished")
    done = run("run", write_spec(base / "spec.json"), "--out", base / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    return base / "out"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the tiny experiment after `valley run`."""
    return run_alone(tmp_path_factory.mktemp("undisturbed"), TINY)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without workers: submissions stay in the queue."""
    with serving(tmp_path_factory.mktemp("bare") / "home", environment={"VALLEY_MAX_QUEUE": "5000"}) as server:
        yield server


@pytest.fixture(scope="session")
def lively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a worker; it allows data beside its home, in numbers.npz, for the test that writes them."""
    base = tmp_path_factory.mktemp("lively")
    allowed = {"VALLEY_ALLOWED_DATASETS": f"npz:{base / 'numbers.npz'}"}
    with serving(base / "home", workers=1, environment=allowed) as server:
        yield server


@pytest.fixture(scope="session")
def done(lively: Server) -> str:
    """A finished experiment of the lively server."""
    row = lively.wait(lively.submit())
    assert row["state"] == "done", row["error"]
    return str(row["id"])
