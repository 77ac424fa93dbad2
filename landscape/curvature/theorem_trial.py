"""The theorem on trial: does the flat subspace of SGD's minimum predict which groups AltSDP removes?

Theorem 2 of structured directional pruning says that AltSDP, on the same batches as SGD, ends near
(1 - lambda s_i / ||w_i||)_+ w_i, where w is SGD's minimum, s_i are its direction factors and lambda is the last
threshold. The null prediction s_i = 1 is plain soft-thresholding of SGD's groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from valleyscope.landscape.curvature.flat_subspace import FlatSubspace, flat_subspace
from valleyscope.landscape.curvature.krylov import Floats
from valleyscope.landscape.curvature.products import BatchNorm
from valleyscope.landscape.curvature.weight_groups import Partition, weight_groups
from valleyscope.landscape.evaluation.evaluator import Evaluator
from valleyscope.landscape.evaluation.objectives import Loss
from valleyscope.landscape.evaluation.splits import Data, by_split
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import as_vector
from valleyscope.landscape.geometry.weight_files import Weights
from valleyscope.landscape.network.buffers import network_at


@dataclass(frozen=True, eq=False)
class Prediction:
    """Group norms predicted by one set of direction factors, and how well they fit the measured ones.

    ``agreement`` is the share of groups that are zero in both or in neither, ``auc`` the probability that a group that
    vanished ranks above one that did not, by s_i / ||w_i||, and ``correlation`` that of predicted and measured norms.
    ``auc`` is NaN where no group or every group vanished, ``correlation`` where all norms are equal.
    """

    factors: Floats
    norms: Floats
    zero: int
    agreement: float
    auc: float
    correlation: float


@dataclass(frozen=True, eq=False)
class FlatnessCheck:
    """The loss at equal distances from the minimum along several directions.

    ``flat`` goes along -Pi(E_G(w)), ``groups`` along -E_G(w), so both shrink groups, and ``sharpest`` along the
    eigenvector of the largest eigenvalue.
    """

    distances: Floats
    flat: Floats
    groups: Floats
    sharpest: Floats


@dataclass(frozen=True, eq=False)
class TheoremTrial:
    """Predicted against measured groups: with the direction factors (``theorem``) and with s_i = 1 (``null``)."""

    layers: tuple[str, ...]
    start: Floats
    measured: Floats
    zero: int
    strength: float
    cut: float
    removed: int
    theorem: Prediction
    null: Prediction
    loss: FlatnessCheck | None


def theorem_trial(
    model: nn.Module,
    sgd: Weights,
    altsdp: Weights,
    data: Data,
    groups: Partition,
    strength: float,
    cut: float = 1e-3,
    *,
    subspace: FlatSubspace | None = None,
    distances: ArrayLike | None = None,
    batch_norm: BatchNorm = "population",
    loss: Loss = None,
    parameters: Parameters = None,
    **options: Any,
) -> TheoremTrial:
    """Compare the groups of an AltSDP run with those predicted from SGD's minimum on the same batches.

    ``strength`` is lambda, the threshold at the end of the run (``Trained.final.threshold``). ``subspace`` is SGD's
    flat subspace if you have it, else it is computed for ``cut`` with the options of ``flat_subspace``. ``distances``
    are those at which the loss is measured along three directions; an empty list leaves that out.
    """
    if not (np.isfinite(strength) and strength >= 0):
        raise ValueError(f"strength is {strength}; give the threshold at the end of the run, 0 or more")
    numbered = weight_groups(model, groups, parameters)
    network, point = network_at(model, sgd, statistics=False, parameters=parameters, name="sgd")
    found = as_vector(network, altsdp, "altsdp", parameters)
    same: dict[str, Any] = {"batch_norm": batch_norm, "loss": loss, "parameters": parameters}
    if subspace is None:
        subspace = flat_subspace(model, sgd, data, cut, **same, **options)
    start, measured = (_numpy(numbered.norms(vector)) for vector in (point, found))
    factors = _numpy(subspace.factors(point, numbered))
    steps = np.linspace(0, 3, 13)[1:] if distances is None else np.asarray(distances, dtype=np.float64)
    direction = numbered.normalised(point)
    return TheoremTrial(
        layers=numbered.layers,
        start=start,
        measured=measured,
        zero=int((measured == 0).sum()),
        strength=float(strength),
        cut=subspace.cut,
        removed=len(subspace.eigenvalues),
        theorem=predict(start, measured, factors, strength),
        null=predict(start, measured, np.ones_like(start), strength),
        loss=losses_along(model, sgd, data, direction, subspace, steps, **same) if len(steps) else None,
    )


def predict(start: Floats, measured: Floats, factors: Floats, strength: float) -> Prediction:
    """The norms (||w_i|| - lambda s_i)_+ of all groups, compared with the measured ones; a zero group stays zero."""
    norms = np.where(start > 0, np.maximum(start - strength * factors, 0.0), 0.0)
    gone, found = norms == 0, measured == 0
    with np.errstate(divide="ignore"):
        score = np.where(start > 0, factors / np.where(start > 0, start, 1.0), np.inf)
    return Prediction(
        factors, norms, int(gone.sum()), float((gone == found).mean()), auc(score, found), _correlation(norms, measured)
    )


def auc(score: Floats, positive: NDArray[np.bool_]) -> float:
    """The probability that a positive has the higher score than a negative, ties counted half (Mann and Whitney)."""
    ahead, behind = score[positive], score[~positive]
    if len(ahead) == 0 or len(behind) == 0:
        return float("nan")
    return float(((ahead[:, None] > behind) + 0.5 * (ahead[:, None] == behind)).mean())


def _correlation(first: Floats, second: Floats) -> float:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def losses_along(
    model: nn.Module,
    weights: Weights,
    data: Data,
    direction: Tensor,
    subspace: FlatSubspace,
    distances: Floats,
    *,
    batch_norm: BatchNorm = "population",
    loss: Loss = None,
    parameters: Parameters = None,
) -> FlatnessCheck:
    """The train loss at these distances: along -Pi(direction), -direction, and the first steep eigenvector.

    ``direction`` is E_G(w), so the first two shrink groups.
    """
    network, point = network_at(model, weights, statistics=batch_norm == "frozen", parameters=parameters)
    same: dict[str, Any] = {"batch_norm": batch_norm, "loss": loss, "parameters": parameters}
    evaluator = Evaluator(network, {"train": by_split(data)["train"]}, **same)
    sharpest = subspace.steep[0] if len(subspace.steep) else torch.zeros_like(point)
    directions = [-subspace.project(direction), -direction, sharpest]
    unit = [vector / vector.norm().clamp_min(1e-300) for vector in (part.to(torch.float64) for part in directions)]
    basis = torch.stack([point, *(vector.to(point) for vector in unit)])
    losses = []
    for number in (1, 2, 3):
        table = np.zeros((len(distances), 4))
        table[:, 0], table[:, number] = 1.0, distances
        losses.append(np.asarray(evaluator.at(basis, table)["train"].loss, dtype=np.float64))
    return FlatnessCheck(distances, *losses)


def _numpy(values: Tensor) -> Floats:
    return np.asarray(values.cpu().numpy(), dtype=np.float64)
