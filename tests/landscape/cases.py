"""A landscape with known answers: two basins of a loss on three-dimensional weights, seen on two planes.

sgd and altsdp share the basin A, a long valley whose floor bends upwards in z; control has the basin B of its own.
With q_A and q_B the two bowls, the loss is their soft minimum, lowered with height z so that a curve can go around the
hill between them:

    L(w) = -log(exp(-6 q_A(w)) + exp(-6 q_B(w))) / 6  exp(-z^2 / 25)  +  0.00008 z^4
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import (
    Grid,
    LayerRecord,
    MinimumRecord,
    PathRecord,
    PathValues,
    PlaneRecord,
    line_name,
)

Floats = NDArray[np.float64]

PLACES: Mapping[str, Floats] = {
    "sgd": np.array([0.0, 0.0, 0.0]),
    "altsdp": np.array([9.7, 0.0, 0.0]),
    "control": np.array([8.0, 14.4, 0.0]),
    "valley.bend": np.array([4.85, 0.0, 2.1]),
    "contrast.bend": np.array([4.0, 7.2, 12.0]),
}


def train_loss(w: Floats) -> Floats:
    """The loss of the docstring above at points w of shape (..., 3)."""
    x, y, z = np.moveaxis(w, -1, 0)
    floor = 0.9 * np.sin(np.pi * x / 9.7)
    along = np.where(x < 0, 0.012 * x**2, 0.043 * (x / 9.7) ** 2)
    bowl_a = 0.0006 + along + 0.018 * y**2 + 0.02 * (z - floor) ** 2
    away = w - PLACES["control"]
    bowl_b = 0.0007 + 0.018 * (away**2).sum(-1)
    softest = -np.logaddexp(-6 * bowl_a, -6 * bowl_b) / 6
    return np.maximum(softest, 4e-4) * np.exp(-((z / 5) ** 2)) + 8e-5 * z**4


def values(w: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Loss and error of both splits."""
    loss = train_loss(w)
    return {
        "train": (loss, 0.9 * (1 - np.exp(-1.4 * np.maximum(loss - 0.002, 0)))),
        "test": (0.045 + 1.15 * loss, 0.0115 + 0.885 * (1 - np.exp(-1.2 * loss))),
    }


def bezier(start: str, bend: str, end: str, t: Floats) -> Floats:
    a, b, c = (PLACES[name] for name in (start, bend, end))
    return np.outer((1 - t) ** 2, a) + np.outer(2 * t * (1 - t), b) + np.outer(t**2, c)


def plane(name: str = "valley", columns: int = 41, rows: int = 25) -> PlaneRecord:
    """valley: the plane of sgd, altsdp and the bend (x and z); basins: that of the three minima (x and y)."""
    second, third = (2, 1) if name == "valley" else (1, 2)
    x = np.linspace(-2.91, 12.61, columns)
    y = np.linspace(-3.2, 3.4, rows) if name == "valley" else np.linspace(-3.6, 17.6, rows)
    w = np.zeros((rows, columns, 3))
    w[..., 0], w[..., second] = np.meshgrid(x, y)
    grids = {split: Grid(*pair) for split, pair in values(w).items()}
    shown = {key: place for key, place in PLACES.items() if key != "contrast.bend"}
    t = np.linspace(0, 1, 61)
    last = "valley.bend" if name == "valley" else "control"
    return PlaneRecord(
        name=name,
        kind="through",
        x=x,
        y=y,
        done=np.ones((rows, columns), dtype=bool),
        splits=grids,
        points={key: (float(place[0]), float(place[second])) for key, place in shown.items()},
        paths={
            "valley": bezier("sgd", "valley.bend", "altsdp", t)[:, [0, second]],
            **{f"trajectory:{key}": walk(key)[:, [0, second]] for key in ("sgd", "altsdp")},
        },
        defining=("sgd", "altsdp", last),
        distances={key: abs(float(place[third])) for key, place in shown.items()},
    )


def walk(name: str, steps: int = 24) -> Floats:
    """A trajectory of training: from a common start down to the minimum."""
    start = np.array([-2.2, 4.2, -2.4])
    share = 1 - np.exp(-np.linspace(0, 5, steps))[:, None]
    share = share / share[-1]
    sideways = 0.9 * np.sin(2.2 * np.pi * share) * (1 - share) * np.array([0.4, 1.0, 0.6])
    return start + share * (PLACES[name] - start) + sideways


def path(name: str, kind: str, start: str, end: str, points: Floats) -> PathRecord:
    t = np.linspace(0, 1, len(points))
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    splits = {split: PathValues(*pair) for split, pair in values(points).items()}
    return PathRecord(name, kind, start, end, t, arc, splits)


def line(start: str, end: str) -> PathRecord:
    t = np.linspace(0, 1, 61)[:, None]
    return path(line_name(start, end), "line", start, end, (1 - t) * PLACES[start] + t * PLACES[end])


def minimum(name: str) -> MinimumRecord:
    epoch = np.arange(1.0, 121.0)
    pruned = name == "altsdp"
    ripple = np.sin(epoch * (1.7 if pruned else 2.3)) * np.exp(-epoch / 30)
    zero = np.clip((epoch - 20) / 60, 0, 1) ** 0.7 if pruned else np.zeros_like(epoch)
    loss = train_loss(PLACES[name]) + 0.9 * np.exp(-epoch / 9) * (1 + 0.25 * ripple) + 0.02 * zero * (1 - zero)
    layers = {"0": (16, 144, 3), "3": (32, 4608, 13), "7": (128, 16384, 88), "9": (10, 1290, 0)}
    epochs = {
        "epoch": epoch,
        "train_loss": loss,
        "train_accuracy": 1 - 0.6 * np.exp(-epoch / 6),
        "test_loss": 0.05 + 1.1 * loss,
        "test_accuracy": (0.989 if pruned else 0.986) - 0.5 * np.exp(-epoch / 6) + 0.002 * ripple,
        "sparsity": 0.62 * zero,
        "zero_groups": 104 / 186 * zero,
        "learning_rate": 0.1 * 0.5 ** (epoch // 30),
        "threshold": 1.6 * (epoch / 120) ** 1.3 if pruned else np.full_like(epoch, np.nan),
        "angle": 20 * np.exp(-epoch / 40),
        "seconds": 0.11 * epoch,
    }
    return MinimumRecord(
        name=name,
        optimizer="altsdp" if pruned else "sgd",
        settings={"mode": "prox", "mu": 0.51, "c": 1.68e-4} if pruned else {"lr": 0.1},
        epochs=epochs,
        layers=[
            LayerRecord(f"layers.{key}", groups, zeros if pruned else 0, size, size * zeros // groups if pruned else 0)
            for key, (groups, size, zeros) in layers.items()
        ],
        final={quantity: float(column[-1]) for quantity, column in epochs.items()},
        checkpoint=f"{name}.safetensors",
    )


VERDICT = {
    "kind": "level valley",
    "sentence": "Level valley. Along the straight line from sgd to altsdp the train loss stays within 0.004 nats (95 % "
    "interval 0.003 to 0.005; tolerance 0.05); the control's line rises by 0.93.",
    "tolerance": 0.05,
    "split": "train",
    "between": ["sgd", "altsdp"],
    "line": {
        "barrier": 0.0,
        "low": 0.0,
        "high": 0.001,
        "rise": {"value": 0.004, "low": 0.003, "high": 0.005},
        "ends": {"value": 0.004, "low": 0.003, "high": 0.005},
    },
    "curve": {
        "name": "valley",
        "barrier": 0.0,
        "low": 0.0,
        "high": 0.0005,
        "rise": {"value": 0.004, "low": 0.003, "high": 0.005},
        "ends": {"value": 0.004, "low": 0.003, "high": 0.005},
    },
    "control": {
        "name": "control",
        "line": {
            "barrier": 0.92,
            "low": 0.87,
            "high": 0.98,
            "rise": {"value": 0.93, "low": 0.88, "high": 0.99},
            "ends": {"value": -0.01, "low": -0.02, "high": 0.0},
        },
        "curve": {
            "name": "contrast",
            "barrier": 0.31,
            "low": 0.28,
            "high": 0.34,
            "rise": {"value": 0.32, "low": 0.29, "high": 0.35},
            "ends": {"value": -0.01, "low": -0.02, "high": 0.0},
        },
    },
    "sharpness": {
        "sgd": {"radius": 0.5, "rise": 0.021},
        "altsdp": {"radius": 0.5, "rise": 0.064},
        "control": {"radius": 0.5, "rise": 0.022},
    },
    "test_error": {
        "line": {"min": 0.012, "max": 0.056, "mean": 0.031},
        "curve": {"min": 0.012, "max": 0.056, "mean": 0.027},
    },
    "level": 0.95,
    "bootstrap": 1000,
    "notes": ["A flat curve alone is no evidence: unrelated minima are joined by one, too."],
}


def landscape(columns: int = 41) -> Landscape:
    """Everything an experiment with three minima, two curves and two planes leaves behind."""
    t = np.linspace(0, 1, 61)
    curves = {
        "valley": path("valley", "bezier", "sgd", "altsdp", bezier("sgd", "valley.bend", "altsdp", t)),
        "contrast": path("contrast", "bezier", "sgd", "control", bezier("sgd", "contrast.bend", "control", t)),
    }
    lines = [line(*ends) for ends in (("sgd", "altsdp"), ("sgd", "control"), ("altsdp", "control"))]
    return Landscape(
        name="digits",
        spec={"name": "digits", "dataset": "digits", "model": {"name": "cnn", "channels": [16, 32], "hidden": 128}},
        provenance={
            "seeds": {"sgd": 0, "altsdp": 0, "control": 5},
            "versions": {"python": "3.11.9", "torch": "2.13.0", "numpy": "2.4.6", "valleyscope": "0.1.0"},
            "fingerprint": "sha256:6f1a9c0d5be2",
            "batch_norm": "population",
            "subset": None,
        },
        minima={name: minimum(name) for name in ("sgd", "altsdp", "control")},
        planes={"valley": plane("valley", columns), "basins": plane("basins", columns, columns)},
        curves=curves,
        lines={record.name: record for record in lines},
        verdict=VERDICT,
    )


def half_done(record: PlaneRecord, keep: NDArray[np.bool_]) -> PlaneRecord:
    """The same plane with only the points of the mask computed."""
    grids = {
        split: Grid(np.where(keep, grid.loss, np.nan), np.where(keep, grid.error, np.nan))
        for split, grid in record.splits.items()
    }
    return PlaneRecord(**{**vars(record), "done": keep, "splits": grids})
