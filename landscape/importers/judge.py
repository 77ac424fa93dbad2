"""A verdict on an imported landscape, from the paths that its files have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from valleyscope.landscape.analysis.verdict import Verdict, verdict
from valleyscope.landscape.analysis.verdict_kind import VerdictKind, kind_of
from valleyscope.landscape.importers.surface_paths import estimate_with_bounds, is_read
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PathRecord, PathValues, between, recorded

_AT_END = 1e-9


class NoVerdict(ValueError):
    """The landscape has no verdict; the message says what is missing."""


def judged(landscape: Landscape) -> dict[str, Any]:
    """The verdict on the first two minima with a straight line between them; raises NoVerdict."""
    lines = [line for line in landscape.lines.values() if {line.start, line.end} <= landscape.minima.keys()]
    if not lines:
        raise NoVerdict(_missing_line(landscape))
    line = lines[0]
    split = next((split for split in ("train", "test") if _has_loss(line, split)), None)
    if split is None:
        raise NoVerdict(f"the line from {line.start} to {line.end} has errors and no losses")
    within = _between_minima(line)
    if within is None:
        raise NoVerdict(
            f"the line from {line.start} to {line.end} has no value at one of them: it was computed from "
            f"{line.t[0]:g} to {line.t[-1]:g}, and the networks are at 0 and 1"
        )
    curve = between(landscape.curves, line.start, line.end)
    if curve is not None and not _has_loss(curve, split):
        curve = None
    others = (other for other in lines[1:] if other.start == line.start and other.end != line.end)
    control = next((other for other in others if _has_loss(other, split)), None)
    control_curve = None if control is None else between(landscape.curves, control.start, control.end)
    found = verdict(
        within,
        curve,
        control,
        control_curve if control_curve is not None and _has_loss(control_curve, split) else None,
        between=(line.start, line.end),
        curve_name="curve" if curve is None else curve.name,
        control_name="control" if control is None else control.end,
        split=split,
    )
    if is_read(line):
        found = _with_bounds(landscape, found, line, curve)
    return found.to_json()


def _with_bounds(landscape: Landscape, found: Verdict, line: PathRecord, curve: PathRecord | None) -> Verdict:
    """The verdict on paths that were read off a surface: the kind counts with what interpolation may be wrong by."""
    estimates = {
        path.name: estimate_with_bounds(landscape, path, found.split)
        for path in (line, curve)
        if path and is_read(path)
    }
    judged, around = estimates[line.name], found.curve if curve is None else estimates.get(curve.name, found.curve)
    no_minima = found.kind is VerdictKind.UNDECIDED  # an end is infinite
    return replace(
        found,
        line=judged,
        curve=around,
        kind=found.kind if no_minima else kind_of(judged, around, found.tolerance),
        level=None,
        notes=(
            *(note for note in found.notes if "per-sample" not in note),
            f"{line.note}: the intervals say how exact that is",
        ),
    )


def _missing_line(landscape: Landscape) -> str:
    what = "the straight line between two minima"
    if landscape.curves:
        curve = next(iter(landscape.curves.values()))
        return f"a verdict needs {what}; there is only a curve from {curve.start} to {curve.end}"
    if len(landscape.minima) < 2:
        return "a verdict compares two minima, and there is only one" if landscape.minima else f"a verdict needs {what}"
    return f"a verdict needs the values along {what}; there are only surfaces"


def _has_loss(path: PathRecord, split: str) -> bool:
    return split in path.splits and recorded(path.splits[split].loss)


def _between_minima(line: PathRecord) -> PathRecord | None:
    """The part from one minimum (t = 0) to the other (t = 1); other tools go on beyond them."""
    inside = (line.t >= -_AT_END) & (line.t <= 1 + _AT_END)
    t = line.t[inside]
    if len(t) < 2 or abs(t[0]) > _AT_END or abs(t[-1] - 1) > _AT_END:
        return None
    splits = {
        split: PathValues(np.asarray(values.loss[inside]), np.asarray(values.error[inside]))
        for split, values in line.splits.items()
    }
    return replace(line, t=t, arc=line.arc[inside], splits=splits)
