"""A set of networks as one: the network of their mean weights, and the mean of their predictions.

The mean of weights (a soup, Wortsman et al. 2022) costs one network; it is good where the set lies in one basin, since
it is a point inside of it. The mean of predictions costs all of them, and its loss is never above their mean loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.evaluation.evaluator import BatchNorm, Evaluator, evaluator_for
from valleyscope.landscape.evaluation.splits import Data
from valleyscope.landscape.geometry.vectors import Weights, as_vector
from valleyscope.landscape.storage.ensemble_record import EnsembleRecord
from valleyscope.landscape.storage.records import PathValues, checked_name


@dataclass(frozen=True)
class Score:
    """Mean loss in nats and error rate in [0, 1] of one network, or of several together."""

    loss: float
    error: float


@dataclass(frozen=True)
class Ensemble:
    """Scores by split: of every member, of the network of their mean weights, and of their mean prediction."""

    members: dict[str, dict[str, Score]]
    average: dict[str, Score]
    ensemble: dict[str, Score]

    def to_record(self, name: str) -> EnsembleRecord:
        """The scores as columns for ``landscape.h5``: the members, then the average, then the ensemble."""
        rows = [*self.members.values(), self.average, self.ensemble]
        splits = {
            split: PathValues(
                np.array([row[split].loss for row in rows], dtype=np.float64),
                np.array([row[split].error for row in rows], dtype=np.float64),
            )
            for split in self.average
        }
        return EnsembleRecord(name, tuple(self.members), splits)

    def to_json(self) -> dict[str, Any]:
        return self.to_record("ensemble").to_json()


def ensemble(
    model: nn.Module,
    weights: Mapping[str, Weights],
    data: Data | None = None,
    *,
    batch_norm: BatchNorm = "population",
    memory_limit: int | None = None,
    evaluator: Evaluator | None = None,
    cancelled: CancelCheck | None = None,
) -> Ensemble:
    """Loss and error of networks by name, of the mean of their weights, and of the mean of their predictions.

    The networks are classifiers of one architecture: state dicts, flat vectors, modules or paths. BatchNorm statistics
    are computed anew for each of them and for the mean (``population``), or as ``batch_norm`` says.
    """
    if len(weights) < 2:
        raise ValueError(f"weights has {len(weights)} networks; give two or more")
    for name in weights:
        checked_name(name, "weights: a network")
    evaluator = evaluator_for(model, data, evaluator, batch_norm, memory_limit=memory_limit)
    vectors = [as_vector(model, given, name, evaluator.parameters) for name, given in weights.items()]
    basis, count = torch.stack(vectors), len(vectors)
    points = np.vstack([np.eye(count), np.full((1, count), 1 / count)])
    found = evaluator.at(basis, points, cancelled=cancelled)
    together = evaluator.mean_prediction(basis, np.eye(count), cancelled=cancelled)

    def scores(row: int) -> dict[str, Score]:
        return {split: Score(float(of.loss[row]), float(of.error[row])) for split, of in found.items()}

    return Ensemble(
        members={name: scores(row) for row, name in enumerate(weights)},
        average=scores(count),
        ensemble={split: Score(float(of.loss[0]), float(of.error[0])) for split, of in together.items()},
    )
