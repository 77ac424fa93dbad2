"""Pruning methods side by side: one row for each method and share, with its spread over seeds.

For landscapes whose spec compares methods: networks of further seeds end in `_s2`, `_s3`, and every network has a line
to the SGD network of its seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from valleyscope.landscape.analysis.pair_matrix import line_estimate
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord, between

COLUMNS: Final = {
    "test_accuracy": "test accuracy",
    "train_loss": "train loss",
    "zero_groups": "zero groups",
    "macs": "multiply-adds left",
    "rise": "rise to SGD",
    "barrier": "barrier to SGD",
    "accuracy_before_cut": "accuracy before the cut",
    "accuracy_after_cut": "after the cut",
    "latency_1": "latency left, 1 sample",
    "latency_32": "latency left, 32 samples",
    "time": "training time over SGD's",
}
SHARES: Final = (
    *("test_accuracy", "zero_groups", "macs", "accuracy_before_cut", "accuracy_after_cut"),
    *("latency_1", "latency_32"),
)
"""The columns that are shown in percent."""
_CONTROLS: Final = ("control", "reordered")
_SIMPLE: Final = ("one-shot", "ls", "ucs")


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation (None for one seed) and the number of seeds."""

    mean: float
    deviation: float | None
    count: int


@dataclass(frozen=True)
class MethodRow:
    """One method at one share; `minima` are its networks, one for each seed that is trained."""

    name: str
    method: str
    wish: float | None
    minima: tuple[str, ...]
    values: dict[str, Spread] = field(default_factory=dict)
    collapsed: int = 0

    def cell(self, column: str) -> str | None:
        """Mean and deviation as text; None if the column is unknown.

        >>> row = MethodRow("sfp_50", "sfp", 0.5, ("sfp_50",), {"macs": Spread(0.4, 0.01, 2)})
        >>> row.cell("macs"), row.cell("rise")
        ('40.0 ± 1.0 %', None)
        """
        spread = self.values.get(column)
        if spread is None:
            return None
        if column in SHARES:
            mean, deviation = (f"{100 * value:.1f}" for value in (spread.mean, spread.deviation or 0.0))
            return f"{mean} %" if float(deviation) == 0 else f"{mean} ± {deviation} %"
        if not spread.deviation:
            return f"{spread.mean:.3g}"
        largest = max(abs(spread.mean), spread.deviation)
        digits = max(0, 2 - math.floor(math.log10(largest)))  # three of the larger number, as many of the other
        return f"{spread.mean:.{digits}f} ± {spread.deviation:.{digits}f}"

    def to_json(self) -> dict[str, Any]:
        values = {
            column: {"mean": spread.mean, "deviation": spread.deviation, "count": spread.count}
            for column, spread in self.values.items()
        }
        about = {"name": self.name, "method": self.method, "wish": self.wish, "minima": list(self.minima)}
        return {**about, "values": values, "collapsed": self.collapsed}


def seed_of(name: str) -> tuple[str, int]:
    """A network's name in its seed, and the number of the seed.

    >>> seed_of("altsdp_60"), seed_of("altsdp_60_s2")
    (('altsdp_60', 1), ('altsdp_60', 2))
    """
    base, separator, number = name.rpartition("_s")
    return (base, int(number)) if separator and number.isdecimal() else (name, 1)


def method_table(landscape: Landscape) -> list[MethodRow]:
    """The rows of a comparison of methods, in the order of its spec; empty for other landscapes."""
    if not (landscape.spec or {}).get("methods"):
        return []
    grouped: dict[str, list[str]] = {}
    for name in landscape.minima:
        grouped.setdefault(seed_of(name)[0], []).append(name)
    return [_row(landscape, base, names) for base, names in grouped.items()]


def remarks(rows: Sequence[MethodRow]) -> list[str]:
    """What a reader of the table should not miss: collapsed networks, and simple methods that do as well as AltSDP."""
    collapsed = [
        row.name + (f" ({row.collapsed} of {len(row.minima)} seeds)" if len(row.minima) > 1 else "")
        for row in rows
        if row.collapsed
    ]
    found = [f"Collapsed, no better than guessing: {', '.join(collapsed)}."] if collapsed else []
    for ours in (row for row in rows if row.method == "altsdp"):
        simple = (row for row in rows if row.method in _SIMPLE and row.wish == ours.wish)
        found += [sentence for other in simple if (sentence := _compared(ours, other)) is not None]
    return found


def _compared(ours: MethodRow, other: MethodRow) -> str | None:
    """A sentence if a simple method is no less accurate than AltSDP, up to the standard errors of both."""
    pair = [row.values.get("test_accuracy") for row in (ours, other)]
    if pair[0] is None or pair[1] is None:
        return None
    noise = math.hypot(*((spread.deviation or 0.0) / math.sqrt(spread.count) for spread in pair if spread))
    if pair[1].mean < pair[0].mean - noise:
        return None
    scratch = "A narrower network from scratch" if other.method == "ucs" else other.name
    noisy = ", within the standard error over seeds" if pair[1].mean < pair[0].mean else ""
    return (
        f"{scratch} does as well as {ours.name} by test accuracy{noisy}: "
        f"{100 * pair[1].mean:.1f} % against {100 * pair[0].mean:.1f} %."
    )


def _row(landscape: Landscape, base: str, names: Sequence[str]) -> MethodRow:
    minima = [landscape.minima[name] for name in names]
    first = minima[0]
    wish = first.settings.get("sparsity") or first.settings.get("macs")
    plain = base == "sgd" or base in _CONTROLS
    measured = [_measured(landscape, minimum) for minimum in minima]
    values = {
        column: _spread([found[column] for found in measured if column in found])
        for column in COLUMNS
        if any(column in found for found in measured)
    }
    collapsed = sum(bool(minimum.pruning.get("collapsed")) for minimum in minima)
    return MethodRow(base, base if plain else first.optimizer, None if plain else wish, tuple(names), values, collapsed)


def _measured(landscape: Landscape, minimum: MinimumRecord) -> dict[str, float]:
    """The numbers of one network, as far as they are known."""
    number = seed_of(minimum.name)[1]
    sgd = landscape.minima.get("sgd" if number == 1 else f"sgd_s{number}")
    cut = minimum.pruning.get("cut") or {}
    found = {
        "test_accuracy": minimum.final.get("test_accuracy"),
        "accuracy_before_cut": cut.get("test_accuracy_before"),
        "accuracy_after_cut": cut.get("test_accuracy_after"),
        "train_loss": minimum.final.get("train_loss"),
        "zero_groups": minimum.final.get("zero_groups"),
        "macs": minimum.pruning.get("macs", 1.0 if not minimum.pruning else None),
    }
    found |= _latencies(minimum)
    if sgd is not None and sgd.name != minimum.name:
        split = (landscape.verdict or {}).get("split", "train")
        path = between(landscape.lines, sgd.name, minimum.name)
        line = None if path is None else line_estimate(landscape, path, split)
        if line is not None:
            found |= {"barrier": line.value, "rise": None if line.rise is None else line.rise.value}
    if sgd is not None:
        found["time"] = _seconds_over(minimum, sgd)
    return {column: float(value) for column, value in found.items() if value is not None and math.isfinite(value)}


def _latencies(minimum: MinimumRecord) -> dict[str, float]:
    """The median latency of the compact network over that of the whole one, both measured in turn; 1 without zeros."""
    compact = minimum.compact
    if compact is None or "refused" in compact:
        return {}
    if not compact.get("smaller"):
        return {"latency_1": 1.0, "latency_32": 1.0}
    return {
        f"latency_{batch}": timed["after"]["median"] / timed["before"]["median"]
        for batch, timed in compact.get("latency", {}).items()
        if f"latency_{batch}" in COLUMNS
    }


def _seconds_over(minimum: MinimumRecord, sgd: MinimumRecord) -> float | None:
    """Training time over that of SGD; a cut of SGD's network has SGD's time and its own."""
    seconds, base = (run.final.get("seconds", 0.0) for run in (minimum, sgd))
    if base <= 0:
        return None
    return (seconds + (base if minimum.settings.get("of") else 0.0)) / base


def _spread(values: Sequence[float]) -> Spread:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(float(np.mean(values)), deviation, len(values))
