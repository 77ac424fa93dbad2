"""The curvature of a minimum as figures, tables and the API show it: the density on a grid, the edge of stability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from valleyscope.landscape.storage.curvature_record import CurvatureRecord, DirectionsRecord, TrialRecord
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Floats, MinimumRecord

_GRID: Final = 301
_WIDTH: Final = 0.01
_FAINTEST: Final = 0.01


def curvature_summaries(landscape: Landscape) -> dict[str, dict[str, Any]]:
    """The summary of every minimum whose curvature is known."""
    return {name: curvature_summary(record, landscape.minima.get(name)) for name, record in landscape.curvature.items()}


def curvature_summary(record: CurvatureRecord, minimum: MinimumRecord | None = None) -> dict[str, Any]:
    """All that is shown of a record, as plain numbers, lists and arrays."""
    return {
        "kind": record.kind,
        "samples": record.samples,
        "dimension": record.dimension,
        "products": record.products,
        "converged": record.converged,
        "eigenvalues": record.eigenvalues,
        "residuals": record.residuals,
        "lowest": record.lowest,
        "lowest_residuals": record.lowest_residuals,
        "trace": record.trace,
        "trace_error": record.trace_error,
        "trace_interval": [record.trace_low, record.trace_high],
        "density": _density(record),
        "epochs": _epochs(record, minimum),
        "directions": None if record.directions is None else _directions(record.directions),
        "trials": {name: {**_trial(trial), "text": trial_text(name, trial)} for name, trial in record.trials.items()},
    }


def _density(record: CurvatureRecord) -> dict[str, Floats] | None:
    """The density of eigenvalues, each widened to a normal distribution; NaN where there is next to nothing.

    The width is a hundredth of the range, and so is the room at both ends.
    """
    values, weights = record.density_values, record.density_weights
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    width = _WIDTH * (max(high - low, 1e-12))
    x = np.linspace(low - 3 * width, high + 3 * width, _GRID)
    bells = np.exp(-0.5 * ((x[:, None] - values) / width) ** 2) / (width * math.sqrt(2 * math.pi))
    y = bells @ weights
    single = 1 / (record.dimension * width * math.sqrt(2 * math.pi))
    return {"x": x, "y": np.where(y >= _FAINTEST * single, y, np.nan)}


def _epochs(record: CurvatureRecord, minimum: MinimumRecord | None) -> dict[str, Floats]:
    """Largest eigenvalue and trace along training; ``edge`` is that of stability: 2 / learning rate for plain SGD.

    Momentum moves it to 2 (1 + momentum) / learning rate; other optimisers have none that one number could tell.
    """
    if not record.epochs:
        return {}
    columns = dict(record.epochs)
    known = {} if minimum is None else minimum.epochs
    settings = {} if minimum is None else minimum.settings
    if {"epoch", "learning_rate"} <= known.keys() and settings.get("optimizer", "sgd") in ("sgd", "altsdp"):
        room = 2 * (1 + float(settings.get("momentum", 0.0)))
        rates = dict(zip(known["epoch"].tolist(), known["learning_rate"].tolist(), strict=True))
        at = np.array([rates.get(epoch, np.nan) for epoch in columns["epoch"].tolist()])
        with np.errstate(divide="ignore"):
            columns["edge"] = np.where(at > 0, room / at, np.nan)
    return columns


def _directions(record: DirectionsRecord) -> dict[str, Any]:
    # A group that is zero has no direction; if all are, their zeros are all there is.
    there = record.norms > 0 if bool((record.norms > 0).any()) else np.ones(len(record.norms), dtype=bool)
    spread = [
        {"cut": cut, "removed": int(removed), "smallest": low, "median": middle, "largest": high}
        for cut, removed, (low, middle, high) in zip(
            record.cuts.tolist(),
            record.removed.tolist(),
            ((float(row.min()), float(np.median(row)), float(row.max())) for row in record.factors[:, there]),
            strict=True,
        )
    ]
    return {
        "layers": list(record.layers),
        "norms": record.norms,
        "cut": record.cut,
        "factors": record.at_cut,
        "spread": spread,
        "distances": record.distances,
        "losses": record.losses,
    }


def _trial(record: TrialRecord) -> dict[str, Any]:
    arrays = {name: getattr(record, name) for name in ("start", "factors", "measured", "theorem", "null")}
    return {
        "strength": record.strength,
        "layers": list(record.layers),
        **arrays,
        "zero": record.zero,
        "scores": record.scores,
        "note": record.note,
    }


def trial_text(name: str, trial: TrialRecord) -> str:
    """What the scores of a trial say."""
    theorem, null = trial.scores["theorem"], trial.scores["null"]

    def both(score: str) -> str:
        one, other = ("undefined" if math.isnan(found[score]) else f"{found[score]:.2f}" for found in (theorem, null))
        return f"{one} against {other}"

    words = (
        f"{name}, λ = {trial.strength:.3g}: {trial.zero} of {len(trial.layers)} groups vanished, the theorem predicts "
        f"{theorem['zero']:.0f}, s = 1 predicts {null['zero']:.0f}. Agreement {both('agreement')}, AUC {both('auc')}, "
        f"correlation of norms {both('correlation')}."
    )
    return f"{words} Note: {trial.note}." if trial.note else words


def spectrum_cells(record: CurvatureRecord | None) -> Mapping[str, float]:
    """The two numbers of a table of minima: the largest eigenvalue and the trace; empty where not known."""
    if record is None or not len(record.eigenvalues):
        return {}
    return {"largest": float(record.eigenvalues[0]), "trace": record.trace, "trace_error": record.trace_error}
