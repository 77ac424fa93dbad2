"""A small experiment with every kind of task, and the comparison of two runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from valleyscope.landscape.storage.landscape_file import Landscape

SMALL: dict[str, Any] = {
    "name": "small",
    "model": {"name": "cnn", "channels": [4, 8], "hidden": 16},
    "training": {"epochs": 6, "batch_size": 64, "snapshots": 1},
    "minima": {
        "sgd": {},
        "altsdp": {"optimizer": "altsdp", "target": 0.5, "momentum": 0.5},
        "control": {"seed": 5},
    },
    "curves": {
        "valley": {"from": "sgd", "to": "altsdp", "epochs": 3},
        "contrast": {"from": "sgd", "to": "control", "epochs": 3},
    },
    "planes": {
        "valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 11},
        "basins": {"through": ["sgd", "altsdp", "control"], "resolution": 11},
        "path": {"trajectory": "sgd", "resolution": 11},
        "around": {"around": "altsdp", "resolution": 11},
    },
    "points": 11,
    "verdict": {"resamples": 200},
}


def write_spec(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps(SMALL | changes), encoding="utf-8")
    return path


def valley(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "valleyscope.app.cli", *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(valley(*arguments), capture_output=True, text=True, check=False, timeout=500)


def run_alone(base: Path, spec: dict[str, Any]) -> Path:
    """The directory of a spec after `valley run` on one core."""
    (base / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    done = run("run", base / "spec.json", "--out", base / "out", "--workers", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    return base / "out"


def assert_same_results(a: Path, b: Path) -> None:
    """Weights, surfaces, paths (also aligned ones) and verdict are bit-equal; times may differ."""
    one, two = Landscape.open(a / "landscape.h5"), Landscape.open(b / "landscape.h5")
    assert list(one.minima) == list(two.minima)
    for name in one.minima:
        first, second = load_file(a / f"{name}.safetensors"), load_file(b / f"{name}.safetensors")
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[key], second[key]) for key in first), name
        for column, values in one.minima[name].epochs.items():
            if column != "seconds":
                np.testing.assert_array_equal(values, two.minima[name].epochs[column], err_msg=f"{name} {column}")
    assert one.planes.keys() == two.planes.keys()
    for name, plane in one.planes.items():
        other = two.planes[name]
        assert plane.complete
        assert other.complete
        assert plane.points == other.points
        for split, grid in plane.splits.items():
            np.testing.assert_array_equal(grid.loss, other.splits[split].loss)
            np.testing.assert_array_equal(grid.error, other.splits[split].error)
    for paths, others in ((one.curves, two.curves), (one.lines, two.lines), (one.aligned, two.aligned)):
        assert paths.keys() == others.keys()
        for name, path in paths.items():
            for split, values in path.splits.items():
                np.testing.assert_array_equal(values.loss, others[name].splits[split].loss)
    assert one.verdict == two.verdict
    assert one.verdict is not None
