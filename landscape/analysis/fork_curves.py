"""Barrier and rise between a run and its forks, over the epoch of the fork.

From which epoch on does a run that is forked, by another order of batches or by AltSDP, end in the basin of its trunk?
For plain SGD this is the instability analysis of Frankle et al. (2020). Networks of further seeds end in `_s2`, `_s3`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from valleyscope.landscape.analysis.barriers import Barrier, Estimate
from valleyscope.landscape.analysis.method_table import seed_of
from valleyscope.landscape.analysis.pair_matrix import QUANTITIES, judged_split, judging, line_estimate
from valleyscope.landscape.storage.fork_record import ForkRecord
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord, between

FINAL: Final = ("train_loss", "test_accuracy", "zero_groups")


@dataclass(frozen=True)
class Forked:
    """One fork: its trunk, its line to the trunk's last network, and the last values of its own training."""

    name: str
    trunk: str
    kind: str
    epoch: int
    line: Barrier | None
    final: dict[str, float]

    def estimate(self, quantity: str) -> Estimate | None:
        return self.line if self.line is None or quantity == "barrier" else self.line.rise

    def to_json(self) -> dict[str, Any]:
        found = {quantity: _estimate_json(self.estimate(quantity)) for quantity in QUANTITIES}
        return {"name": self.name, "trunk": self.trunk, **found, **self.final}


@dataclass(frozen=True)
class Range:
    """Mean over seeds with the lowest and highest of them; of a single seed the bootstrap interval of its line."""

    mean: float
    low: float
    high: float
    count: int

    def to_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "low": self.low, "high": self.high, "count": self.count}


@dataclass(frozen=True)
class ForkPointValues:
    """All forks of a kind at one epoch."""

    epoch: int
    forks: tuple[Forked, ...]

    def over_seeds(self, quantity: str) -> Range | None:
        """A quantity of the line, or a final value, over the seeds that have it."""
        if quantity in QUANTITIES:
            known = [found for fork in self.forks if (found := fork.estimate(quantity)) is not None]
            known = [found for found in known if math.isfinite(found.value)]
            values = [found.value for found in known]
            if len(known) == 1 and known[0].low is not None and known[0].high is not None:
                return Range(values[0], min(known[0].low, values[0]), max(known[0].high, values[0]), 1)
        else:
            values = [fork.final[quantity] for fork in self.forks if quantity in fork.final]
        return Range(float(np.mean(values)), min(values), max(values), len(values)) if values else None

    def to_json(self) -> dict[str, Any]:
        found = {name: self.over_seeds(name) for name in (*QUANTITIES, *FINAL)}
        return {
            "epoch": self.epoch,
            "forks": [fork.to_json() for fork in self.forks],
            **{name: None if values is None else values.to_json() for name, values in found.items()},
        }


@dataclass(frozen=True)
class ForkCurve:
    """Forks of one kind over the epoch at which they left their trunk.

    `settled` is the first of its epochs from which on no fork of any seed has a barrier above the tolerance.
    """

    kind: str
    points: tuple[ForkPointValues, ...]
    settled: int | None

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "settled": self.settled, "points": [point.to_json() for point in self.points]}


@dataclass(frozen=True)
class ForkCurves:
    """The curves of a landscape, and the lines to a network from another initialisation for comparison."""

    curves: tuple[ForkCurve, ...]
    unrelated: Estimate | None
    split: str
    tolerance: float

    def remarks(self) -> list[str]:
        """What the curves say, in sentences."""
        return [_remark(curve, self.tolerance) for curve in self.curves]

    def to_json(self) -> dict[str, Any]:
        return {
            "curves": [curve.to_json() for curve in self.curves],
            "unrelated": _estimate_json(self.unrelated),
            "split": self.split,
            "tolerance": self.tolerance,
            "remarks": self.remarks(),
        }

    def to_record(self) -> ForkRecord:
        """All forks as columns for ``landscape.h5``."""
        forks = [fork for curve in self.curves for point in curve.points for fork in point.forks]
        columns: dict[str, list[float | None]] = {"epoch": [float(fork.epoch) for fork in forks]}
        for quantity in QUANTITIES:
            found = [fork.estimate(quantity) for fork in forks]
            columns[quantity] = [None if one is None else one.value for one in found]
            for bound in ("low", "high"):
                columns[f"{quantity}_{bound}"] = [None if one is None else getattr(one, bound) for one in found]
        columns |= {name: [fork.final.get(name) for fork in forks] for name in FINAL}
        texts = {name: [getattr(fork, name) for fork in forks] for name in ("name", "trunk", "kind")}
        arrays = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
        return ForkRecord(self.split, texts, arrays)


def fork_curves(landscape: Landscape) -> ForkCurves | None:
    """The curves of a landscape with forks; None without any."""
    split, tolerance = judged_split(landscape), judging(landscape, "tolerance", 0.05)
    kinds: dict[str, dict[int, list[Forked]]] = {}
    for fork in _forks(landscape, split):
        kinds.setdefault(fork.kind, {}).setdefault(fork.epoch, []).append(fork)
    if not kinds:
        return None
    curves = [
        _curve(kind, [ForkPointValues(epoch, tuple(found[epoch])) for epoch in sorted(found)], tolerance)
        for kind, found in kinds.items()
    ]
    return ForkCurves(tuple(curves), _unrelated(landscape, kinds, split), split, tolerance)


def kind_of(name: str, epoch: int) -> str:
    """The kind of a fork: its name without its epoch and seed.

    >>> kind_of("altsdp_e20_s2", 20), kind_of("late", 20)
    ('altsdp', 'late')
    """
    return seed_of(name)[0].removesuffix(f"_e{epoch}")


def _forks(landscape: Landscape, split: str) -> Iterator[Forked]:
    for minimum in landscape.minima.values():
        fork = minimum.settings.get("fork")
        if not isinstance(fork, dict):
            continue
        trunk, epoch = str(fork["from"]), int(fork["epoch"])
        path = between(landscape.lines, trunk, minimum.name)
        line = None if path is None else line_estimate(landscape, path, split)
        yield Forked(minimum.name, trunk, kind_of(minimum.name, epoch), epoch, line, _final(minimum))


def _final(minimum: MinimumRecord) -> dict[str, float]:
    return {name: minimum.final[name] for name in FINAL if math.isfinite(minimum.final.get(name, math.nan))}


def _curve(kind: str, points: Sequence[ForkPointValues], tolerance: float) -> ForkCurve:
    settled: int | None = None
    for point in reversed(points):
        barriers = [found for fork in point.forks if (found := fork.estimate("barrier")) is not None]
        if not barriers or any(not found.value <= tolerance for found in barriers):
            break
        settled = point.epoch
    return ForkCurve(kind, tuple(points), settled)


def _unrelated(landscape: Landscape, kinds: dict[str, dict[int, list[Forked]]], split: str) -> Estimate | None:
    """The barrier between a trunk and a network from another initialisation: the second trunk, or the control."""
    trunks = list(dict.fromkeys(fork.trunk for found in kinds.values() for forks in found.values() for fork in forks))
    others = [*trunks[1:], *(name for name in ("control",) if name in landscape.minima)]
    for other in others:
        path = between(landscape.lines, trunks[0], other)
        if path is not None and (line := line_estimate(landscape, path, split)) is not None:
            return Estimate(line.value, line.low, line.high)
    return None


def _remark(curve: ForkCurve, tolerance: float) -> str:
    first, last = curve.points[0].epoch, curve.points[-1].epoch
    if curve.settled is None:
        found = curve.points[-1].over_seeds("barrier")
        if found is None:
            return f"{curve.kind}: the line from the trunk to the fork at epoch {last} is not measured yet."
        return (
            f"{curve.kind}: forks at epoch {last} still have a barrier of up to {found.high:.3g} nats to their trunk."
        )
    if curve.settled == first:
        return f"{curve.kind}: no fork has a barrier above {tolerance:g} nats to its trunk, even at epoch {first}."
    return f"{curve.kind}: from epoch {curve.settled} on, no fork has a barrier above {tolerance:g} nats to its trunk."


def _estimate_json(found: Estimate | None) -> dict[str, Any] | None:
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}
