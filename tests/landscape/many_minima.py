"""A landscape of any number of minima in two basins, with the barrier of every line known in closed form.

The loss on the line from minimum i to minimum j, with e = 0.002 i and e' = 0.002 j at its ends, is

    (1 - t) e + t e' + 4 t (1 - t) h,    h = 0 in one basin (i and j even, or both odd), else 0.3 + 0.1 |i - j|
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.analysis.pair_matrix import pair_matrix
from valleyscope.landscape.analysis.path_estimates import with_path_estimates
from valleyscope.landscape.analysis.verdict import verdict
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid, MinimumRecord, PathRecord, PathValues, PlaneRecord, line_name

POINTS, SAMPLES = 61, 80
T = np.linspace(0.0, 1.0, POINTS)


@dataclass(frozen=True)
class Sampled:
    """A path with the losses of single samples."""

    splits: dict[str, Any]


def hill(one: int, other: int) -> float:
    return 0.0 if (one - other) % 2 == 0 else 0.3 + 0.1 * abs(one - other)


def loss_between(one: int, other: int) -> NDArray[np.float64]:
    return 0.002 * ((1 - T) * one + T * other) + 4 * T * (1 - T) * hill(one, other)


def many_minima(count: int, *, judged: bool = True) -> Landscape:
    """``count`` minima named m0, m1, ...; m0 and m2 are judged beside m1 unless ``judged`` is false."""
    names = [f"m{index}" for index in range(count)]
    landscape = Landscape(f"{count} minima", minima={name: MinimumRecord(name, "sgd") for name in names})
    spread = np.random.default_rng(0).normal(1.0, 0.1, SAMPLES)
    sampled = {}
    for one, other in combinations(range(count), 2):
        key, loss = line_name(names[one], names[other]), loss_between(one, other)
        samples = loss[:, None] * (spread / spread.mean())
        sampled[key] = Sampled({"train": SimpleNamespace(loss=loss, samples=samples)})
        values = PathValues(loss, 0.1 * loss)
        splits = {"train": values, "test": PathValues(loss + 0.01, 0.1 * loss)}
        landscape.lines[key] = PathRecord(key, "line", names[one], names[other], T, 5.0 * T, splits)
    for name, through in (("basins", (0, 2, 1)), ("others", (1, 3, 2))):
        if count > max(through):
            landscape.planes[name] = _plane(name, [names[index] for index in through])
    if judged and count > 2:
        found = verdict(
            sampled["m0-m2"], control=sampled["m0-m1"], between=("m0", "m2"), control_name="m1", resamples=200
        )
        landscape.verdict = with_path_estimates(found.to_json(), sampled, sampled.__getitem__)
        landscape.matrix = pair_matrix(landscape).to_record()
    return landscape


def _plane(name: str, through: list[str]) -> PlaneRecord:
    x = y = np.linspace(-1.0, 6.0, 11)
    loss = 0.05 * ((x[None] - 2.5) ** 2 + (y[:, None] - 2.5) ** 2)
    points = dict(zip(through, [(0.0, 0.0), (5.0, 0.0), (2.0, 5.0)], strict=True))
    grids = {split: Grid(loss.copy(), np.minimum(0.1 * loss, 1.0)) for split in ("train", "test")}
    done = np.ones(loss.shape, dtype=bool)
    return PlaneRecord(name, "through", x, y, done, grids, points=points, defining=tuple(through))
