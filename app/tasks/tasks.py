"""The tasks of an experiment as plain functions: resumable, and idempotent through what they leave in `work/`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from safetensors.torch import save
from torch import Generator, Tensor

from valleyscope.app.experiments.plan import Kind, Task, plane_tiles
from valleyscope.app.experiments.task_results import (
    FittedCurve,
    FramedPlane,
    MeasuredPath,
    MeasuredSharpness,
    Result,
    SurfaceTile,
)
from valleyscope.app.tasks.compact_task import make_compact
from valleyscope.app.tasks.context import CancelCheck, Report, TaskContext
from valleyscope.app.tasks.curvature_tasks import measure_curvature
from valleyscope.app.tasks.ensemble_task import measure_ensemble
from valleyscope.app.tasks.estimate_tasks import compute_part, exact_splits, make_picture
from valleyscope.app.tasks.fit_watch import FitWatch, read_fit
from valleyscope.app.tasks.path_tasks import measure_aligned, measure_path
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.tasks.torch_device import MemoryFull, device_name, is_memory_full, set_precision, torch_device
from valleyscope.app.tasks.train_task import train_minimum
from valleyscope.app.tasks.verdict_task import judge
from valleyscope.landscape import fit_curve
from valleyscope.landscape.analysis.profiles import line
from valleyscope.landscape.analysis.sharpness import sharpness
from valleyscope.landscape.analysis.surfaces import evaluate_tile
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.plane_record import plane_record
from valleyscope.landscape.storage.records import line_name
from valleyscope.training.augmentation import crop_and_flip

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
            return train_minimum(context, task.subject, report, cancelled)
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
            found = measure_path(context, task.subject, spec.kind, spec.start, spec.end, path, cancelled)
            return MeasuredPath(replace(found.record, fit=read_fit(context.curve_file(task.subject))))
        case Kind.LINE:
            start, end = next(pair for pair in context.spec.lines if line_name(*pair) == task.subject)
            path = line(context.minimum(start), context.minimum(end))
            return measure_path(context, task.subject, "line", start, end, path, cancelled)
        case Kind.ALIGN:
            return measure_aligned(context, task.subject, cancelled)
        case Kind.SHARPNESS:
            return _sharpness(context, task.subject, cancelled)
        case Kind.COMPACT:
            return make_compact(context, task.subject)
        case Kind.ENSEMBLE:
            return measure_ensemble(context, task.subject, cancelled)
        case Kind.CURVATURE | Kind.SNAPSHOT_CURVATURE | Kind.DIRECTIONS | Kind.TRIAL:
            return measure_curvature(context, task, report, cancelled)
        case Kind.VERDICT:
            return judge(context)


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
