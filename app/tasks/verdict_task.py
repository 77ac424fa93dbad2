"""The task that judges two minima by all that was measured."""

from __future__ import annotations

import json

from valleyscope.app.experiments.experiment_writer import ALIGNED
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import Judged
from valleyscope.app.tasks.context import TaskContext
from valleyscope.app.tasks.path_tasks import measured_profile
from valleyscope.landscape import verdict
from valleyscope.landscape.aligned_lines import with_aligned_estimates
from valleyscope.landscape.analysis.path_estimates import with_path_estimates
from valleyscope.landscape.analysis.profiles import Profile
from valleyscope.landscape.storage.records import line_name


def judge(context: TaskContext) -> Judged:
    """The verdict on the two minima in question, beside the control, drawn from all that was measured."""
    spec = context.spec
    assert spec.between is not None
    start, end = spec.between
    control = spec.control
    if control is not None and not context.path_file(_line_name(spec, start, control)).is_file():
        control = None
    pair = _line_name(spec, start, end)
    aligned = context.path_file(f"{ALIGNED}{pair}")
    known = context.alignment_file(pair)
    note = json.loads(known.read_text(encoding="utf-8"))["note"] if known.is_file() else ""
    measured = [name for name in spec.minima if context.sharpness_file(name).is_file()]
    judged = verdict(
        _line(context, start, end),
        _curve(context, start, end),
        None if control is None else _line(context, start, control),
        None if control is None else _curve(context, start, control),
        between=spec.between,
        curve_name=_curve_name(spec, start, end) or "curve",
        control_name=control or "control",
        tolerance=spec.tolerance,
        error_tolerance=spec.verdict.error_tolerance,
        level=spec.verdict.level,
        resamples=spec.verdict.resamples,
        seed=spec.seed,
        aligned=measured_profile(context, f"{ALIGNED}{pair}") if aligned.is_file() else None,
        alignment=spec.align,
        alignment_note=note,
        sharpness={name: json.loads(context.sharpness_file(name).read_text(encoding="utf-8")) for name in measured},
    )
    paths = [*spec.all_curves, *(line_name(*pair) for pair in spec.lines)]
    present = [name for name in paths if context.path_file(name).is_file()]
    content = with_path_estimates(
        judged.to_json(), present, lambda name: measured_profile(context, name), seed=spec.seed
    )
    lines = [name for name in present if context.path_file(f"{ALIGNED}{name}").is_file()]
    return Judged(
        with_aligned_estimates(content, lines, lambda name: measured_profile(context, ALIGNED + name), seed=spec.seed)
    )


def _line(context: TaskContext, a: str, b: str) -> Profile:
    """The straight line from one minimum to another, whichever way it was measured."""
    measured = measured_profile(context, _line_name(context.spec, a, b))
    return measured if (a, b) in context.spec.lines else measured.reversed()


def _line_name(spec: Spec, a: str, b: str) -> str:
    return line_name(*next(pair for pair in spec.lines if set(pair) == {a, b}))


def _curve(context: TaskContext, a: str, b: str) -> Profile | None:
    name = _curve_name(context.spec, a, b)
    return None if name is None or not context.path_file(name).is_file() else measured_profile(context, name)


def _curve_name(spec: Spec, a: str, b: str) -> str | None:
    return next((name for name, curve in spec.all_curves.items() if {curve.start, curve.end} == {a, b}), None)
