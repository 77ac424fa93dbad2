"""A training run that is killed at any moment ends with the same weights, bit for bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from valleyscope.training import Cancelled, load_dataset, train
from valleyscope.training.checkpoints import read_checkpoint, save_checkpoint
from valleyscope.training.outcomes import Trained
from valleyscope.training.state import STATE_FILE, WrongState

FIELDS = {
    "optimizer": "altsdp",
    "target": 0.8,
    "momentum": 0.9,
    "lr": 0.02,
    "weight_decay": 1e-4,
    "epochs": 8,
    "batch_size": 16,
    "augment": True,
    "schedule": {"kind": "halving", "every": 3},
}

SCRIPT = """
import sys, torch
from tests.training.test_resume import run
torch.set_num_threads(1)
run(sys.argv[1], float(sys.argv[2]))
"""
PACE = 0.01
"""Seconds of rest after each step of a run that is to be killed: else a fast machine has ended it before that."""


def network() -> nn.Module:
    """Dropout draws from the global generator, BatchNorm has buffers: both must be resumed, too."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Dropout(0.2), nn.Linear(96, 24), nn.ReLU(), nn.Linear(24, 10),
        )  # fmt: skip


def run(directory: str, pace: float = 0.0) -> None:
    def rest() -> bool:
        time.sleep(pace)
        return False

    model = network()
    result = train(model, load_dataset("digits"), directory=directory, save_every=0.05, cancelled=rest, **FIELDS)
    save_checkpoint(Path(directory) / "final.safetensors", model, metrics={"epochs": records(result)})


def records(result: Trained) -> list[dict[str, object]]:
    return [{key: value for key, value in epoch.to_json().items() if key != "seconds"} for epoch in result.epochs]


def assert_equal_to_undisturbed(directory: Path) -> None:
    model = network()
    expected = train(model, load_dataset("digits"), **FIELDS)
    found = read_checkpoint(directory / "final.safetensors")
    for name, tensor in model.state_dict().items():
        assert torch.equal(found.state[name], tensor), name
    assert found.metrics["epochs"] == [
        {**record, "layers": [dict(layer) for layer in record["layers"]]}  # type: ignore[attr-defined]
        for record in records(expected)
    ]


@pytest.mark.parametrize("wanted", [2, pytest.param(10, marks=pytest.mark.drill)])
def test_kills_at_random_moments_change_nothing(tmp_path: Path, wanted: int) -> None:
    chance = random.Random(time.time_ns())
    kills = 0
    while not (tmp_path / "final.safetensors").exists():
        before = state_time(tmp_path)
        command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(PACE if kills < wanted else 0.0)]
        process = subprocess.Popen(command, cwd=Path(__file__).parent.parent.parent)
        deadline = time.monotonic() + 120
        # Killed at a random moment after it has gone on from where it was; the last one may finish.
        while process.poll() is None and state_time(tmp_path) == before:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        if kills < wanted:
            time.sleep(chance.uniform(0.0, 0.25))
            os.kill(process.pid, signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
        else:
            assert process.wait(timeout=120) == 0
    assert kills >= wanted
    assert_equal_to_undisturbed(tmp_path)


def state_time(directory: Path) -> int:
    path = directory / STATE_FILE
    return path.stat().st_mtime_ns if path.exists() else 0


def test_a_cancelled_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    data = load_dataset("digits")
    asked = iter(range(10**9))
    with pytest.raises(Cancelled):
        train(network(), data, directory=tmp_path, cancelled=lambda: next(asked) > 150, **FIELDS)
    run(str(tmp_path))
    assert_equal_to_undisturbed(tmp_path)


def test_the_state_of_another_run_is_refused(tmp_path: Path) -> None:
    data = load_dataset("digits")
    train(network(), data, directory=tmp_path, epochs=1, batch_size=64)
    with pytest.raises(WrongState, match="other settings"):
        train(network(), data, directory=tmp_path, epochs=2, batch_size=64)


def test_a_torn_state_is_refused_by_name(tmp_path: Path) -> None:
    data = load_dataset("digits")
    train(network(), data, directory=tmp_path, epochs=1, batch_size=64)
    path = tmp_path / STATE_FILE
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(WrongState, match=f"{STATE_FILE} cannot be read"):
        train(network(), data, directory=tmp_path, epochs=1, batch_size=64)
