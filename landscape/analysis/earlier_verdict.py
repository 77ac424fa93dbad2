"""Verdicts of earlier versions, judged anew from the profiles in the same file.

They knew the kind "one basin" and measured no rise, so a steep slope looked like a level valley.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from valleyscope.landscape.analysis.barriers import Barrier, measured_barrier, path_losses
from valleyscope.landscape.analysis.pair_verdict import judge_pair
from valleyscope.landscape.analysis.verdict import Control, Trend, Verdict, barrier_json
from valleyscope.landscape.analysis.verdict_kind import VerdictKind
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PathRecord, between

ONE_BASIN: Final = "one basin"
_NOTE: Final = "judged anew: an earlier version measured no rise, so the rise has no confidence interval"
_UNKNOWN: Final = "an earlier version measured no rise, and the profile of the line is missing"


def judged_anew(landscape: Landscape) -> dict[str, Any] | None:
    """The verdict of a landscape with the rise of its paths, and for "one basin" the kind that follows from it.

    Kinds that the rise does not change stay with their sentence. Anything that is no verdict is returned as it is.
    """
    stored = landscape.verdict
    if stored is None or not _lacks_rise(stored):
        return stored
    try:
        return _judged(landscape, stored)
    except (LookupError, TypeError, AttributeError, ValueError):  # an uploaded file may have anything in its verdict
        return stored


def _judged(landscape: Landscape, stored: dict[str, Any]) -> dict[str, Any]:
    start, end = stored["between"]
    measured = {
        "line": _measured(stored["line"], between(landscape.lines, start, end), stored["split"]),
        "curve": _measured(stored.get("curve"), between(landscape.curves, start, end), stored["split"]),
    }
    control = stored.get("control")
    if isinstance(control, Mapping) and isinstance(control.get("name"), str):
        name = control["name"]
        measured["control line"] = _measured(
            control.get("line"), between(landscape.lines, start, name), stored["split"]
        )
        measured["control curve"] = _measured(
            control.get("curve"), between(landscape.curves, start, name), stored["split"]
        )
    paths = dict(pair for pair in measured.values() if pair is not None)
    if stored["kind"] != ONE_BASIN:
        return _with_rises(stored, measured)
    if measured["line"] is None:
        return _without_profile(stored)
    judged = judge_pair(replace(landscape, verdict={**stored, "paths": paths}), start, end)
    if control is not None and (judged.control is None or judged.control.name != control["name"]):
        judged = replace(judged, control=_stored_control(control))  # its profile is missing
    kept = {name: stored[name] for name in ("sharpness", "test_error") if stored.get(name)}
    return {**replace(judged, notes=(*judged.notes, _NOTE)).to_json(), **kept}


def _lacks_rise(verdict: Mapping[str, Any]) -> bool:
    """Whether it is a verdict in the form of earlier versions."""
    line = verdict.get("line")
    return isinstance(line, Mapping) and "barrier" in line and "rise" not in line


def _measured(stored: Any, path: PathRecord | None, split: str) -> tuple[str, dict[str, Any]] | None:
    """The name of a path and its estimates: rise and ends from its profile, the interval of the barrier as stored."""
    if path is None or split not in path.splits or (losses := path_losses(path, split)) is None:
        return None
    found = measured_barrier(losses)
    low, high = (stored.get(bound) if isinstance(stored, Mapping) else None for bound in ("low", "high"))
    if isinstance(low, float | int) and isinstance(high, float | int) and low <= found.value <= high:
        found = replace(found, low=float(low), high=float(high))
    return path.name, barrier_json(found)


def _with_rises(stored: dict[str, Any], measured: Mapping[str, tuple[str, dict[str, Any]] | None]) -> dict[str, Any]:
    """The verdict with rise and ends beside each barrier."""

    def with_rise(name: str, path: Any) -> Any:
        pair = measured.get(name)
        if pair is None or not isinstance(path, Mapping):
            return path
        return {**path, "rise": pair[1]["rise"], "ends": pair[1]["ends"]}

    found = stored | {name: with_rise(name, stored.get(name)) for name in ("line", "curve")}
    if isinstance(control := stored.get("control"), Mapping):
        found["control"] = {
            **control,
            **{name: with_rise(f"control {name}", control.get(name)) for name in ("line", "curve")},
        }
    return found


def _stored_control(control: Mapping[str, Any]) -> Control:
    curve = control.get("curve")
    return Control(control["name"], _stored_barrier(control["line"]), None if curve is None else _stored_barrier(curve))


def _stored_barrier(path: Mapping[str, Any]) -> Barrier:
    """A barrier without a rise; null is one that overflows."""
    value, low, high = (path.get(name) for name in ("barrier", "low", "high"))
    if low is None or high is None:
        return Barrier(math.inf if value is None else float(value))
    return Barrier(math.inf if value is None else float(value), float(low), float(high))


def _without_profile(stored: dict[str, Any]) -> dict[str, Any]:
    """One basin, but whether it is level is not known."""
    found = Verdict(
        VerdictKind.UNDECIDED,
        (stored["between"][0], stored["between"][1]),
        _stored_barrier(stored["line"]),
        Trend(0.0, 0.0, steady=False, lowest=0.0),
        tolerance=stored.get("tolerance", 0.05),
        split=stored["split"],
    ).to_json()
    kept = {name: found[name] for name in ("kind", "finding", "sentence")}
    return stored | kept | {"notes": [*(stored.get("notes") or []), _UNKNOWN]}
