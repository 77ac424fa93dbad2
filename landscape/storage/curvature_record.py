"""The curvature of minima in ``landscape.h5``: eigenvalues, trace, density, direction factors, and the theorem's trial.

Eigenvectors are not in it: two of them are as large as a checkpoint, and a plane keeps what one wants to see of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import h5py
import numpy as np

from valleyscope.landscape.storage import _hdf5
from valleyscope.landscape.storage.records import Floats, checked_name

CURVATURE: Final = "curvature"
NUMBERS: Final = ("trace", "trace_error", "trace_low", "trace_high")
EPOCH_COLUMNS: Final = ("epoch", "largest", "residual", "trace", "trace_error")
LOSSES: Final = ("flat", "groups", "sharpest")
SCORES: Final = ("zero", "agreement", "auc", "correlation")


@dataclass(eq=False)
class DirectionsRecord:
    """Direction factors s_i of one partition at one minimum.

    ``layers`` has the layer of every group, ``norms`` the group norms at the minimum. ``factors`` [cuts, groups] are
    those at ``cuts``, of which ``cut`` is one; a cut removes ``removed`` directions. ``losses`` has the train loss at
    ``distances`` from the minimum: along -Pi(E_G(w)) (flat), -E_G(w) (groups) and the first eigenvector (sharpest).
    """

    layers: tuple[str, ...]
    norms: Floats
    cut: float
    cuts: Floats
    removed: Floats
    factors: Floats
    distances: Floats = field(default_factory=lambda: np.empty(0))
    losses: dict[str, Floats] = field(default_factory=dict)

    @property
    def at_cut(self) -> Floats:
        """The factors at the cut of the experiment."""
        factors: Floats = self.factors[int(np.argmin(np.abs(self.cuts - self.cut)))]
        return factors


@dataclass(eq=False)
class TrialRecord:
    """Predicted and measured group norms of one run that AltSDP pruned.

    ``theorem`` and ``null`` (all s_i = 1) are predictions with the threshold ``strength``; ``scores`` has for both the
    number of predicted zero groups, agreement, AUC and correlation.
    """

    strength: float
    layers: tuple[str, ...]
    start: Floats
    factors: Floats
    measured: Floats
    theorem: Floats
    null: Floats
    scores: dict[str, dict[str, float]]
    note: str = ""

    @property
    def zero(self) -> int:
        """The groups that vanished."""
        return int((self.measured == 0).sum())


@dataclass(eq=False)
class CurvatureRecord:
    """The spectrum of the Hessian (or generalised Gauss-Newton matrix) of the train loss at a minimum.

    ``eigenvalues`` fall, ``lowest`` rise; residuals are |H v - value v|. ``trace`` has a standard error and a 95 %
    interval, NaN where it was not estimated. ``density`` has ``values`` and ``weights`` that sum to one. ``epochs``
    has columns of one length, one value a snapshot. ``trials`` are by the name of the pruned minimum.
    """

    name: str
    kind: str
    samples: int
    dimension: int
    products: int
    converged: bool
    eigenvalues: Floats
    residuals: Floats
    lowest: Floats
    lowest_residuals: Floats
    trace: float = float("nan")
    trace_error: float = float("nan")
    trace_low: float = float("nan")
    trace_high: float = float("nan")
    density_values: Floats = field(default_factory=lambda: np.empty(0))
    density_weights: Floats = field(default_factory=lambda: np.empty(0))
    epochs: dict[str, Floats] = field(default_factory=dict)
    directions: DirectionsRecord | None = None
    trials: dict[str, TrialRecord] = field(default_factory=dict)


_SPECTRUM: Final = ("eigenvalues", "residuals", "lowest", "lowest_residuals", "density_values", "density_weights")
_TRIAL: Final = ("start", "factors", "measured", "theorem", "null")


def write_curvature(file: h5py.File, records: Mapping[str, CurvatureRecord]) -> None:
    parent = file.create_group(CURVATURE, track_order=True)
    for record in records.values():
        group = parent.create_group(record.name, track_order=True)
        for attribute in ("kind", "samples", "dimension", "products", *NUMBERS):
            group.attrs[attribute] = getattr(record, attribute)
        group.attrs["converged"] = int(record.converged)
        for name in _SPECTRUM:
            group[name] = getattr(record, name)
        if record.epochs:
            columns = group.create_group("epochs", track_order=True)
            for column, values in record.epochs.items():
                columns[column] = values
        if record.directions is not None:
            _write_directions(group.create_group("directions", track_order=True), record.directions)
        if record.trials:
            trials = group.create_group("trials", track_order=True)
            for name, trial in record.trials.items():
                _write_trial(trials.create_group(name, track_order=True), trial)


def read_curvature(file: h5py.File) -> dict[str, CurvatureRecord]:
    """The curvature of a file; empty in files of earlier versions."""
    if not _hdf5.has(file, CURVATURE):
        return {}
    parent = _hdf5.subgroup(file, CURVATURE)
    return {name: _read(_hdf5.subgroup(parent, name), name) for name in _hdf5.names(parent)}


def _read(group: h5py.Group, name: str) -> CurvatureRecord:
    counts: dict[str, Any] = {
        field: int(_hdf5.number_attribute(group, field)) for field in ("samples", "dimension", "products")
    }
    numbers: dict[str, Any] = {field: _hdf5.number_attribute(group, field) for field in NUMBERS}
    arrays: dict[str, Any] = {array: _hdf5.floats(group, array) for array in _SPECTRUM}
    columns = _hdf5.subgroup(group, "epochs") if _hdf5.has(group, "epochs") else None
    trials = _hdf5.subgroup(group, "trials") if _hdf5.has(group, "trials") else None
    return CurvatureRecord(
        name=name,
        kind=_hdf5.text_attribute(group, "kind"),
        converged=bool(_hdf5.number_attribute(group, "converged")),
        **counts,
        **numbers,
        **arrays,
        epochs={} if columns is None else {column: _hdf5.floats(columns, column) for column in _hdf5.names(columns)},
        directions=_read_directions(group),
        trials={}
        if trials is None
        else {trial: _read_trial(_hdf5.subgroup(trials, trial)) for trial in _hdf5.names(trials)},
    )


def _write_directions(group: h5py.Group, record: DirectionsRecord) -> None:
    group.attrs["cut"] = record.cut
    _write_layers(group, record.layers)
    for name in ("norms", "cuts", "removed", "factors"):
        group[name] = getattr(record, name)
    if len(record.distances):
        group["distances"] = record.distances
        for name in LOSSES:
            group[f"loss/{name}"] = record.losses[name]


def _read_directions(parent: h5py.Group) -> DirectionsRecord | None:
    if not _hdf5.has(parent, "directions"):
        return None
    group = _hdf5.subgroup(parent, "directions")
    arrays: dict[str, Any] = {name: _hdf5.floats(group, name) for name in ("norms", "cuts", "removed", "factors")}
    found = DirectionsRecord(_read_layers(group), cut=_hdf5.number_attribute(group, "cut"), **arrays)
    if _hdf5.has(group, "distances"):
        losses = _hdf5.subgroup(group, "loss")
        found.distances = _hdf5.floats(group, "distances")
        found.losses = {name: _hdf5.floats(losses, name) for name in LOSSES}
    return found


def _write_trial(group: h5py.Group, record: TrialRecord) -> None:
    group.attrs.update({"strength": record.strength, "note": record.note})
    _write_layers(group, record.layers)
    for name in _TRIAL:
        group[name] = getattr(record, name)
    for name, scores in record.scores.items():
        target = group.create_group(f"scores/{name}", track_order=True)
        for score in SCORES:
            target.attrs[score] = float(scores[score])


def _read_trial(group: h5py.Group) -> TrialRecord:
    parent = _hdf5.subgroup(group, "scores")
    scores = {}
    for name in ("theorem", "null"):
        found = _hdf5.subgroup(parent, name)
        scores[name] = {score: _hdf5.number_attribute(found, score) for score in SCORES}
    return TrialRecord(
        strength=_hdf5.number_attribute(group, "strength"),
        layers=_read_layers(group),
        **{name: _hdf5.floats(group, name) for name in _TRIAL},
        scores=scores,
        note=_hdf5.text_attribute(group, "note"),
    )


def _write_layers(group: h5py.Group, layers: tuple[str, ...]) -> None:
    group.create_dataset("layers", data=list(layers), shape=(len(layers),), dtype=h5py.string_dtype())


def _read_layers(group: h5py.Group) -> tuple[str, ...]:
    return tuple(_hdf5.texts(group, "layers"))


def check_curvature(records: Mapping[str, CurvatureRecord]) -> None:
    """Raise a ValueError that names the first invalid member."""
    for key, record in records.items():
        checked_name(key, f"{CURVATURE}: a member")
        member = f"{CURVATURE}/{key}"
        if record.name != key:
            raise ValueError(f"{member}: has the name {record.name!r}; key and name must be equal")
        for name in _SPECTRUM:
            _check_array(f"{member}/{name}", getattr(record, name))
        for first, second in (("eigenvalues", "residuals"), ("lowest", "lowest_residuals")):
            _check_array(f"{member}/{second}", getattr(record, second), len(getattr(record, first)))
        _check_array(f"{member}/density_weights", record.density_weights, len(record.density_values))
        for column, values in record.epochs.items():
            checked_name(column, f"{member}/epochs: a column")
            _check_array(f"{member}/epochs/{column}", values, len(next(iter(record.epochs.values()))))
        if record.directions is not None:
            _check_directions(f"{member}/directions", record.directions)
        for name, trial in record.trials.items():
            checked_name(name, f"{member}/trials: a member")
            for array in _TRIAL:
                _check_array(f"{member}/trials/{name}/{array}", getattr(trial, array), len(trial.layers))


def _check_directions(member: str, record: DirectionsRecord) -> None:
    _check_array(f"{member}/norms", record.norms, len(record.layers))
    _check_array(f"{member}/removed", record.removed, len(record.cuts))
    shape = (len(record.cuts), len(record.layers))
    if not isinstance(record.factors, np.ndarray) or record.factors.shape != shape or not len(record.cuts):
        raise ValueError(f"{member}/factors: has shape {np.shape(record.factors)}; give one row a cut, {shape}")
    for name, values in record.losses.items():
        _check_array(f"{member}/loss/{name}", values, len(record.distances))


def _check_array(member: str, values: Any, length: int | None = None) -> None:
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.ndim != 1:
        raise ValueError(f"{member}: is not an array of float64 with one dimension")
    if length is not None and len(values) != length:
        raise ValueError(f"{member}: has {len(values)} values; expected {length}")


def curvature_content(record: CurvatureRecord) -> list[Any]:
    """All of a record as nested lists and arrays, for its digest."""
    return [
        *(record.name, record.kind, record.samples, record.dimension, record.products, int(record.converged)),
        *(getattr(record, name) for name in (*NUMBERS, *_SPECTRUM)),
        record.epochs,
        None if record.directions is None else _directions_content(record.directions),
        {name: _trial_content(trial) for name, trial in record.trials.items()},
    ]


def _directions_content(record: DirectionsRecord) -> list[Any]:
    arrays = [record.norms, record.cuts, record.removed, record.factors, record.distances]
    return [record.layers, record.cut, *arrays, *record.losses.values()]


def _trial_content(record: TrialRecord) -> list[Any]:
    scores = [scores[score] for scores in record.scores.values() for score in SCORES]
    return [record.strength, record.layers, record.note, *(getattr(record, array) for array in _TRIAL), scores]
