"""Runs that several tests look at are made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.runs import run, write_spec


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the small experiment after an undisturbed `valley run`."""
    base = tmp_path_factory.mktemp("finished")
    done = run("run", write_spec(base / "spec.json"), "--out", base / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    return base / "out"
