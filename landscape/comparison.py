"""Compare two or more networks in one call: from weights to a landscape with a verdict."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, Unpack

from torch import Tensor, nn

from valleyscope.landscape.aligned_lines import AlignedLines, with_aligned_estimates
from valleyscope.landscape.analysis.derived_tables import enter_derived_tables
from valleyscope.landscape.analysis.path_estimates import with_path_estimates
from valleyscope.landscape.analysis.profiles import Profile, along
from valleyscope.landscape.analysis.sharpness import sharpness
from valleyscope.landscape.analysis.surfaces import surface
from valleyscope.landscape.analysis.verdict import verdict
from valleyscope.landscape.comparison_progress import ComparisonProgress, comparison_progress
from valleyscope.landscape.evaluation.evaluator import BatchNorm, Evaluator, evaluator_for
from valleyscope.landscape.evaluation.objectives import ErrorRate, Loss
from valleyscope.landscape.evaluation.splits import Data, by_split
from valleyscope.landscape.fitting.fit_curve import FittingOptions, fit_curve
from valleyscope.landscape.geometry.curves import Curve
from valleyscope.landscape.geometry.curves import line as straight
from valleyscope.landscape.geometry.parameter_choice import Parameters, moved_text
from valleyscope.landscape.geometry.planes import Plane
from valleyscope.landscape.geometry.vectors import Weights, as_vector
from valleyscope.landscape.geometry.weight_files import loaded
from valleyscope.landscape.geometry.wrapped_networks import unwrapped
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
    loss: Loss = None,
    error: ErrorRate = None,
    parameters: Parameters = None,
    batch_norm: BatchNorm = "population",
    memory_limit: int | None = None,
    evaluator: Evaluator | None = None,
    tolerance: float | None = None,
    error_tolerance: float = 0.01,
    seed: int = 0,
    between: tuple[str, str] | None = None,
    control: str | None = None,
    align: Literal["weights", "activations"] | None = None,
    progress: bool = False,
    state: str | os.PathLike[str] | None = None,
    **fitting: Unpack[FittingOptions],
) -> Landscape:
    """Do two of these networks share one level valley? The first two are judged, and the third is the control.

    ``between`` and ``control`` name others. Every pair has its straight line: ``pair_matrix`` of the result has the
    barrier and the rise of each, ``pair_verdict`` judges any of them.

    ``minima`` are weights of ``model`` by name: state dicts, flat vectors, modules or paths. Of these the
    ``parameters`` move, by default those that require a gradient; all else must be equal, except BatchNorm statistics,
    which are recomputed unless ``batch_norm`` is ``frozen``. ``data`` has the split ``train`` and may have others; data
    without splits are ``train``. ``loss``, ``error`` and ``memory_limit`` are those of ``Evaluator``; an ``evaluator``
    brings its own. ``tolerance`` is that of ``verdict``. Further options, such as ``epochs``, ``lr`` or
    ``batch_size``, go to ``fit_curve``. With ``progress`` a bar shows the share done and the time left. With ``state``,
    a folder, a killed comparison that is started again continues the fits of its curves where they were saved. The
    With ``align`` every line is also measured to its second network with the hidden units in the order of the first,
    matched by ``weights`` or ``activations`` on the split ``train`` (see ``align``): ``aligned`` of the result, and the
    verdict, which has both barriers. The
    result has the surface on the plane through the judged two and the bend between them, the
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
    options = {"loss": loss, "error": error, "parameters": parameters, "memory_limit": memory_limit}
    parameters = parameters if evaluator is None else evaluator.parameters
    given = {key: loaded(unwrapped(model), weights, key) for key, weights in minima.items()}
    model = with_buffers(model, given, statistics=batch_norm == "frozen", parameters=parameters)
    vectors = {key: as_vector(model, weights, key, parameters) for key, weights in given.items()}
    evaluator = evaluator_for(model, data, evaluator, batch_norm, **options)
    ends = {"valley": (first, second)} | ({} if control is None else {"contrast": (first, control)})
    straights = {line_name(a, b): (a, b) for a, b in combinations(vectors, 2)}
    folder = None if state is None else Path(state)
    provenance: dict[str, Any] = {"fingerprint": None, "batch_norm": batch_norm, "seeds": {"curves": seed}}
    if evaluator.objective.name != "cross_entropy":
        provenance["loss"] = evaluator.objective.name
    provenance["parameters"] = moved_text(model, parameters)
    provenance["versions"] = {name: version(name) for name in ("torch", "valleyscope")}
    provenance["fitting"] = {key: value for key, value in fitting.items() if isinstance(value, str | int | float)}
    landscape = Landscape(name, provenance=provenance)
    chosen = [first, second] if control is None else [first, second, control]
    steps = [*(f"curve {label}" for label in ends), *(f"along {label}" for label in (*ends, *straights))]
    if align is not None:
        steps += [f"aligned {label}" for label in straights]
    steps += [*(f"sharpness of {key}" for key in vectors), *(f"plane {number}" for number in range(1, len(chosen)))]
    with comparison_progress(steps, shown=progress) as advance:
        curves = {
            label: fit_curve(
                model,
                vectors[start],
                vectors[end],
                data["train"],
                seed=seed,
                loss=evaluator.given_loss,
                parameters=parameters,
                memory_limit=memory_limit,
                state_path=None if folder is None else _state_file(folder, label),
                progress=advance.fitting(f"curve {label}"),
                **fitting,
            )
            for label, (start, end) in ends.items()
        }

        def measured(label: str) -> Profile:
            """A path with the losses of its samples; only its means are kept."""
            a, b = ends[label] if label in curves else straights[label]
            path = curves[label] if label in curves else straight(vectors[a], vectors[b])
            share = advance.share(f"along {label}")
            found = along(model, path, evaluator=evaluator, samples=True, progress=share)
            (landscape.curves if label in curves else landscape.lines)[label] = _record(label, found, a, b)
            return found

        judging = [key for key, pair in straights.items() if set(pair) in ({first, second}, {first, control})]
        kept = {label: measured(label) for label in (*curves, *judging)}
        aligned: dict[str, Profile] = {}
        if align is not None:
            others = AlignedLines(model, given, vectors, data["train"], align, parameters)
            for label, (start, end) in straights.items():
                path = others.line(label, start, end)
                share = advance.share(f"aligned {label}")
                aligned[label] = along(model, path, evaluator=evaluator, samples=True, progress=share)
                record = _record(label, aligned[label], start, end)
                landscape.aligned[label] = replace(record, note=others.notes[label])
        judged_line = next(label for label, pair in straights.items() if set(pair) == {first, second})
        sharpnesses = {
            key: sharpness(model, vector, seed=seed, evaluator=evaluator, progress=advance.share(f"sharpness of {key}"))
            for key, vector in vectors.items()
        }
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
            sharpness=sharpnesses,
            aligned=aligned.get(judged_line),
            alignment=align or "none",
            alignment_note=landscape.aligned[judged_line].note if aligned else "",
        )
        found = with_path_estimates(
            judged.to_json(), [*curves, *straights], lambda label: kept.get(label) or measured(label), seed=seed
        )
        landscape.verdict = with_aligned_estimates(found, list(aligned), aligned.__getitem__, seed=seed)
        landscape.planes = dict(_planes(model, vectors, chosen, curves, evaluator, resolution, advance))
    landscape.lines = {label: landscape.lines[label] for label in straights}
    landscape.minima = {key: _minimum(key, vector, landscape.lines.values()) for key, vector in vectors.items()}
    enter_derived_tables(landscape)
    return landscape


def _state_file(folder: Path, label: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{label}.fit"


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
    advance: ComparisonProgress,
) -> list[tuple[str, PlaneRecord]]:
    points = dict(vectors) | {f"{label}.bend": curve.points[1] for label, curve in curves.items()}
    wanted = {"valley": ((chosen[0], chosen[1], "valley.bend"), ["valley"])}
    if len(chosen) == 3:
        wanted["basins"] = ((chosen[0], chosen[1], chosen[2]), [])
    records = []
    for number, (name, (through, drawn)) in enumerate(wanted.items(), 1):
        a, b, c = (points[key] for key in through)
        plane = Plane.through(a, b, c, names=through, complete="random")
        shown = {label: curves[label] for label in drawn}
        record = plane_record(
            name, plane, points, shown, splits=list(evaluator.splits), resolution=resolution, defining=through
        )
        share = advance.share(f"plane {number}")
        values = surface(model, plane, x=record.x, y=record.y, evaluator=evaluator, progress=share)
        record.loss_unit = evaluator.unit
        record.splits = dict(values.splits)
        record.done[:] = True
        records.append((name, record))
    return records


def _record(name: str, profile: Profile, start: str, end: str) -> PathRecord:
    values = {split: PathValues(found.loss, found.error) for split, found in profile.splits.items()}
    unit = next(iter(profile.splits.values())).unit
    return PathRecord(name, profile.kind, start, end, profile.t, profile.arc, values, loss_unit=unit)


def _minimum(name: str, vector: Tensor, lines: Iterable[PathRecord]) -> MinimumRecord:
    """Loss and accuracy of a network, from the end of a line, and the share of its weights that are exactly zero."""
    line, end = next((line, 0 if line.start == name else -1) for line in lines if name in (line.start, line.end))
    final = final_metrics(line.splits, end)
    return MinimumRecord(name, "given", final={**final, "sparsity": float((vector == 0).double().mean())})
