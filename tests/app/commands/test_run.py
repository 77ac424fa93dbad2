"""`valley run` as its user sees it."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import h5py
import pytest
from safetensors import safe_open

from tests.app.runs import SMALL, assert_same_results, run, valley, write_spec
from tests.waiting import until
from valleyscope.app.experiments.experiment_writer import ExperimentWriter
from valleyscope.app.experiments.spec import Spec
from valleyscope.landscape.storage.landscape_file import Landscape

pytestmark = pytest.mark.long


def test_a_run_leaves_weights_landscape_verdict_and_report(finished: Path) -> None:
    landscape = Landscape.open(finished / "landscape.h5")
    assert list(landscape.minima) == ["sgd", "altsdp", "control"]
    assert all(plane.complete for plane in landscape.planes.values())
    assert set(landscape.lines) == {"sgd-altsdp", "sgd-control", "altsdp-control"}
    assert landscape.planes["path"].paths["trajectory:sgd"].shape == (6, 2)
    assert json.loads((finished / "verdict.json").read_text())["kind"] == landscape.verdict["kind"]  # type: ignore[index]
    assert landscape.provenance["fingerprint"]
    assert "<html" in (finished / "report.html").read_text(encoding="utf-8")[:500]
    with safe_open(str(finished / "altsdp.safetensors"), framework="np") as file:
        described = json.loads(file.metadata()["spec"])
        metrics = json.loads(file.metadata()["metrics"])
    assert described["training"]["target"] == 0.5
    assert len(metrics["epochs"]) == 6


def test_a_second_run_finds_everything_done(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy")
    before = {path.name: path.stat().st_mtime_ns for path in copy.glob("*.safetensors")}
    again = run("run", write_spec(tmp_path / "spec.json"), "--out", copy)
    assert again.returncode == 0, again.stderr
    assert before == {path.name: path.stat().st_mtime_ns for path in copy.glob("*.safetensors")}
    assert_same_results(finished, copy)


def test_a_directory_of_another_spec_is_refused(finished: Path, tmp_path: Path) -> None:
    other = run("run", write_spec(tmp_path / "spec.json", seed=9), "--out", finished)
    assert other.returncode == 2
    assert "another spec" in other.stderr
    assert "seed" in other.stderr


def test_an_experiment_that_cannot_be_opened_lets_go_of_its_directory(tmp_path: Path) -> None:
    spec = Spec.model_validate(SMALL)
    in_the_way = tmp_path / "spec.json"
    in_the_way.mkdir()
    with pytest.raises(OSError, match=r"spec\.json"):
        ExperimentWriter(spec, tmp_path)
    in_the_way.rmdir()
    ExperimentWriter(spec, tmp_path).close()


def test_one_worker_gives_the_same_numbers_as_two(finished: Path, tmp_path: Path) -> None:
    alone = run("run", write_spec(tmp_path / "spec.json"), "--out", tmp_path / "out", "--workers", 1)
    assert alone.returncode == 0, alone.stderr
    assert_same_results(finished, tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"training": {"batch_size": 5000}}, ["batch_size=5000", "1437"]),
        ({"model": {"name": "lenet"}}, ["lenet", "(1, 8, 8)"]),
        ({"dataset": "npz:missing.npz"}, ["missing.npz"]),
        ({"dataset": "imagenet"}, ["imagenet", "digits"]),
        (
            {"minima": {"sgd": {"checkpoint": "nowhere.safetensors"}}, "curves": {}, "planes": {}},
            ["nowhere.safetensors"],
        ),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    refused = run("run", write_spec(tmp_path / "spec.json", **changes), "--out", tmp_path / "out", "--workers", 1)
    assert refused.returncode != 0
    said = " ".join((refused.stdout + refused.stderr).split())
    assert all(word in said for word in words), said
    assert "Traceback" not in said


def test_a_checkpoint_of_ones_own_is_a_minimum(finished: Path, tmp_path: Path) -> None:
    shutil.copy(finished / "sgd.safetensors", tmp_path / "mine.safetensors")
    spec = write_spec(
        tmp_path / "spec.json",
        minima={"mine": {"checkpoint": "mine.safetensors"}, "other": {"seed": 5}},
        curves={},
        planes={},
    )
    done = run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    landscape = Landscape.open(tmp_path / "out" / "landscape.h5")
    original = Landscape.open(finished / "landscape.h5")
    # the same weights in another memory order: equal up to rounding
    losses = [found.final["train_loss"] for found in (landscape.minima["mine"], original.minima["sgd"])]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert landscape.verdict is not None


def test_a_checkpoint_of_another_network_is_refused_before_anything_is_trained(finished: Path, tmp_path: Path) -> None:
    shutil.copy(finished / "sgd.safetensors", tmp_path / "mine.safetensors")
    spec = write_spec(
        tmp_path / "spec.json",
        model={"name": "cnn", "channels": [5, 8], "hidden": 16},
        minima={"other": {}, "mine": {"checkpoint": "mine.safetensors"}},
        curves={},
        planes={},
    )
    refused = run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    assert refused.returncode == 2
    said = " ".join(refused.stderr.split())
    assert "minima.mine.checkpoint='mine.safetensors': the tensors do not match the network" in said
    assert "[5, 1, 3, 3]" in said
    assert not (tmp_path / "out").exists()


def test_one_failed_minimum_does_not_lose_the_others(tmp_path: Path) -> None:
    minima = SMALL["minima"] | {"control": {"lr": 900.0, "momentum": 0.9}}
    failed = run("run", write_spec(tmp_path / "spec.json", minima=minima), "--out", tmp_path / "out", "--workers", 1)
    assert failed.returncode == 1
    assert "diverged" in failed.stdout
    landscape = Landscape.open(tmp_path / "out" / "landscape.h5")
    assert list(landscape.minima) == ["sgd", "altsdp"]
    assert "sgd-altsdp" in landscape.lines
    assert (tmp_path / "out" / "report.html").is_file()


def kill_until_done(spec: Path, out: Path, moments: list[float]) -> int:
    """Start the run, kill -9 its processes at each moment, start it again; returns how many kills hit a running one."""
    hits = 0
    for moment in moments:
        process = subprocess.Popen(
            valley("run", spec, "--out", out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            hits += 1
            if hits % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()  # its children must notice that they are orphans
        process.wait()
        assert readable(out / "landscape.h5")
    done = run("run", spec, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return hits


def readable(path: Path) -> bool:
    if path.is_file():
        with h5py.File(path) as file:
            assert file.attrs["format"] == "valleyscope-landscape"
        Landscape.open(path)
    return True


def test_killed_at_random_moments_it_ends_with_the_same_results(finished: Path, tmp_path: Path) -> None:
    chance = random.Random(time.time_ns())
    moments = [chance.uniform(2.0, 6.0) for _ in range(2)]
    hits = kill_until_done(write_spec(tmp_path / "spec.json"), tmp_path / "out", moments)
    assert hits >= 1, "the run ended before any kill: make it longer"
    assert_same_results(finished, tmp_path / "out")


@pytest.mark.drill
def test_killed_at_twenty_random_moments_it_ends_with_the_same_results(finished: Path, tmp_path: Path) -> None:
    chance = random.Random(time.time_ns())
    hits = 0
    for round_number in itertools.count(1):
        assert round_number <= 20, f"after 20 runs there were {hits} kills: make the run longer"
        moments = [chance.uniform(1.0, 9.0) for _ in range(5)]
        out = tmp_path / f"out-{round_number}"
        hits += kill_until_done(write_spec(tmp_path / "spec.json"), out, moments)
        assert_same_results(finished, out)
        print(f"run {round_number}: {hits} kills so far, results equal")
        if hits >= 20:
            return


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    spec = write_spec(tmp_path / "spec.json", training={"epochs": 5000, "batch_size": 64})
    process = subprocess.Popen(
        valley("run", spec, "--out", tmp_path / "out"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: list((tmp_path / "out").glob("work/*/training-state.pt")))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=150)
    assert process.returncode == 130
    assert "run the same command again" in said
