"""Compare two or more networks in one call: from weights to a landscape with a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from torch import Tensor, nn

from valleyscope.landscape.analysis.pair_matrix import pair_matrix
from valleyscope.landscape.analysis.path_estimates import with_path_estimates
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
    coinciding_lines,
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
    error_tolerance: float = 0.01,
    seed: int = 0,
    between: tuple[str, str] | None = None,
    control: str | None = None,
    **fitting: Any,
) -> Landscape:
    """Do two of these networks share one level valley? The first two are judged, and the third is the control.

    ``between`` and ``control`` name others. Every pair has its straight line: ``pair_matrix`` of the result has the
    barrier and the rise of each, ``pair_verdict`` judges any of them.

    ``minima`` are state dicts or flat vectors of ``model`` by name. Buffers of the state dicts must be equal, except
    BatchNorm statistics, which are recomputed unless ``batch_norm`` is ``frozen``. ``data`` has the split ``train`` and
    may have others; a single pair (x, y) is ``train``. Further options, such as ``epochs``, ``lr`` or ``batch_size``,
    go to ``fit_curve``. The result has the surface on the plane through the judged two and the bend between them, the
    surface on the plane of these two and the control, profiles of all straight lines and fitted curves, and the
    verdict. Save it, or pass it to ``write_report``.
    """
    if len(minima) < 2:
        raise ValueError(f"minima has {len(minima)} networks; give two or more")
    data = by_split(data)
    if "train" not in data:
        raise ValueError(f"data has the splits {', '.join(data) or 'none'}; barriers are measured on 'train'")
    for key in minima:
        checked_name(key, "minima: a network")
        if key.endswith(".bend"):
            raise ValueError(
                f"minima: a network has the name {key!r}, which ends like that of a curve's bend; rename it"
            )
    if (line := coinciding_lines(minima)) is not None:
        raise ValueError(
            f"minima: two lines between {', '.join(minima)} would have the name {line!r}; rename a network"
        )
    (first, second), control = _question(list(minima), between, control)
    for split in data:
        check_split("data", split)
    vectors = {key: as_vector(model, weights, key) for key, weights in minima.items()}
    model = with_buffers(model, minima, statistics=batch_norm == "frozen")
    evaluator = Evaluator(model, data, batch_norm=batch_norm)
    ends = {"valley": (first, second)} | ({} if control is None else {"contrast": (first, control)})
    curves = {
        label: fit_curve(model, vectors[start], vectors[end], data["train"], seed=seed, **fitting)
        for label, (start, end) in ends.items()
    }
    straights = {line_name(a, b): (a, b) for a, b in combinations(vectors, 2)}
    landscape = Landscape(name, provenance={"fingerprint": None, "batch_norm": batch_norm, "seeds": {"curves": seed}})

    def measured(label: str) -> Profile:
        """A path with the losses of its samples; only its means are kept."""
        a, b = ends[label] if label in curves else straights[label]
        path = curves[label] if label in curves else straight(vectors[a], vectors[b])
        found = along(model, path, evaluator=evaluator, samples=True)
        (landscape.curves if label in curves else landscape.lines)[label] = _record(label, found, a, b)
        return found

    judging = [key for key, pair in straights.items() if set(pair) in ({first, second}, {first, control})]
    kept = {label: measured(label) for label in (*curves, *judging)}
    judged = verdict(
        _between(kept, straights, first, second),
        kept["valley"],
        None if control is None else _between(kept, straights, first, control),
        kept.get("contrast"),
        between=(first, second),
        curve_name="valley",
        control_name=control or "control",
        tolerance=tolerance,
        error_tolerance=error_tolerance,
        seed=seed,
        sharpness={key: sharpness(model, vector, seed=seed, evaluator=evaluator) for key, vector in vectors.items()},
    )
    landscape.verdict = with_path_estimates(
        judged.to_json(), [*curves, *straights], lambda label: kept.get(label) or measured(label), seed=seed
    )
    landscape.lines = {label: landscape.lines[label] for label in straights}
    landscape.minima = {key: _minimum(key, landscape.lines.values()) for key in vectors}
    chosen = [first, second] if control is None else [first, second, control]
    landscape.planes = dict(_planes(model, vectors, chosen, curves, evaluator, resolution))
    landscape.matrix = pair_matrix(landscape).to_record()
    return landscape


def _question(
    names: list[str], between: tuple[str, str] | None, control: str | None
) -> tuple[tuple[str, str], str | None]:
    """The two networks to judge and the control, by default the first others."""
    for field, name in (*(("between", name) for name in between or ()), ("control", control)):
        if name is not None and name not in names:
            raise ValueError(f"{field} names {name!r}, which is not in minima; use one of {', '.join(names)}")
    free = [name for name in names if name != control]
    first, second = between or (free[0], free[1] if len(free) > 1 else free[0])
    if len({first, second, control}) < 3:
        raise ValueError(f"between={[first, second]} and control={control!r} must be different networks")
    others = (name for name in names if name not in (first, second))
    return (first, second), control or next(others, None)


def _between(profiles: Mapping[str, Profile], straights: Mapping[str, tuple[str, str]], a: str, b: str) -> Profile:
    """The straight line from one network to another, whichever way it was measured."""
    label, pair = next((label, pair) for label, pair in straights.items() if set(pair) == {a, b})
    return profiles[label] if pair == (a, b) else profiles[label].reversed()


def _planes(
    model: nn.Module,
    vectors: Mapping[str, Tensor],
    chosen: list[str],
    curves: Mapping[str, Curve],
    evaluator: Evaluator,
    resolution: int,
) -> list[tuple[str, PlaneRecord]]:
    points = dict(vectors) | {f"{label}.bend": curve.points[1] for label, curve in curves.items()}
    wanted = {"valley": ((chosen[0], chosen[1], "valley.bend"), ["valley"])}
    if len(chosen) == 3:
        wanted["basins"] = ((chosen[0], chosen[1], chosen[2]), [])
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


def _minimum(name: str, lines: Iterable[PathRecord]) -> MinimumRecord:
    """Loss and accuracy of a network, from the end of a line."""
    line, end = next((line, 0 if line.start == name else -1) for line in lines if name in (line.start, line.end))
    return MinimumRecord(name, "given", final=final_metrics(line.splits, end))
