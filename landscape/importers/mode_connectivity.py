"""plane.npz and curve.npz of dnn-mode-connectivity (Garipov et al. 2018), as plane.py and eval_curve.py write them.

plane.npz: ``grid`` [i, j] = (x_i, y_j) in distances along u (from the first point to the third) and v (towards the
second), so the first index is x; ``tr_`` and ``te_`` arrays of the same shape: ``nll`` is the cross-entropy, ``loss``
has an L2 term added, ``err`` and ``acc`` are in percent; ``bend_coordinates`` has the control points, first and last
the minima; ``curve_coordinates`` the curve. curve.npz: ``ts``, ``dl`` (length of each step, first 0) and the same
quantities along the curve. Both are written once, at the end, so every value is there; some copies of the script
leave out the curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from valleyscope.landscape.storage._hdf5 import InvalidContent
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import (
    Floats,
    Grid,
    MinimumRecord,
    PathRecord,
    PathValues,
    PlaneRecord,
    final_metrics,
)

Arrays = Mapping[str, Floats]

NAME: Final = "connection"
SPLITS: Final = {"tr": "train", "te": "test"}
BATCH_NORM: Final = "recomputed by a pass over the training data, as dnn-mode-connectivity does"
TEST_NOTE: Final = "its test set is the validation part of the training data unless it was made with --use_test"


def read(path: Path, arrays: Arrays, regularised: bool) -> Landscape:
    """The landscape in the arrays of a ``.npz`` file."""
    if "grid" in arrays:
        kind, landscape = "plane.npz", _plane(path, arrays, regularised)
    elif "ts" in arrays:
        kind, landscape = "curve.npz", _curve(path, arrays, regularised)
    else:
        found = ", ".join(sorted(arrays)[:8]) or "no arrays of numbers"
        raise InvalidContent(f"has neither grid (plane.npz) nor ts (curve.npz) but {found}")
    landscape.spec = {"imported": {"file": path.name, "format": f"dnn-mode-connectivity {kind}"}}
    landscape.provenance = {"source": f"dnn-mode-connectivity {kind}", "batch_norm": BATCH_NORM, "subset": None}
    return landscape


def _plane(path: Path, arrays: Arrays, regularised: bool) -> Landscape:
    x, y = _axes(arrays["grid"])
    splits, note = _splits(arrays, (len(x), len(y)), regularised)
    points, defining = _points(arrays.get("bend_coordinates"))
    paths = {}
    if "curve_coordinates" in arrays:
        paths[NAME] = _table("curve_coordinates", arrays["curve_coordinates"])
    plane = PlaneRecord(
        name=NAME,
        kind="through",
        x=x,
        y=y,
        done=np.ones((len(y), len(x)), dtype=bool),
        splits={split: Grid(loss.T.copy(), error.T.copy()) for split, (loss, error) in splits.items()},
        points=points,
        paths=paths,
        defining=defining,
        distances=dict.fromkeys(defining, 0.0),
        note=f"imported from {path.name}: {note}",
    )
    minima = {name: MinimumRecord(name, "") for name in points if name in ("start", "end")}
    return Landscape(name=path.stem, minima=minima, planes={NAME: plane})


def _curve(path: Path, arrays: Arrays, regularised: bool) -> Landscape:
    t = arrays["ts"]
    if t.ndim != 1:
        raise InvalidContent(f"ts: has shape {t.shape}, not one dimension")
    splits, note = _splits(arrays, t.shape, regularised)
    steps = arrays.get("dl", np.zeros_like(t))
    if steps.shape != t.shape:
        raise InvalidContent(f"dl: has shape {steps.shape}, ts has {t.shape}")
    values = {split: PathValues(*pair) for split, pair in splits.items()}
    curve = PathRecord(NAME, "curve", "start", "end", t, np.cumsum(steps), values, f"imported from {path.name}: {note}")
    minima = {name: _end(name, values, index) for name, index in (("start", 0), ("end", -1))}
    return Landscape(name=path.stem, minima=minima, curves={NAME: curve})


def _end(name: str, splits: Mapping[str, PathValues], index: int) -> MinimumRecord:
    final = final_metrics(splits, index)
    return MinimumRecord(name, "", final={key: value for key, value in final.items() if np.isfinite(value)})


def _axes(grid: Floats) -> tuple[Floats, Floats]:
    if grid.ndim != 3 or grid.shape[2] != 2:
        raise InvalidContent(f"grid: has shape {grid.shape}, not (points, points, 2)")
    x, y = grid[:, 0, 0].copy(), grid[0, :, 1].copy()
    apart = max(np.abs(grid[..., 0] - x[:, None]).max(), np.abs(grid[..., 1] - y[None, :]).max())
    if not apart <= 1e-6 * max(np.ptp(x), np.ptp(y)):
        raise InvalidContent("grid: its first index is not x, or its second not y: the grid is not rectangular")
    return x, y


def _splits(arrays: Arrays, shape: tuple[int, ...], regularised: bool) -> tuple[dict[str, tuple[Floats, Floats]], str]:
    """Loss and error of each split, and a note on them."""
    splits: dict[str, tuple[Floats, Floats]] = {}
    with_penalty = False
    for prefix, split in SPLITS.items():
        order = ("loss", "nll") if regularised else ("nll", "loss")
        source = next((f"{prefix}_{name}" for name in order if f"{prefix}_{name}" in arrays), None)
        loss = _shaped(arrays, source, shape)
        percent = _shaped(arrays, f"{prefix}_err", shape)
        if percent is None and (accuracy := _shaped(arrays, f"{prefix}_acc", shape)) is not None:
            percent = 100.0 - accuracy
        if loss is None and percent is None:
            continue
        with_penalty |= source == f"{prefix}_loss"
        missing = np.full(shape, np.nan)
        # A NaN loss means that the network diverged there: an infinite loss.
        loss = missing if loss is None else np.where(np.isnan(loss), np.inf, loss)
        error = missing if percent is None else error_fraction(percent)
        splits[split] = loss, error
    if not splits:
        raise InvalidContent("has no losses or errors (tr_nll, tr_err, te_nll, te_err)")
    penalty = "loss with the L2 term" if with_penalty else "loss without the L2 term"
    return splits, f"{penalty}; {TEST_NOTE}" if "test" in splits else penalty


def error_fraction(percent: Floats) -> Floats:
    """Errors in percent as fractions: 1 where NaN, and 0 for rounding noise of 100 minus an accuracy."""
    fraction = np.where(np.isnan(percent), 1.0, percent / 100.0)
    return np.where(np.abs(fraction) < 1e-9, 0.0, fraction)


def _points(bends: Floats | None) -> tuple[dict[str, tuple[float, float]], tuple[str, ...]]:
    """Coordinates of the control points by name, and the names of the three that define the plane."""
    if bends is None:
        return {}, ()
    table = _table("bend_coordinates", bends)
    if len(table) < 3:
        raise InvalidContent(f"bend_coordinates: has {len(table)} points, a plane needs three")
    inner = ["bend"] if len(table) == 3 else [f"bend{number}" for number in range(1, len(table) - 1)]
    names = ["start", *inner, "end"]
    points = {name: (float(x), float(y)) for name, (x, y) in zip(names, table, strict=True)}
    return points, (names[0], names[2], names[1])


def _table(name: str, values: Floats) -> Floats:
    if values.ndim != 2 or values.shape[1] != 2:
        raise InvalidContent(f"{name}: has shape {values.shape}, not (points, 2)")
    return values


def _shaped(arrays: Arrays, name: str | None, shape: tuple[int, ...]) -> Floats | None:
    if name is None or name not in arrays:
        return None
    if arrays[name].shape != shape:
        raise InvalidContent(f"{name}: has shape {arrays[name].shape}, the grid or curve has {shape}")
    return arrays[name]
