"""Experiment rows as JSON responses."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from valleyscope.app.api.schemas import Experiment, ExperimentSummary
from valleyscope.app.experiments.gallery import is_gallery_id
from valleyscope.app.experiments.landscape_import import IMPORTED
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.experiment_table import ExperimentRow
from valleyscope.landscape.claim import planes_in_order

_COPIED = (
    *("id", "name", "state", "stage", "progress", "seconds_left", "created", "started", "finished"),
    *("active_seconds", "run", "priority", "error", "verdict_kind", "sentence"),
    *("rise", "barrier", "control_barrier", "zero_groups", "accuracy", "tags", "note"),
)
_CACHE_SIZE = 20_000
_facts_by_id: dict[str, dict[str, Any]] = {}


def summary(row: ExperimentRow) -> ExperimentSummary:
    return ExperimentSummary(**_values(row))


def detail(row: ExperimentRow) -> Experiment:
    path = f"/api/experiments/{row.id}"
    results = ("events", "contents", "minima", "surface", "profile", "matrix", "verdict", "figure", "files")
    links = {"self": path, **{name: f"{path}/{name}" for name in results}}
    return Experiment(**_values(row), spec=row.spec, resolved=_resolved(row), links=links)


def planes_of(row: ExperimentRow) -> list[str]:
    """The names of an experiment's planes, those that show the claim of its verdict first."""
    planes: list[str] = _facts(row)["planes"]
    return planes


def _resolved(row: ExperimentRow) -> dict[str, Any]:
    try:
        return Spec.model_validate(row.spec).resolved()
    except ValidationError:  # accepted by an older version
        return row.spec


def _values(row: ExperimentRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _COPIED} | _facts(row)


def _facts(row: ExperimentRow) -> dict[str, Any]:
    """A summary of the spec, cached: it changes with a new run only, and parsing thousands takes seconds."""
    key = f"{row.id}:{row.run}"
    if key not in _facts_by_id:
        if len(_facts_by_id) >= _CACHE_SIZE:
            _facts_by_id.clear()
        origin = {"origin": "gallery"} if is_gallery_id(row.id) else {}
        _facts_by_id[key] = _read(row.spec) | origin
    return _facts_by_id[key]


def _read(values: dict[str, Any]) -> dict[str, Any]:
    if (imported := values.get(IMPORTED)) is not None:
        return {"origin": "imported", **{name: imported[name] for name in ("dataset", "model", "minima", "planes")}}
    try:
        spec = Spec.model_validate(values)
    except ValidationError:  # accepted by an older version
        model = values.get("model", {})
        return {
            "origin": "computed",
            "dataset": str(values.get("dataset")),
            "model": str(model.get("name")),
            "minima": list(values.get("minima", ())),
            "planes": list(values.get("planes") or ()),
        }
    return {
        "origin": "computed",
        "dataset": spec.dataset,
        "model": str(spec.model),
        "minima": list(spec.minima),
        "planes": _planes(spec),
    }


def _planes(spec: Spec) -> list[str]:
    through = {name: plane.through or () for name, plane in spec.all_planes.items()}
    return planes_in_order(through, spec.between, spec.control)
