"""The tasks of curvature: the spectrum at a minimum or snapshot, direction factors, and the theorem put to the test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file, save
from torch import Tensor, nn

from valleyscope.app.experiments.curvature_files import curvature_files, snapshot_file, vector_file, wanted_directions
from valleyscope.app.experiments.curvature_spec import Curvature as CurvatureSpec
from valleyscope.app.experiments.curvature_spec import trials
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.result_codec import decode, encode
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import (
    MeasuredCurvature,
    MeasuredDirections,
    MeasuredSnapshot,
    Result,
    TriedTheorem,
)
from valleyscope.app.tasks.context import CancelCheck, Report, TaskContext
from valleyscope.app.tasks.measured_planes import FLAT
from valleyscope.app.tasks.torch_device import torch_device
from valleyscope.landscape.curvature.flat_subspace import FlatSubspace, direction_factors, flat_subspace
from valleyscope.landscape.curvature.products import BatchNorm
from valleyscope.landscape.curvature.spectrum import Curvature, curvature
from valleyscope.landscape.curvature.theorem_trial import Prediction, losses_along, predict
from valleyscope.landscape.curvature.weight_groups import WeightGroups, weight_groups
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.curvature_record import CurvatureRecord, DirectionsRecord, TrialRecord
from valleyscope.training.checkpoints import load_checkpoint, read_checkpoint
from valleyscope.training.parameter_groups import ParameterGroup, partition
from valleyscope.training.settings import Training

_DISTANCES = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)


def measure_curvature(context: TaskContext, task: Task, report: Report, cancelled: CancelCheck) -> Result:
    """Run one task of curvature."""
    match task.kind:
        case Kind.SNAPSHOT_CURVATURE:
            return _snapshot(context, task.subject, task.index, report, cancelled)
        case Kind.TRIAL:
            return _trial(context, task.subject)
        case _:
            return _kept(context, task, report, cancelled)


def _kept(context: TaskContext, task: Task, report: Report, cancelled: CancelCheck) -> Result:
    """The result that the task left when it ran before, or a new one."""
    file = context.work / curvature_files(task.kind, task.subject)[0]
    vectors = vector_file(context.spec, task)
    if not file.is_file() or not (vectors is None or (context.work / vectors).is_file()):
        measure = _spectrum if task.kind is Kind.CURVATURE else _directions
        result = measure(context, task.subject, report, cancelled)
        with write_atomically(file) as target:
            target.write(encode(result))
    return decode(file.read_bytes())


def _spectrum(context: TaskContext, name: str, report: Report, cancelled: CancelCheck) -> MeasuredCurvature:
    asked = asked_curvature(context.spec)
    _, vectors, state = (context.work / file for file in curvature_files(Kind.CURVATURE, name))
    found = _measured(
        context,
        context.minimum_file(name),
        report,
        cancelled,
        top=asked.top,
        lowest=asked.lowest,
        density=asked.density,
        state_path=state,
    )
    numbers = [number for number in wanted_directions(context.spec, name) if isinstance(number, int)]
    if numbers:
        _write(vectors, {str(number): found.eigenvectors[number - 1] for number in numbers})
    return MeasuredCurvature(_record(name, found))


def _record(name: str, found: Curvature) -> CurvatureRecord:
    empty = np.empty(0)
    return CurvatureRecord(
        name=name,
        kind=found.kind,
        samples=found.samples,
        dimension=found.dimension,
        products=found.products,
        converged=found.converged,
        eigenvalues=found.eigenvalues,
        residuals=found.residuals,
        lowest=found.lowest,
        lowest_residuals=found.lowest_residuals,
        trace=found.trace,
        trace_error=found.trace_error,
        trace_low=found.trace_interval[0],
        trace_high=found.trace_interval[1],
        density_values=empty if found.density is None else found.density.values,
        density_weights=empty if found.density is None else found.density.weights,
    )


def _snapshot(context: TaskContext, name: str, epoch: int, report: Report, cancelled: CancelCheck) -> MeasuredSnapshot:
    """The largest eigenvalue and the trace after an epoch of training."""
    file = context.work / name / snapshot_file(epoch)
    found = _measured(context, file, report, cancelled, top=1, lowest=0, density=False)
    values = {"epoch": float(epoch), "largest": float(found.eigenvalues[0]), "residual": float(found.residuals[0])}
    return MeasuredSnapshot({**values, "trace": found.trace, "trace_error": found.trace_error})


def _directions(context: TaskContext, name: str, report: Report, cancelled: CancelCheck) -> MeasuredDirections:
    """Direction factors of the partition of every trial, and the loss along the flat subspace."""
    asked = asked_curvature(context.spec)
    _, vectors, state = (context.work / file for file in curvature_files(Kind.DIRECTIONS, name))
    network, point = _network(context, context.minimum_file(name)), context.minimum(name).to(torch_device())
    subspace = flat_subspace(
        network,
        point,
        _data(context),
        asked.cut,
        relative=asked.relative,
        kind=asked.kind,
        state_path=state,
        **_shared(context, report, cancelled),
    )
    partitions = list(_partitions(context.spec, name))
    groups = {key: weight_groups(network, groups_of(network, run)) for key, run in partitions}
    record = _factors(subspace, point, groups[partitions[0][0]], asked)
    direction = groups[partitions[0][0]].normalised(point)
    if bool(direction.any()):
        distances = np.array(_DISTANCES)
        losses = losses_along(
            network,
            point,
            _data(context),
            direction,
            subspace,
            distances,
            batch_norm=_batch_norm(context),
            loss=context.spec.loss,
        )
        record.distances = distances
        record.losses = {"flat": losses.flat, "groups": losses.groups, "sharpest": losses.sharpest}
    content = {f"factors {key}": subspace.factors(point, found) for key, found in groups.items()}
    if "flattest" in wanted_directions(context.spec, name):
        content[FLAT] = -subspace.project(direction)
    _write(vectors, content)
    return MeasuredDirections(record)


def _factors(subspace: FlatSubspace, point: Tensor, groups: WeightGroups, asked: CurvatureSpec) -> DirectionsRecord:
    """The factors at every cut: the subspace was found for the smallest."""
    scale = subspace.largest if asked.relative else 1.0
    levels = np.array(asked.cuts) * scale
    removed = [int((np.abs(subspace.eigenvalues) > level).sum()) for level in levels]
    return DirectionsRecord(
        layers=groups.layers,
        norms=_numpy(groups.norms(point)),
        cut=subspace.cut,
        cuts=levels,
        removed=np.array(removed, dtype=np.float64),
        factors=np.stack([_numpy(subspace.factors(point, groups, count)) for count in removed]),
    )


def _key(run: Training) -> str:
    """What a partition depends on, as text."""
    return f"{run.structure} {run.bias} {run.skip_output} {run.tie_residual}"


def _partitions(spec: Spec, base: str) -> Iterator[tuple[str, Training]]:
    """The default partition, and those of the runs that are predicted from this minimum."""
    usual = Training()
    yield _key(usual), usual
    seen = {_key(usual)}
    for name, start in trials(spec).items():
        run = spec.minimum(name)
        if start == base and _key(run) not in seen:
            seen.add(_key(run))
            yield _key(run), run


def groups_of(model: nn.Module, run: Training) -> Any:
    """The groups of a network that a run prunes."""
    return partition(model, run.structure, run.bias, run.skip_output, run.tie_residual)


def _trial(context: TaskContext, name: str) -> TriedTheorem:
    """Predicted and measured group norms of a run of AltSDP."""
    base, run = trials(context.spec)[name], context.spec.minimum(name)
    network = context.network()
    groups = weight_groups(network, groups_of(network, run))
    start, measured = (_numpy(groups.norms(context.minimum(minimum))) for minimum in (base, name))
    factors = _numpy(load_file(context.work / curvature_files(Kind.DIRECTIONS, base)[1])[f"factors {_key(run)}"])
    metrics = read_checkpoint(context.minimum_file(name)).metrics
    ended = metrics.get("pruning", {}).get("threshold_ended")
    strength = float(ended["threshold"] if ended else metrics["epochs"][-1]["threshold"])
    theorem = predict(start, measured, factors, strength)
    null = predict(start, measured, np.ones_like(start), strength)
    note = (
        ""
        if ended is None
        else f"the threshold ended at epoch {ended['epoch']}; the theorem is about one that acts to the end"
    )
    return TriedTheorem(
        base,
        TrialRecord(
            strength=strength,
            layers=groups.layers,
            start=start,
            factors=factors,
            measured=measured,
            theorem=theorem.norms,
            null=null.norms,
            scores={"theorem": _scores(theorem), "null": _scores(null)},
            note=note,
        ),
    )


def _scores(found: Prediction) -> dict[str, float]:
    return {"zero": float(found.zero)} | {
        score: float(getattr(found, score)) for score in ("agreement", "auc", "correlation")
    }


def training_factors(
    context: TaskContext,
    name: str,
    report: Report,
    cancelled: CancelCheck,
    model: nn.Module,
    groups: Sequence[ParameterGroup],
    settings: Training,
) -> Tensor:
    """The direction factors of a network in training, for the method `sdp`."""
    samples = settings.option("curvature_samples") or context.spec.samples
    return direction_factors(
        model,
        model,
        (context.data.x_train[:samples], context.data.y_train[:samples]),
        groups,
        settings.option("curvature_cut"),
        state_path=context.work / name / "subspace-state.pt",
        **_shared(context, report, cancelled),
    )


def asked_curvature(spec: Spec) -> CurvatureSpec:
    return spec.curvature or CurvatureSpec()


def _network(context: TaskContext, file: Path) -> nn.Module:
    """The network on the device; frozen BatchNorm statistics are those of the first minimum, as on surfaces."""
    model = context.network()
    reference = context.minimum_file(next(iter(context.spec.minima))) if context.spec.batch_norm == "frozen" else file
    load_checkpoint(reference, model)
    return model.to(torch_device())


def _data(context: TaskContext) -> tuple[Tensor, Tensor]:
    """The training samples whose mean loss is differentiated."""
    samples = asked_curvature(context.spec).samples or context.spec.samples
    return context.data.x_train[:samples], context.data.y_train[:samples]


def _batch_norm(context: TaskContext) -> BatchNorm:
    return "frozen" if context.spec.batch_norm == "frozen" else "population"


def _measured(context: TaskContext, file: Path, report: Report, cancelled: CancelCheck, **numbers: Any) -> Curvature:
    """The spectrum at the weights in a file."""
    asked = asked_curvature(context.spec)
    common = {"kind": asked.kind, "probes": asked.probes, **_shared(context, report, cancelled)}
    return curvature(_network(context, file), context.weights(file), _data(context), **common, **numbers)


def _shared(context: TaskContext, report: Report, cancelled: CancelCheck) -> dict[str, Any]:
    """Options of every computation of curvature."""
    return {
        "batch_norm": _batch_norm(context),
        "loss": context.spec.loss,
        "seed": context.spec.seed,
        "memory_limit": asked_curvature(context.spec).memory_limit,
        "progress": lambda done, total: report(done / total, {"products": done, "expected": total}),
        "cancelled": cancelled,
    }


def _write(path: Path, vectors: dict[str, Tensor]) -> None:
    with write_atomically(path) as file:
        file.write(save({name: vector.cpu().contiguous() for name, vector in vectors.items()}))


def _numpy(values: Tensor) -> Any:
    return np.asarray(values.cpu().numpy(), dtype=np.float64)
