"""The tasks that measure loss and error along a curve or line, and what they left for the tasks after them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from valleyscope.app.experiments.experiment_writer import ALIGNED
from valleyscope.app.experiments.task_results import AlignedPath, MeasuredPath
from valleyscope.app.tasks.align_task import aligned_line
from valleyscope.app.tasks.context import CancelCheck, TaskContext
from valleyscope.landscape import along
from valleyscope.landscape.analysis.profiles import Profile
from valleyscope.landscape.evaluation.evaluator import Values
from valleyscope.landscape.geometry.curves import Curve
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.records import PathRecord, PathValues, line_name

_VALUES = ("loss", "error", "samples", "guessing", "wrong")


def measure_path(
    context: TaskContext, name: str, kind: str, start: str, end: str, path: Curve, cancelled: CancelCheck
) -> MeasuredPath:
    file = context.path_file(name)
    if not file.is_file():
        network, points = context.network(), context.spec.points
        measured = context.evaluate(
            lambda evaluator: along(
                network, path, points=points, samples=True, evaluator=evaluator, cancelled=cancelled
            )
        )
        buffer = io.BytesIO()
        np.savez(buffer, **_arrays(measured))
        with write_atomically(file) as target:
            target.write(buffer.getvalue())
    profile = measured_profile(context, name)
    values = {split: PathValues(found.loss, found.error) for split, found in profile.splits.items()}
    unit = context.spec.loss_unit
    return MeasuredPath(PathRecord(name, kind, start, end, profile.t, profile.arc, values, loss_unit=unit))


def measure_aligned(context: TaskContext, name: str, cancelled: CancelCheck) -> AlignedPath:
    """The line with its end aligned to its start; its measurement is a path like others, under a name of its own."""
    start, end = next(pair for pair in context.spec.lines if line_name(*pair) == name)
    measured, known = context.path_file(f"{ALIGNED}{name}"), context.alignment_file(name)
    if not (known.is_file() and (measured.is_file() or not json.loads(known.read_text(encoding="utf-8"))["aligned"])):
        path, note = aligned_line(context, name, start, end)
        if path is None:
            return AlignedPath(None, note)
        measure_path(context, f"{ALIGNED}{name}", "line", start, end, path, cancelled)
    report = json.loads(known.read_text(encoding="utf-8"))
    if not report["aligned"]:
        return AlignedPath(None, report["note"])
    profile = measured_profile(context, f"{ALIGNED}{name}")
    values = {split: PathValues(found.loss, found.error) for split, found in profile.splits.items()}
    return AlignedPath(
        PathRecord(name, "line", start, end, profile.t, profile.arc, values, report["note"]), report["note"]
    )


def _arrays(profile: Profile) -> dict[str, Any]:
    arrays = {"kind": np.array(profile.kind), "t": profile.t, "arc": profile.arc}
    for split, values in profile.splits.items():
        found = {field: getattr(values, field) for field in _VALUES}
        arrays |= {f"{split}.{field}": value for field, value in found.items() if value is not None}
    return arrays


def measured_profile(context: TaskContext, name: str) -> Profile:
    """A measured path with the losses of single samples, as `measure_path` left it."""
    with np.load(context.path_file(name), allow_pickle=False) as arrays:
        splits: dict[str, Values] = {
            split: _values(arrays, split, context.spec.loss_unit) for split in context.spec.splits
        }
        return Profile(str(arrays["kind"]), arrays["t"], arrays["arc"], splits)


def _values(arrays: Mapping[str, Any], split: str, unit: str) -> Values:
    loss, error, samples = (arrays[f"{split}.{field}"] for field in ("loss", "error", "samples"))
    # Paths that an older worker measured do not say what guessing would reach, nor which samples are wrong.
    guessing, wrong = (arrays.get(f"{split}.{field}") for field in ("guessing", "wrong"))
    guess = None if guessing is None or np.isnan(guessing) else float(guessing)
    return Values(loss, error, samples, guess, None if wrong is None or not wrong.shape else wrong, unit)
