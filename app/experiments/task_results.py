"""The results of tasks: small records without torch, for the writer of the landscape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from valleyscope.landscape.storage.records import Floats, MinimumRecord, PathRecord, PlaneRecord


@dataclass(frozen=True)
class TrainedMinimum:
    record: MinimumRecord
    fingerprint: str  # of the training and test data


@dataclass(frozen=True)
class FittedCurve:
    length: float  # arc length in weight space


@dataclass(frozen=True)
class FramedPlane:
    record: PlaneRecord  # named points and axes, without values


@dataclass(frozen=True)
class SurfaceTile:
    """Values of a tile's points, by split, in the order of the tile."""

    loss: dict[str, Floats]
    error: dict[str, Floats]


@dataclass(frozen=True)
class MeasuredPath:
    record: PathRecord


@dataclass(frozen=True)
class AlignedPath:
    """A line to an aligned minimum; without a record the network could not be aligned, and the note says why."""

    record: PathRecord | None
    note: str


@dataclass(frozen=True)
class MeasuredSharpness:
    values: dict[str, Any]


@dataclass(frozen=True)
class CompactedMinimum:
    report: dict[str, Any]  # `smaller`, and if so sizes and latencies, or why the network was refused


@dataclass(frozen=True)
class Judged:
    verdict: dict[str, Any]


Result = (
    TrainedMinimum
    | FittedCurve
    | FramedPlane
    | SurfaceTile
    | MeasuredPath
    | AlignedPath
    | MeasuredSharpness
    | CompactedMinimum
    | Judged
)
