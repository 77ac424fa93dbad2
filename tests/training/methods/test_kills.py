"""A run of each kind of method that is killed (SIGKILL) again and again ends with the weights of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.methods.cases import normed, run
from valleyscope.training.checkpoints import read_checkpoint, save_checkpoint
from valleyscope.training.methods.catalog import METHODS

RETRAIN = {"epochs": 1, "lr": 0.01}
STEPS = 23  # of an epoch
KINDS: dict[str, dict[str, Any]] = {
    "optimiser": {"method": "altsdp", "sparsity": 0.5, "momentum": 0.9, "lr": 0.02},
    "projection": {"method": "sfp", "sparsity": 0.5, "momentum": 0.9, "lr": 0.02},
    "post hoc": {"method": "ls", "sparsity": 0.5},
    "retraining": {"method": "one-shot", "sparsity": 0.5, "momentum": 0.9, "lr": 0.02, "retrain": RETRAIN},
}
EVERY_METHOD: dict[str, dict[str, Any]] = {
    name: {"method": name, "sparsity": 0.4, "epochs": 4, "momentum": 0.9, "lr": 0.02, "retrain": RETRAIN}
    for name in METHODS
}
EVERY_METHOD["sdp"] |= {"factors": "ones"}  # the Hessian is the business of another room
SCRIPT = """
import sys
from pathlib import Path
import torch
from tests.training.methods.test_kills import live_and_die
torch.set_num_threads(1)
live_and_die(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


def fields_of(name: str) -> dict[str, Any]:
    return {"epochs": 2} | (KINDS | EVERY_METHOD)[name]


def live_and_die(directory: Path, names: str, kills: int, seed: int) -> None:
    """Train each run in child processes that kill themselves, one at a random step of each n-th part of the run."""
    chance = random.Random(seed)
    for name in names.split(","):
        fields = fields_of(name)
        steps = STEPS * (fields["epochs"] + fields.get("retrain", {"epochs": 0})["epochs"])
        moments = [chance.randrange(steps * part // kills, steps * (part + 1) // kills) for part in range(kills)]
        for before, moment in pairwise([0, *moments]):
            assert _live(directory / name, name, moment - before + 1) == signal.SIGKILL
        assert _live(directory / name, name, None) == 0


def _live(directory: Path, name: str, last: int | None) -> int:
    """Go on with a run in a child process, which ends before step `last` from here on; returns its signal, or 0."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = 1
    try:
        steps = 0

        def die() -> bool:
            nonlocal steps
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return False

        model = normed()
        found = run(model, directory=directory, save_every=0.0, cancelled=die, **fields_of(name))
        save_checkpoint(directory / "final.safetensors", model, metrics={"pruning": found.pruning})
        code = 0
    finally:
        os._exit(code)


def kill(directory: Path, names: list[str], kills: int) -> None:
    seed = time.time_ns() % 10**9
    arguments = [str(directory), ",".join(names), str(kills), str(seed)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=Path(__file__).parents[3], capture_output=True, text=True
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"


def assert_undisturbed(directory: Path, name: str) -> None:
    model = normed()
    expected = run(model, **fields_of(name))
    found = read_checkpoint(directory / name / "final.safetensors")
    for key, value in model.state_dict().items():
        assert torch.equal(found.state[key], value), f"{name}: {key}"
    assert found.metrics["pruning"] == expected.pruning


def test_every_kind_of_method_survives_kills_to_the_bit(tmp_path: Path) -> None:
    kill(tmp_path, list(KINDS), kills=2)
    for name in KINDS:
        assert_undisturbed(tmp_path, name)


@pytest.mark.drill
def test_every_method_with_retraining_survives_many_kills_to_the_bit(tmp_path: Path) -> None:
    kill(tmp_path, list(EVERY_METHOD), kills=10)
    for name in EVERY_METHOD:
        assert_undisturbed(tmp_path, name)
