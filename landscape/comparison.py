"""Compare two or three networks in one call: from weights to a landscape with a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from torch import Tensor, nn

from valleyscope.landscape.analysis.profiles import Profile, along
from valleyscope.landscape.analysis.sharpness import sharpness
from valleyscope.landscape.analysis.surfaces import surface
from valleyscope.landscape.analysis.verdict import verdict
from valleyscope.landscape.evaluation.evaluator import BatchNorm, Evaluator
from valleyscope.landscape.evaluation.splits import Data, by_split
from valleyscope.landscape.fitting.fit_curve import fit_curve
from valleyscope.landscape.geometry.curves import Curve
from valleyscope.landscape.geometry.curves import line as straight
from valleyscope.landscape.geometry.planes import Plane
from valleyscope.landscape.geometry.vectors import Weights, as_vector
from valleyscope.landscape.network.buffers import with_buffers
from valleyscope.landscape.storage._checks import check_split
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.plane_record import plane_record
from valleyscope.landscape.storage.records import (
    MinimumRecord,
    PathRecord,
    PathValues,
    PlaneRecord,
    checked_name,
    final_metrics,
    line_name,
)


def compare(
    model: nn.Module,
    minima: Mapping[str, Weights],
    data: Data,
    *,
    name: str = "comparison",
    resolution: int = 41,
    batch_norm: BatchNorm = "population",
    tolerance: float = 0.05,
    seed: int = 0,
    **fitting: Any,
) -> Landscape:
    """Do the first two of these networks lie in one basin? The third, if there is one, is the control.

    ``minima`` are state dicts or flat vectors of ``model`` by name. Buffers of the state dicts must be equal, except
    BatchNorm statistics, which are recomputed unless ``batch_norm`` is ``frozen``. ``data`` has the split ``train`` and
    may have others; a single pair (x, y) is ``train``. Further options, such as ``epochs``, ``lr`` or ``batch_size``,
    go to ``fit_curve``. The result has the surface on the plane through the first two and the bend between them, the
    surface on the plane of all three, profiles of all straight lines and fitted curves, and the verdict. Save it, or
    pass it to ``write_report``.
    """
    if not 2 <= len(minima) <= 3:
        raise ValueError(f"minima has {len(minima)} networks; give two, and a third as the control")
    data = by_split(data)
    if "train" not in data:
        raise ValueError(f"data has the splits {', '.join(data) or 'none'}; barriers are measured on 'train'")
    for key in minima:
        checked_name(key, "minima: a network")
    for split in data:
        check_split("data", split)
    vectors = {key: as_vector(model, weights, key) for key, weights in minima.items()}
    model = with_buffers(model, minima, statistics=batch_norm == "frozen")
    first, second, *rest = vectors
    evaluator = Evaluator(model, data, batch_norm=batch_norm)
    curves = {
        label: fit_curve(model, vectors[first], vectors[other], data["train"], seed=seed, **fitting)
        for label, other in zip(("valley", "contrast"), (second, *rest), strict=False)
    }
    ends = dict(zip(curves, ((first, second), *((first, other) for other in rest)), strict=True))
    straights = {line_name(a, b): (a, b) for a, b in combinations(vectors, 2)}
    profiles = {label: along(model, curve, evaluator=evaluator, samples=True) for label, curve in curves.items()}
    profiles |= {
        label: along(model, straight(vectors[a], vectors[b]), evaluator=evaluator, samples=True)
        for label, (a, b) in straights.items()
    }
    control = rest[0] if rest else None
    judged = verdict(
        profiles[line_name(first, second)],
        profiles["valley"],
        None if control is None else profiles[line_name(first, control)],
        profiles.get("contrast"),
        between=(first, second),
        curve_name="valley",
        control_name=control or "control",
        tolerance=tolerance,
        seed=seed,
        sharpness={key: sharpness(model, vector, seed=seed, evaluator=evaluator) for key, vector in vectors.items()},
    )
    landscape = Landscape(name, provenance={"fingerprint": None, "batch_norm": batch_norm, "seeds": {"curves": seed}})
    landscape.minima = {key: _minimum(key, profiles, straights) for key in vectors}
    landscape.curves = {label: _record(label, profiles[label], *ends[label]) for label in curves}
    landscape.lines = {label: _record(label, profiles[label], a, b) for label, (a, b) in straights.items()}
    landscape.planes = dict(_planes(model, vectors, curves, evaluator, resolution))
    landscape.verdict = judged.to_json()
    return landscape


def _planes(
    model: nn.Module, vectors: Mapping[str, Tensor], curves: Mapping[str, Curve], evaluator: Evaluator, resolution: int
) -> list[tuple[str, PlaneRecord]]:
    points = dict(vectors) | {f"{label}.bend": curve.points[1] for label, curve in curves.items()}
    wanted = {"valley": ((*list(vectors)[:2], "valley.bend"), ["valley"])}
    if len(vectors) == 3:
        wanted["basins"] = (tuple(vectors), [])
    records = []
    for name, (through, drawn) in wanted.items():
        a, b, c = (points[key] for key in through)
        plane = Plane.through(a, b, c, names=through, complete="random")
        shown = {label: curves[label] for label in drawn}
        record = plane_record(
            name, plane, points, shown, splits=list(evaluator.splits), resolution=resolution, defining=through
        )
        values = surface(model, plane, x=record.x, y=record.y, evaluator=evaluator)
        record.splits = dict(values.splits)
        record.done[:] = True
        records.append((name, record))
    return records


def _record(name: str, profile: Profile, start: str, end: str) -> PathRecord:
    values = {split: PathValues(found.loss, found.error) for split, found in profile.splits.items()}
    return PathRecord(name, profile.kind, start, end, profile.t, profile.arc, values)


def _minimum(name: str, profiles: Mapping[str, Profile], straights: Mapping[str, tuple[str, str]]) -> MinimumRecord:
    """Loss and accuracy of a network, from the end of a line."""
    label, end = next((key, 0 if pair[0] == name else -1) for key, pair in straights.items() if name in pair)
    return MinimumRecord(name, "given", final=final_metrics(profiles[label].splits, end))
