"""The tasks of an experiment as plain functions: resumable, and idempotent through what they leave in `work/`."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
from safetensors.torch import save
from torch import Generator, Tensor

from valleyscope.app.experiments.experiment_writer import ALIGNED
from valleyscope.app.experiments.forks import kept_epochs
from valleyscope.app.experiments.plan import Kind, Task, plane_tiles
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import (
    AlignedPath,
    FittedCurve,
    FramedPlane,
    Judged,
    MeasuredPath,
    MeasuredSharpness,
    Result,
    SurfaceTile,
    TrainedMinimum,
)
from valleyscope.app.tasks.align_task import aligned_line
from valleyscope.app.tasks.compact_task import make_compact
from valleyscope.app.tasks.context import TaskContext
from valleyscope.app.tasks.curvature_tasks import measure_curvature, training_factors
from valleyscope.app.tasks.ensemble_task import measure_ensemble
from valleyscope.app.tasks.estimate_tasks import compute_part, exact_splits, make_picture
from valleyscope.app.tasks.fit_watch import FitWatch, read_fit
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.tasks.torch_device import MemoryFull, device_name, is_memory_full, set_precision, torch_device
from valleyscope.landscape import along, fit_curve, verdict
from valleyscope.landscape.aligned_lines import with_aligned_estimates
from valleyscope.landscape.analysis.path_estimates import with_path_estimates
from valleyscope.landscape.analysis.profiles import Profile, line
from valleyscope.landscape.analysis.sharpness import sharpness
from valleyscope.landscape.analysis.surfaces import evaluate_tile
from valleyscope.landscape.evaluation.evaluator import Values
from valleyscope.landscape.geometry.curves import Curve
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.plane_record import plane_record
from valleyscope.landscape.storage.records import LayerRecord, MinimumRecord, PathRecord, PathValues, line_name
from valleyscope.training import train
from valleyscope.training.augmentation import crop_and_flip
from valleyscope.training.checkpoints import Checkpoint, check_state, load_checkpoint, read_checkpoint, save_checkpoint
from valleyscope.training.epochs import Epoch, measure
from valleyscope.training.loop import Progress
from valleyscope.training.parameter_groups import partition
from valleyscope.training.settings import fork_file

Report = Callable[[float, dict[str, Any]], None]
CancelCheck = Callable[[], bool]

_VALUES = ("loss", "error", "samples", "guessing", "wrong")
_context: TaskContext | None = None


def run_task(assignment: Assignment, report: Report, cancelled: CancelCheck) -> Result:
    """Run one task to its end, on the task context that the last task left if it was of the same experiment."""
    global _context
    if _context is None or (_context.spec, _context.directory) != (assignment.spec, assignment.directory):
        _context = TaskContext(assignment.spec, assignment.directory, assignment.data_root, assignment.checkpoints)
    set_precision(assignment.spec.precision)
    try:
        return _run(_context, assignment.task, report, cancelled)
    except Exception as error:
        if is_memory_full(error):
            size = _batch_size(assignment)
            raise MemoryFull(f"{device_name()} has too little memory for {size}: lower it") from error
        raise


def _batch_size(assignment: Assignment) -> str:
    """The field that says how many samples a task takes at a time, with its value."""
    spec, task = assignment.spec, assignment.task
    if task.kind is Kind.FIT and (size := spec.all_curves[task.subject].batch_size) is not None:
        return f"curves.{task.subject}.batch_size={size}"
    if task.kind is Kind.TRAIN and "batch_size" in spec.minima[task.subject].model_fields_set:
        return f"minima.{task.subject}.batch_size={spec.minima[task.subject].batch_size}"
    if spec.curvature is not None and task.stage == "curvature":
        return f"curvature.samples={spec.curvature.samples or 'all'}"
    return f"training.batch_size={spec.training.batch_size}"


def _run(context: TaskContext, task: Task, report: Report, cancelled: CancelCheck) -> Result:
    match task.kind:
        case Kind.TRAIN:
            return _train(context, task.subject, report, cancelled)
        case Kind.FIT:
            return _fit(context, task.subject, report, cancelled)
        case Kind.FRAME:
            return _frame(context, task.subject)
        case Kind.SURFACE:
            return _surface(context, task.subject, task.index, report, cancelled)
        case Kind.ESTIMATE:
            return compute_part(context, task.subject, task.index, cancelled)
        case Kind.PICTURE:
            return make_picture(context, task.subject, task.index)
        case Kind.CURVE:
            spec = context.spec.all_curves[task.subject]
            path = context.curve(task.subject)
            found = _path(context, task.subject, spec.kind, spec.start, spec.end, path, cancelled)
            return MeasuredPath(replace(found.record, fit=read_fit(context.curve_file(task.subject))))
        case Kind.LINE:
            start, end = next(pair for pair in context.spec.lines if line_name(*pair) == task.subject)
            path = line(context.minimum(start), context.minimum(end))
            return _path(context, task.subject, "line", start, end, path, cancelled)
        case Kind.ALIGN:
            return _aligned(context, task.subject, cancelled)
        case Kind.SHARPNESS:
            return _sharpness(context, task.subject, cancelled)
        case Kind.COMPACT:
            return make_compact(context, task.subject)
        case Kind.ENSEMBLE:
            return measure_ensemble(context, task.subject, cancelled)
        case Kind.CURVATURE | Kind.SNAPSHOT_CURVATURE | Kind.DIRECTIONS | Kind.TRIAL:
            return measure_curvature(context, task, report, cancelled)
        case Kind.VERDICT:
            return _judge(context)


def _train(context: TaskContext, name: str, report: Report, cancelled: CancelCheck) -> TrainedMinimum:
    settings = context.spec.minimum(name)
    path = context.minimum_file(name)
    kept = [context.work / name / fork_file(epoch) for epoch in kept_epochs(context.spec, name)]
    described = {
        "name": name,
        "dataset": context.spec.dataset,
        "fingerprint": context.data.fingerprint,
        "model": context.spec.model.model_dump(),
        "training": settings.model_dump(mode="json", by_alias=True, exclude={"checkpoint"}),
        "device": device_name(),
    }
    if not path.is_file() or not all(file.is_file() for file in kept):
        if settings.checkpoint is not None:
            _adopt(context, name, described)
        else:
            model = context.network(settings.initialisation)
            if settings.of is not None:
                load_checkpoint(context.minimum_file(settings.of), model)
            model = model.to(torch_device())

            def watch(progress: Progress) -> None:
                details: dict[str, Any] = {"epoch": progress.epoch, "epochs": progress.epochs, "loss": progress.loss}
                if progress.record is not None:
                    details["record"] = progress.record.to_json()
                if progress.forecast is not None:
                    details["forecast"] = asdict(progress.forecast) | {"text": str(progress.forecast)}
                report(progress.share, details)

            trained = train(
                model,
                context.data,
                settings,
                directory=context.work / name,
                progress=watch,
                cancelled=cancelled,
                keep=kept_epochs(context.spec, name),
                trunk=None if settings.fork is None else context.work / settings.fork.start,
                direction_factors=partial(training_factors, context, name, report, cancelled),
            )
            metrics: dict[str, Any] = {"epochs": [epoch.to_json() for epoch in trained.epochs]}
            if trained.pruning:
                metrics["pruning"] = trained.pruning
            save_checkpoint(path, model, spec=described, metrics=metrics)
    (context.work / name / "training-state.pt").unlink(missing_ok=True)
    return TrainedMinimum(_minimum_record(name, read_checkpoint(path)), context.data.fingerprint)


def _adopt(context: TaskContext, name: str, described: dict[str, Any]) -> None:
    """Take a stranger's checkpoint as a minimum: checked, measured once, and copied."""
    source = context.checkpoints[name]
    model = context.network().to(torch_device())
    state = read_checkpoint(source).state
    check_state(state, model, source=str(source))
    model.load_state_dict(state)
    record = measure(
        model,
        partition(model),
        context.data.splits,
        epoch=0,
        learning_rate=0.0,
        threshold=0.0,
        seconds=0.0,
        loss=context.spec.loss,
    )
    described = described | {"training": {"checkpoint": str(source.name)}}
    metrics = {"epochs": [record.to_json()]}
    save_checkpoint(context.minimum_file(name), model, spec=described, metrics=metrics)


def _minimum_record(name: str, checkpoint: Checkpoint) -> MinimumRecord:
    epochs = [Epoch.from_json(values) for values in checkpoint.metrics["epochs"]]
    # Losses of numbers have no accuracy.
    undefined = [field for field in ("train_accuracy", "test_accuracy") if math.isnan(getattr(epochs[-1], field))]
    columns = [field for field in asdict(epochs[-1]) if field not in ("layers", *undefined)]
    settings = checkpoint.spec["training"]
    return MinimumRecord(
        name=name,
        optimizer=settings.get("method") or settings.get("optimizer", "checkpoint"),
        settings=settings,
        epochs={column: np.array([getattr(epoch, column) for epoch in epochs], dtype=np.float64) for column in columns},
        layers=[LayerRecord(**asdict(layer)) for layer in epochs[-1].layers],
        final={column: float(getattr(epochs[-1], column)) for column in columns},
        checkpoint=f"{name}.safetensors",
        pruning=checkpoint.metrics.get("pruning", {}),
    )


def _fit(context: TaskContext, name: str, report: Report, cancelled: CancelCheck) -> FittedCurve:
    spec = context.spec.all_curves[name]
    path = context.curve_file(name)
    if not path.is_file():
        settings = context.spec.training
        watch = FitWatch(report)
        curve = fit_curve(
            context.network().to(torch_device()),
            context.minimum(spec.start),
            context.minimum(spec.end),
            (context.data.x_train, context.data.y_train),
            kind=spec.kind,
            bends=spec.bends,
            epochs=spec.epochs,
            batch_size=min(spec.batch_size or settings.batch_size, len(context.data.x_train)),
            lr=spec.lr,
            momentum=spec.momentum,
            weight_decay=spec.weight_decay,
            seed=context.spec.seed if spec.seed is None else spec.seed,
            loss=context.spec.loss,
            state_path=context.work / f"curve-{name}-state.pt",
            augment=_augmentation(context),
            progress=watch.report,
            cancelled=cancelled,
        )
        with write_atomically(path) as file:
            file.write(save({"points": curve.points.cpu().contiguous(), **watch.columns()}))
        (context.work / f"curve-{name}-state.pt").unlink(missing_ok=True)
    return FittedCurve(length=context.curve(name).length())


def _augmentation(context: TaskContext) -> Callable[[Tensor, Generator], Tensor] | None:
    """Crops and flips while a curve is fitted, where the data set is customarily trained with them."""
    wanted = context.spec.training.augment
    if not (context.data.augmented if wanted is None else wanted):
        return None
    return lambda x, generator: crop_and_flip(x, generator, context.data.border)


def _frame(context: TaskContext, name: str) -> FramedPlane:
    """Where everything with a name lies on a plane, and the grid that frames it."""
    spec = context.spec.all_planes[name]
    trajectories, offsets = context.trajectories(name)
    record = plane_record(
        name,
        context.plane(name),
        context.points_on(name),
        {key: context.curve(key) for key in context.spec.curves_on(name) if context.curve_file(key).is_file()},
        splits=context.spec.splits,
        resolution=spec.resolution,
        margin=spec.margin,
        defining=spec.through or tuple(filter(None, (spec.around, spec.trajectory))),
        path_points=context.spec.points,
        trajectories=trajectories,
        offsets=offsets,
        axes=context.axes.get(name, ()),
    )
    record.loss_unit = context.spec.loss_unit
    return FramedPlane(record)


def _surface(context: TaskContext, name: str, index: int, report: Report, cancelled: CancelCheck) -> SurfaceTile:
    spec = context.spec.all_planes[name]
    plane = context.plane(name)
    x, y = plane.axes(spec.resolution, margin=spec.margin)
    tile = plane_tiles(context.spec, name)[index]
    splits = list(context.spec.splits) if spec.accuracy is None else exact_splits(context, name)
    if not splits:
        return SurfaceTile(loss={}, error={})
    values = context.evaluate(
        lambda evaluator: evaluate_tile(evaluator, plane.vectors, x, y, tile, splits=splits, cancelled=cancelled)
    )
    report(1.0, {})
    return SurfaceTile(
        loss={split: value.loss for split, value in values.items()},
        error={split: value.error for split, value in values.items()},
    )


def _path(
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
    profile = _profile(context, name)
    values = {split: PathValues(found.loss, found.error) for split, found in profile.splits.items()}
    unit = context.spec.loss_unit
    return MeasuredPath(PathRecord(name, kind, start, end, profile.t, profile.arc, values, loss_unit=unit))


def _aligned(context: TaskContext, name: str, cancelled: CancelCheck) -> AlignedPath:
    """The line with its end aligned to its start; its measurement is a path like others, under a name of its own."""
    start, end = next(pair for pair in context.spec.lines if line_name(*pair) == name)
    measured, known = context.path_file(f"{ALIGNED}{name}"), context.alignment_file(name)
    if not (known.is_file() and (measured.is_file() or not json.loads(known.read_text(encoding="utf-8"))["aligned"])):
        path, note = aligned_line(context, name, start, end)
        if path is None:
            return AlignedPath(None, note)
        _path(context, f"{ALIGNED}{name}", "line", start, end, path, cancelled)
    report = json.loads(known.read_text(encoding="utf-8"))
    if not report["aligned"]:
        return AlignedPath(None, report["note"])
    profile = _profile(context, f"{ALIGNED}{name}")
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


def _profile(context: TaskContext, name: str) -> Profile:
    """A measured path with the losses of single samples, as `_path` left it."""
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


def _sharpness(context: TaskContext, name: str, cancelled: CancelCheck) -> MeasuredSharpness:
    path = context.sharpness_file(name)
    if not path.is_file():
        network, weights, radius = context.network(), context.minimum(name), context.spec.verdict.radius
        measured = context.evaluate(
            lambda evaluator: sharpness(
                network, weights, radius=radius, seed=context.spec.seed, evaluator=evaluator, cancelled=cancelled
            )
        )
        with write_atomically(path) as file:
            file.write(json.dumps(measured.to_json()).encode())
    return MeasuredSharpness(json.loads(path.read_text(encoding="utf-8")))


def _judge(context: TaskContext) -> Judged:
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
        aligned=_profile(context, f"{ALIGNED}{pair}") if aligned.is_file() else None,
        alignment=spec.align,
        alignment_note=note,
        sharpness={name: json.loads(context.sharpness_file(name).read_text(encoding="utf-8")) for name in measured},
    )
    paths = [*spec.all_curves, *(line_name(*pair) for pair in spec.lines)]
    present = [name for name in paths if context.path_file(name).is_file()]
    content = with_path_estimates(judged.to_json(), present, lambda name: _profile(context, name), seed=spec.seed)
    lines = [name for name in present if context.path_file(f"{ALIGNED}{name}").is_file()]
    return Judged(
        with_aligned_estimates(content, lines, lambda name: _profile(context, ALIGNED + name), seed=spec.seed)
    )


def _line(context: TaskContext, a: str, b: str) -> Profile:
    """The straight line from one minimum to another, whichever way it was measured."""
    measured = _profile(context, _line_name(context.spec, a, b))
    return measured if (a, b) in context.spec.lines else measured.reversed()


def _line_name(spec: Spec, a: str, b: str) -> str:
    return line_name(*next(pair for pair in spec.lines if set(pair) == {a, b}))


def _curve(context: TaskContext, a: str, b: str) -> Profile | None:
    name = _curve_name(context.spec, a, b)
    return None if name is None or not context.path_file(name).is_file() else _profile(context, name)


def _curve_name(spec: Spec, a: str, b: str) -> str | None:
    return next((name for name, curve in spec.all_curves.items() if {curve.start, curve.end} == {a, b}), None)
