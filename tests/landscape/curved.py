"""The known landscape with curvature whose eigenvalues and predictions are written by hand."""

from __future__ import annotations

import numpy as np

from tests.landscape import cases
from valleyscope.landscape.curvature.theorem_trial import Prediction, predict
from valleyscope.landscape.storage.curvature_record import CurvatureRecord, DirectionsRecord, TrialRecord
from valleyscope.landscape.storage.landscape_file import Landscape

LAYERS = ("layers.0",) * 4 + ("layers.3",) * 6
START = np.linspace(0.5, 2.3, 10)
FACTORS = np.linspace(1.0, -0.2, 10)


def curved(resolution: int = 9) -> Landscape:
    """Curvature of sgd with direction factors, snapshots and the trial of altsdp, and of altsdp alone."""
    landscape = cases.landscape(resolution)
    landscape.curvature = {"sgd": record("sgd"), "altsdp": record("altsdp")}
    sgd = landscape.curvature["sgd"]
    sgd.epochs = {
        "epoch": np.array([30.0, 60.0, 120.0]),
        "largest": np.array([4.0, 18.0, 39.0]),
        "residual": np.full(3, 1e-5),
        "trace": np.array([9.0, 40.0, 81.0]),
        "trace_error": np.full(3, 0.5),
    }
    sgd.directions = directions()
    sgd.trials = {"altsdp": trial()}
    return landscape


def record(name: str) -> CurvatureRecord:
    values = np.array([39.0, 17.5, 3.25]) if name == "sgd" else np.array([12.0, 2.5, 1.5])
    lowest = np.array([-0.5, -0.125])
    return CurvatureRecord(
        name=name,
        kind="hessian",
        samples=1437,
        dimension=1000,
        products=312,
        converged=True,
        eigenvalues=values,
        residuals=np.full(3, 1e-6),
        lowest=lowest,
        lowest_residuals=np.full(2, 2e-6),
        trace=81.0,
        trace_error=0.5,
        trace_low=79.9,
        trace_high=82.1,
        density_values=np.concatenate([values, lowest, [0.0, 0.02]]),
        density_weights=np.array([1, 1, 1, 1, 1, 900, 95]) / 1000,
    )


def directions() -> DirectionsRecord:
    cuts = np.array([0.1, 0.01, 0.001])
    factors = np.stack([np.ones(10), (1 + FACTORS) / 2, FACTORS])
    distances = np.array([0.5, 1.0, 2.0])
    losses = {"flat": distances / 1000, "groups": distances**2 / 100, "sharpest": 20 * distances**2}
    removed = np.array([3.0, 40.0, 216.0])
    return DirectionsRecord(LAYERS, START, 0.001, cuts, removed, factors, distances, losses)


def trial() -> TrialRecord:
    measured = np.maximum(START - FACTORS, 0) * 1.05
    theorem, null = (predict(START, measured, factors, 1.0) for factors in (FACTORS, np.ones(10)))
    found = {"theorem": scores(theorem), "null": scores(null)}
    return TrialRecord(1.0, LAYERS, START, FACTORS, measured, theorem.norms, null.norms, found)


def scores(found: Prediction) -> dict[str, float]:
    names = ("zero", "agreement", "auc", "correlation")
    return {name: float(getattr(found, name)) for name in names}
