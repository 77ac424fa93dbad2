"""The verdict on any two minima of a landscape, from the profiles and estimates that its file keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from valleyscope.landscape.analysis.barriers import Barrier, Floats, path_losses
from valleyscope.landscape.analysis.pair_matrix import judged_split, judging, line_estimate, with_aligned_lines
from valleyscope.landscape.analysis.verdict import Control, Verdict, verdict
from valleyscope.landscape.analysis.verdict_kind import kind_of
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PathRecord, between


class UnknownPair(ValueError):
    """The two names are not two minima of the landscape; the message says which are."""


class MissingLine(ValueError):
    """The straight line between the two minima has no values."""


@dataclass(frozen=True)
class _Values:
    loss: Floats
    error: Floats | None
    guessing: float | None


@dataclass(frozen=True)
class _Path:
    """A stored path in the direction of the question."""

    name: str
    splits: dict[str, _Values]
    estimate: Barrier


def pair_verdict(landscape: Landscape, first: str, second: str) -> dict[str, Any]:
    """The JSON of the verdict on two minima; the pair that the experiment judged has its own verdict.

    Intervals are those that the experiment's verdict keeps of each path; without them, the notes say so.
    """
    stored = landscape.verdict or {}
    for name in (first, second):
        if name not in landscape.minima:
            raise UnknownPair(
                f"between names {name!r}, which is not a minimum: use two of {', '.join(landscape.minima)}"
            )
    if first == second:
        raise UnknownPair(f"between names {first!r} twice: use two of {', '.join(landscape.minima)}")
    if stored.get("between") == [first, second]:
        return dict(stored)
    return judge_pair(landscape, first, second).to_json()


def judge_pair(landscape: Landscape, first: str, second: str) -> Verdict:
    """The verdict on two minima, whichever pair the landscape's own verdict is about; raises MissingLine."""
    stored = landscape.verdict or {}
    split = judged_split(landscape)
    line = _path(landscape, landscape.lines, split, first, second)
    if line is None:
        raise MissingLine(f"the line from {first} to {second} has no values")
    curve = _path(landscape, landscape.curves, split, first, second)
    control, control_line = _control(landscape, split, first, second)
    control_curve = None if control is None else _path(landscape, landscape.curves, split, first, control)
    other = with_aligned_lines(landscape)
    aligned = _path(other, other.lines, split, first, second)
    errors = stored.get("test_error_verdict") or {}
    found = verdict(
        line,
        curve,
        control_line,
        control_curve,
        between=(first, second),
        curve_name=curve.name if curve else "curve",
        control_name=control or "control",
        tolerance=judging(landscape, "tolerance", 0.05),
        error_tolerance=errors.get("tolerance", 0.01),
        split=split,
        level=judging(landscape, "level", 0.95),
        resamples=stored.get("bootstrap", 1000),
        aligned=aligned,
        alignment=(stored.get("alignment") or {}).get("method", "weights"),
        alignment_note="" if aligned is None else other.lines[aligned.name].note,
        sharpness={name: values for name, values in (stored.get("sharpness") or {}).items() if name in (first, second)},
    )
    paths = {"line": line, "curve": curve, "control": control_line, "control curve": control_curve}
    paths |= {"aligned": aligned}
    with_interval = {name for name, path in paths.items() if path is not None and path.estimate.low is not None}
    are_minima = math.isfinite(found.trend.start + found.trend.end) and found.guessing_networks.keys().isdisjoint(
        (first, second)
    )
    curve_estimate = curve.estimate if curve else None
    return replace(
        found,
        line=line.estimate,
        curve=curve_estimate,
        control=None
        if control_line is None or control is None
        else Control(control, control_line.estimate, control_curve.estimate if control_curve else None),
        aligned=None if found.aligned is None or aligned is None else replace(found.aligned, line=aligned.estimate),
        kind=kind_of(line.estimate, curve_estimate, found.tolerance) if are_minima else found.kind,
        unit=stored.get("unit", "nats"),
        notes=tuple(
            note
            for note in found.notes
            if not ("no per-sample losses" in note and note.partition(":")[0] in with_interval)
        ),
    )


def _control(landscape: Landscape, split: str, first: str, second: str) -> tuple[str | None, _Path | None]:
    """The experiment's control, else the first other minimum, with the line to it."""
    chosen = ((landscape.verdict or {}).get("control") or {}).get("name")
    for name in dict.fromkeys([chosen, *landscape.minima]):
        if name in landscape.minima and name not in (first, second):
            path = _path(landscape, landscape.lines, split, first, name)
            if path is not None:
                return name, path
    return None, None


def _path(landscape: Landscape, paths: dict[str, PathRecord], split: str, first: str, second: str) -> _Path | None:
    record = between(paths, first, second)
    if record is None:
        return None
    back = record.start != first
    estimate = line_estimate(landscape, record, split, reverse=back)
    if estimate is None:
        return None
    guessing = (landscape.verdict or {}).get("guessing")
    splits = {}
    for name in record.splits:
        loss, error = (path_losses(record, name, value) for value in ("loss", "error"))
        if loss is not None and (error is not None or name != "test"):
            step = -1 if back else 1
            splits[name] = _Values(
                loss[::step], None if error is None else error[::step], guessing if name == split else None
            )
    return _Path(record.name, splits, estimate)
