"""Barrier, rise and ends of every measured path with their intervals, as a verdict keeps them for other pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from valleyscope.landscape.analysis.barriers import Barrier, Estimate, bootstrap_barriers, measured_barrier
from valleyscope.landscape.analysis.path_values import guessing_loss_of, losses_of
from valleyscope.landscape.analysis.verdict import barrier_json, finite_json


def with_path_estimates(
    verdict: Mapping[str, Any], names: Iterable[str], profile: Callable[[str], Any], *, seed: int = 0
) -> dict[str, Any]:
    """The JSON of a verdict with ``paths``, the estimates of each path by name, and ``guessing``, the loss of guessing.

    They let any pair of minima be judged later, when the losses of single samples are gone. One profile is held at a
    time: those of many minima would not fit into memory together.
    """
    split = verdict["split"]
    paths, guessing = {}, None
    for name in names:
        path = profile(name)
        losses = losses_of(path, split, name)
        found = (
            measured_barrier(losses)
            if losses.ndim == 1
            else bootstrap_barriers([losses], level=verdict["level"], resamples=verdict["bootstrap"], seed=seed)[0]
        )
        guessing = guessing_loss_of(path, split) if guessing is None else guessing
        paths[name] = finite_json(barrier_json(found))
    return {**verdict, "paths": paths, "guessing": guessing}


def known_estimate(verdict: Mapping[str, Any] | None, name: str) -> Barrier | None:
    """What a verdict keeps of a path; None where a loss overflows, or if it is malformed."""
    paths = (verdict or {}).get("paths")
    found = paths.get(name) if isinstance(paths, Mapping) else None
    if not isinstance(found, Mapping):
        return None
    height = _estimate(found, "barrier")
    rise, ends = (_estimate(found.get(key), "value") for key in ("rise", "ends"))
    if height is None or rise is None or ends is None:
        return None
    return Barrier(height.value, height.low, height.high, rise=rise, ends=ends)


def _estimate(values: Any, key: str) -> Estimate | None:
    """A number with its bounds, if it has some; an uploaded file may have anything here."""
    if not isinstance(values, Mapping):
        return None
    numbers = [
        float(number)
        for name in (key, "low", "high")
        if isinstance(number := values.get(name), int | float) and not isinstance(number, bool)
    ]
    without_bounds = values.get("low") is None and values.get("high") is None
    return Estimate(*numbers) if len(numbers) == (1 if without_bounds else 3) else None
