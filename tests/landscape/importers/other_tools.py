"""Files as other tools write them: planes and curves of dnn-mode-connectivity, surfaces of loss-landscape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

PENALTY = 0.5


def bowl(w: np.ndarray[Any, Any]) -> float:
    """A loss in weight space that tells x from y and one minimum from the other."""
    return float(0.02 + 0.3 * w[0] ** 2 + 0.05 * (w[1] - 1) ** 2 + 0.01 * w[2] ** 2 * abs(w[0]))


def accuracy(w: np.ndarray[Any, Any]) -> float:
    return float(100.0 * np.exp(-0.5 * bowl(w)))


class GaripovPlane:
    """plane.py: weights in float32, alphas along the first index, betas along the second."""

    def __init__(self, columns: int = 7, rows: int = 5, bends: int = 3) -> None:
        points = np.random.default_rng(0).normal(size=(bends, 4)).astype(np.float32)
        u = points[2] - points[0]
        dx = np.linalg.norm(u)
        u = u / dx
        v = points[1] - points[0]
        v = v - np.dot(u, v) * u
        dy = np.linalg.norm(v)
        v = v / dy
        self.origin, self.u, self.v = points[0], u, v
        self.arrays: dict[str, Any] = {}
        t = np.linspace(0.0, 1.0, 61)
        curve = np.stack([(1 - s) ** 2 * points[0] + 2 * s * (1 - s) * points[1] + s**2 * points[2] for s in t])
        self.arrays["ts"] = t
        self.arrays["bend_coordinates"] = np.stack([self.place(point) for point in points])
        self.arrays["curve_coordinates"] = np.stack([self.place(point) for point in curve.astype(np.float32)])
        self.arrays["alphas"] = np.linspace(-0.2, 1.2, columns)
        self.arrays["betas"] = np.linspace(-0.2, 1.2, rows)
        names = [f"{split}_{quantity}" for split in ("tr", "te") for quantity in ("loss", "acc", "nll", "err")]
        grids = {name: np.zeros((columns, rows)) for name in names}
        grid = np.zeros((columns, rows, 2))
        for i, alpha in enumerate(self.arrays["alphas"]):
            for j, beta in enumerate(self.arrays["betas"]):
                w = points[0] + alpha * dx * u + beta * dy * v
                grid[i, j] = [alpha * dx, beta * dy]
                for split, shift in (("tr", 0.0), ("te", 0.1)):
                    grids[f"{split}_nll"][i, j] = bowl(w) + shift
                    grids[f"{split}_loss"][i, j] = bowl(w) + shift + PENALTY
                    grids[f"{split}_acc"][i, j] = accuracy(w)
                    grids[f"{split}_err"][i, j] = 100.0 - accuracy(w)
        self.arrays |= {"grid": grid, **grids}

    def place(self, point: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.array([np.dot(point - self.origin, self.u), np.dot(point - self.origin, self.v)])

    def save(self, directory: Path, **changes: Any) -> Path:
        arrays = {name: values for name, values in {**self.arrays, **changes}.items() if values is not None}
        np.savez(directory / "plane.npz", **arrays)
        return directory / "plane.npz"

    def save_curve(self, directory: Path, points: int = 31, **changes: Any) -> Path:
        """eval_curve.py on the same curve: its length is in the steps `dl`."""
        t = np.linspace(0.0, 1.0, points)
        start, bend, end = self.arrays["bend_coordinates"][:3]
        places = np.outer((1 - t) ** 2, start) + np.outer(2 * t * (1 - t), bend) + np.outer(t**2, end)
        nll = 0.1 + 0.02 * np.sin(np.pi * t)
        values = {"nll": nll, "loss": nll + PENALTY, "err": 20 * nll, "acc": 100 - 20 * nll}
        arrays = {f"{split}_{name}": array for split in ("tr", "te") for name, array in values.items()}
        summary = {
            f"{name}_{kind}": array.max() for name, array in arrays.items() for kind in ("min", "max", "avg", "int")
        }
        steps = np.concatenate([[0.0], np.linalg.norm(np.diff(places, axis=0), axis=1)])
        arrays |= {"ts": t, "dl": steps, **summary, **changes}
        np.savez(directory / "curve.npz", **{name: array for name, array in arrays.items() if array is not None})
        return directory / "curve.npz"


def li_surface(path: Path, columns: int, rows: int, unfinished: int = 0, splits: tuple[str, ...] = ("train",)) -> Any:
    """plot_surface.py: arrays of shape (columns, rows), filled flat in the order of meshgrid(x, y)."""
    x, y = np.linspace(-1, 1, columns), np.linspace(-0.5, 1.5, rows)
    with h5py.File(path, "a") as file:
        file["dir_file"] = "cifar10/net/model_300.t7_weights_xignore=biasbn_xnorm=filter.h5"
        file["xcoordinates"], file["ycoordinates"] = x, y
        for split in splits:
            losses, accuracies = -np.ones((columns, rows)), -np.ones((columns, rows))
            across, up = np.meshgrid(x, y)
            for index in range(losses.size - unfinished):
                losses.ravel()[index] = bowl(np.array([across.ravel()[index], up.ravel()[index], 0]))
                accuracies.ravel()[index] = 90.0 - up.ravel()[index]
            file[f"{split}_loss"], file[f"{split}_acc"] = losses, accuracies
    return x, y


def li_line(path: Path, height: float = 1.0, directions: str = "a_model_300.t7_b_model_300.t7_states.h5") -> Path:
    """A surface of one dimension between two models, from -0.5 to 1.5, with a hill between them; no test columns."""
    x = np.linspace(-0.5, 1.5, 41)
    hill = height * np.where((x > 0) & (x < 1), np.sin(np.pi * x) ** 2, 5 * np.minimum(x**2, (x - 1) ** 2))
    with h5py.File(path, "w") as file:
        file["dir_file"], file["xcoordinates"] = directions, x
        file["train_loss"], file["train_acc"] = 0.1 + hill, 95.0 - 5.0 * hill
    return path
