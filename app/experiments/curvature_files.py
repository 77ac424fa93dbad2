"""The curvature of an experiment: what its tasks read and leave in `work/`, and how results enter the landscape.

curvature-<minimum>.npz          the result, which a repeated task returns at once
curvature-<minimum>.safetensors  eigenvectors, if a plane is drawn along them
directions-<minimum>.safetensors direction factors for trials, and the flat direction if a plane is drawn along it
curvature-<minimum>-state.pt     what a killed task goes on from
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from valleyscope.app.experiments.curvature_spec import trials
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import (
    MeasuredCurvature,
    MeasuredDirections,
    MeasuredSnapshot,
    TriedTheorem,
)
from valleyscope.landscape.storage.curvature_record import EPOCH_COLUMNS, CurvatureRecord
from valleyscope.landscape.storage.landscape_file import Landscape

_WORK = "work/"


def curvature_files(kind: Kind, minimum: str) -> tuple[str, str, str]:
    """Result, vectors and state of a task, in `work/`."""
    stem = f"{kind}-{minimum}"
    return f"{stem}.npz", f"{stem}.safetensors", f"{stem}-state.pt"


def wanted_directions(spec: Spec, minimum: str) -> list[str | int]:
    """The directions at a minimum along which planes are drawn: numbers of eigenvectors, and flattest."""
    found = {
        1 if direction == "sharpest" else direction
        for plane in spec.all_planes.values()
        if plane.around == minimum
        for direction in plane.directions or ()
    }
    return sorted(found, key=str)


def vector_file(spec: Spec, task: Task) -> str | None:
    """The file of vectors that a task must leave: for trials, and for planes if there are some; else None."""
    has_vectors = task.kind is Kind.DIRECTIONS
    if task.kind is Kind.CURVATURE:
        has_vectors = any(direction != "flattest" for direction in wanted_directions(spec, task.subject))
    return curvature_files(task.kind, task.subject)[1] if has_vectors else None


def is_curvature_input(spec: Spec, task: Task, name: str) -> bool:
    """Whether a task of curvature reads a file, beside those that it wrote."""
    frozen = next(iter(spec.minima)) if spec.batch_norm == "frozen" else None
    if name in (f"{task.subject}.safetensors", f"{frozen}.safetensors"):
        return True
    if task.kind is Kind.SNAPSHOT_CURVATURE:
        return name == f"{_WORK}{task.subject}/{snapshot_file(task.index)}"
    if task.kind is Kind.TRIAL:
        base = trials(spec)[task.subject]
        return name in (f"{base}.safetensors", f"{_WORK}{curvature_files(Kind.DIRECTIONS, base)[1]}")
    return False


def snapshot_file(epoch: int) -> str:
    return f"snapshot-{epoch:06d}.safetensors"


def is_direction_file(spec: Spec, plane: str, name: str) -> bool:
    """Whether a plane of measured directions is built from a file."""
    centre = spec.all_planes[plane].around
    if centre is None:
        return False
    kinds = (Kind.CURVATURE, Kind.DIRECTIONS)
    return name in [f"{_WORK}{file}" for kind in kinds for file in curvature_files(kind, centre)[:2]]


def has_curvature(landscape: Landscape, task: Task) -> bool:
    """Whether the landscape has the result of a task."""
    records = landscape.curvature
    match task.kind:
        case Kind.TRIAL:
            return any(task.subject in record.trials for record in records.values())
        case Kind.SNAPSHOT_CURVATURE:
            return task.subject in records and task.index in records[task.subject].epochs.get("epoch", ())
        case Kind.DIRECTIONS:
            return task.subject in records and records[task.subject].directions is not None
        case _:
            return task.subject in records


def enter_curvature(
    landscape: Landscape,
    task: Task,
    result: MeasuredCurvature | MeasuredSnapshot | MeasuredDirections | TriedTheorem,
) -> None:
    """Enter a result into the landscape, whatever of the same minimum is there."""
    match result:
        case MeasuredCurvature(record):
            known = landscape.curvature.get(record.name)
            if known is not None:
                record = replace(record, epochs=known.epochs, directions=known.directions, trials=known.trials)
            landscape.curvature[record.name] = record
        case MeasuredSnapshot(values):
            _enter_snapshot(landscape.curvature[task.subject], values)
        case MeasuredDirections(directions):
            landscape.curvature[task.subject].directions = directions
        case TriedTheorem(base, trial):
            landscape.curvature[base].trials[task.subject] = trial


def _enter_snapshot(record: CurvatureRecord, values: dict[str, float]) -> None:
    """One more snapshot, in the order of epochs."""
    known = {column: record.epochs.get(column, np.empty(0)) for column in EPOCH_COLUMNS}
    others = known["epoch"] != values["epoch"]
    table = {column: np.append(known[column][others], values[column]) for column in EPOCH_COLUMNS}
    order = np.argsort(table["epoch"], kind="stable")
    record.epochs = {column: table[column][order] for column in EPOCH_COLUMNS}
