"""Experiment rows as JSON responses."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from valleyscope.app.api.schemas import Experiment, ExperimentSummary
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.experiment_table import ExperimentRow

_COPIED = (
    *("id", "name", "state", "stage", "progress", "seconds_left", "created", "started", "finished"),
    *("run", "priority", "error", "verdict_kind", "sentence"),
)
_CACHE_SIZE = 20_000
_facts_by_id: dict[str, dict[str, Any]] = {}


def summary(row: ExperimentRow) -> ExperimentSummary:
    return ExperimentSummary(**_values(row))


def detail(row: ExperimentRow) -> Experiment:
    path = f"/api/experiments/{row.id}"
    results = ("events", "contents", "minima", "surface", "profile", "verdict", "figure", "files")
    links = {"self": path, **{name: f"{path}/{name}" for name in results}}
    return Experiment(**_values(row), spec=row.spec, links=links)


def planes_of(row: ExperimentRow) -> list[str]:
    """The names of an experiment's planes, in the order of its spec."""
    planes: list[str] = _facts(row)["planes"]
    return planes


def _values(row: ExperimentRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _COPIED} | _facts(row)


def _facts(row: ExperimentRow) -> dict[str, Any]:
    """A summary of the spec, cached: specs never change, and parsing thousands of them takes seconds."""
    if row.id not in _facts_by_id:
        if len(_facts_by_id) >= _CACHE_SIZE:
            _facts_by_id.clear()
        _facts_by_id[row.id] = _read(row.spec)
    return _facts_by_id[row.id]


def _read(values: dict[str, Any]) -> dict[str, Any]:
    try:
        spec = Spec.model_validate(values)
    except ValidationError:  # accepted by an older version
        model = values.get("model", {})
        return {
            "dataset": str(values.get("dataset")),
            "model": str(model.get("name")),
            "minima": list(values.get("minima", ())),
            "planes": list(values.get("planes") or ()),
        }
    return {
        "dataset": spec.dataset,
        "model": str(spec.model),
        "minima": list(spec.minima),
        "planes": list(spec.all_planes),
    }
