"""Sharpness of a minimum: how much the loss rises at a given distance in random directions.

Directions are filter-normalised (Li et al. 2018), so a radius of 0.1 moves every filter by a tenth of its own norm, and
minima with weights of different scale can be compared. Filters that are exactly zero (pruned) stay zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from valleyscope.landscape.cancellation import CancelCheck, raise_if_cancelled
from valleyscope.landscape.evaluation.evaluator import BatchNorm, Evaluator, Progress, evaluator_for
from valleyscope.landscape.evaluation.objectives import ErrorRate, Loss
from valleyscope.landscape.evaluation.splits import Data, by_split
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.random_directions import filter_normalised
from valleyscope.landscape.geometry.vectors import Weights, as_vector
from valleyscope.landscape.network.buffers import with_buffers

DEFAULT_RADIUS = 0.25
"""A quarter of every filter's norm: enough to leave the flat floor of a small network, and to stay finite."""


@dataclass(frozen=True, eq=False)
class Sharpness:
    """Rises of the loss above the minimum at ``weights +- radius * direction``: one row a direction, (k, 2)."""

    radius: float
    loss: float
    rises: NDArray[np.float64]
    seed: int
    split: str

    @property
    def rise(self) -> float:
        """Mean rise over directions and signs."""
        return float(self.rises.mean())

    @property
    def highest(self) -> float:
        """Largest rise over directions and signs."""
        return float(self.rises.max())

    def to_json(self) -> dict[str, Any]:
        """JSON values; a number that is not finite is null."""
        return {
            "radius": self.radius,
            "rise": self.rise if math.isfinite(self.rise) else None,
            "highest": self.highest if math.isfinite(self.highest) else None,
            "loss": self.loss if math.isfinite(self.loss) else None,
            "directions": len(self.rises),
            "seed": self.seed,
            "split": self.split,
        }


def sharpness(
    model: nn.Module,
    weights: Weights,
    data: Data | None = None,
    radius: float = DEFAULT_RADIUS,
    directions: int = 10,
    seed: int = 0,
    *,
    split: str = "train",
    biases: bool = False,
    loss: Loss = None,
    error: ErrorRate = None,
    parameters: Parameters = None,
    batch_norm: BatchNorm = "population",
    memory_limit: int | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> Sharpness:
    """Rise of the loss of one split around a minimum, in seeded filter-normalised random directions of both signs.

    ``radius`` is relative: the step along a direction is that share of every filter's norm. Equal seeds give equal
    directions, up to that scale, for every minimum of a network. ``loss``, ``error``, ``parameters`` and
    ``memory_limit`` are those of ``Evaluator``. ``progress`` gets directions done and their number.
    """
    if not (math.isfinite(radius) and radius > 0):
        raise ValueError(f"radius is {radius}; give a share of the filters' norms, a finite number above 0")
    if directions < 1:
        raise ValueError(f"directions is {directions}; give 1 or more")
    options = {"loss": loss, "error": error, "parameters": parameters, "memory_limit": memory_limit}
    moving = parameters if evaluator is None else evaluator.parameters
    if evaluator is None:
        model = with_buffers(model, {"weights": weights}, statistics=False, parameters=moving)
    centre = as_vector(model, weights, "weights", moving)
    if evaluator is None and data is not None:
        given = by_split(data)
        given = given if isinstance(data, Mapping) or split == "train" else {split: given["train"]}
        if split not in given:
            raise ValueError(f"split is {split!r}; the data has {', '.join(map(repr, given))}")
        data = {split: given[split]} if split == "train" else given
    evaluator = evaluator_for(model, data, evaluator, batch_norm, **options)
    generator = torch.Generator().manual_seed(seed)
    both_signs = np.array([[1.0, 0.0], [1.0, radius], [1.0, -radius]])
    losses: list[NDArray[np.float64]] = []
    for index in range(directions):
        raise_if_cancelled(cancelled)
        direction = filter_normalised(model, centre, generator, biases=biases, parameters=moving).to(centre)
        basis = torch.stack([centre, direction])
        # The centre is evaluated once, with the first direction.
        found = evaluator.at(basis, both_signs[min(index, 1) :], splits=[split], cancelled=cancelled)[split].loss
        losses.append(found)
        if progress is not None:
            progress(index + 1, directions)
    lowest = float(losses[0][0])
    with np.errstate(invalid="ignore"):
        rises = np.stack([found[-2:] for found in losses]) - lowest
    return Sharpness(radius, lowest, np.nan_to_num(rises, nan=math.inf, posinf=math.inf), seed, split)
