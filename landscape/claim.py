"""What a verdict claims, as pictures show it: which plane comes first, up to which level a path counts as flat.

The claim names the judged minima and their control. For each quantity it has a level: the higher end of the judged path
plus the tolerance of the verdict. The same rules are in static/landscape/claim.js.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from valleyscope.landscape.analysis.verdict_kind import VerdictKind
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PathRecord, PlaneRecord

_RULES: Final = STYLE["claim"]


@dataclass(frozen=True)
class Level:
    """One quantity along the judged paths: its higher end, the tolerance above it, and the highest value to show."""

    end: float
    tolerance: float
    peak: float
    judged: bool = True
    """False where the verdict does not judge this quantity: then it has no tolerance contour."""
    floor: float | None = None
    """Of a slope: the lowest value of the judged line plus the tolerance, where what is level with it ends."""

    @property
    def value(self) -> float:
        return self.end + self.tolerance


@dataclass(frozen=True)
class Claim:
    """The judged minima, their control, and the level of each (split, quantity)."""

    between: tuple[str, str]
    control: str | None = None
    levels: Mapping[tuple[str, str], Level] = field(default_factory=dict)

    def level(self, plane: PlaneRecord, split: str, value: str) -> Level | None:
        """The level of a quantity, if the plane passes through a minimum of the claim."""
        names = (*self.between, self.control)
        if any(name in plane.points and not plane.is_projected(name) for name in names if name):
            return self.levels.get((split, value))
        return None


def claim_of(landscape: Landscape) -> Claim | None:
    """The claim of a landscape's verdict; None without a verdict."""
    verdict = landscape.verdict
    if not verdict or len(verdict.get("between") or ()) != 2:
        return None
    start, end = verdict["between"]
    control = (verdict.get("control") or {}).get("name")
    verdicts = {"loss": verdict, "error": verdict.get("test_error_verdict") or {}}
    paths = [*landscape.lines.values(), *landscape.curves.values()]
    judged = [path for path in paths if {path.start, path.end} == {start, end}]  # the line first
    beside = [path for path in paths if path.kind == "line" and {path.start, path.end} == {start, control}]
    levels = {
        (split, value): level
        for split in (judged[0].splits if judged else ())
        for value, found in verdicts.items()
        if (level := _level(judged, beside, split, value, found))
    }
    return Claim((start, end), control, levels)


def _level(
    judged: Sequence[PathRecord], beside: Sequence[PathRecord], split: str, value: str, verdict: Mapping[str, Any]
) -> Level | None:
    end = float(max(judged[0].splits[split][value][[0, -1]]))  # NaN where it was never recorded
    if not math.isfinite(end):
        return None
    known = [path.splits[split][value] for path in (*judged, *beside) if split in path.splits]
    values = np.concatenate(known)
    highest = float(values[np.isfinite(values)].max())
    given = verdict.get("tolerance")
    tolerance = float(given or _RULES["tolerance"][value])
    peak = max(highest, end + _RULES["least_room"] * tolerance)
    slopes = bool(given) and verdict.get("kind") == VerdictKind.ONE_BASIN_SLOPING and judged[0].kind == "line"
    floor = float(np.nanmin(judged[0].splits[split][value])) + tolerance if slopes else None
    return Level(end, tolerance, peak, bool(given), floor if floor is not None and floor < end else None)


def planes_in_order(
    planes: Mapping[str, Iterable[str]], between: Sequence[str] | None, control: str | None
) -> list[str]:
    """Names of planes, those that show the claim first: through both minima and the control, then through both.

    >>> planes_in_order({"valley": ["a", "b", "bend"], "basins": ["a", "b", "c"]}, ("a", "b"), "c")
    ['basins', 'valley']
    """
    pair = set(between or ())

    def rank(name: str) -> int:
        through = set(planes[name])
        return 2 if not pair or not pair <= through else 0 if control in through else 1

    return sorted(planes, key=rank)


def computed_planes(landscape: Landscape) -> list[PlaneRecord]:
    """The planes of a landscape with computed values, those that show the claim first."""
    claim = claim_of(landscape)
    planes = {name: plane for name, plane in landscape.planes.items() if plane.done.any()}
    order = planes_in_order(
        {name: plane.defining for name, plane in planes.items()},
        claim.between if claim else None,
        claim.control if claim else None,
    )
    return [planes[name] for name in order]
