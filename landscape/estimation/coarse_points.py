"""Which points get all samples: those that save more work than they are, as far as the samples known tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.estimation.links import Link
from valleyscope.landscape.estimation.selection import select_points

Floats = NDArray[np.float64]

_LEAST_SLOPE = 1e-3


def first_points(
    losses: Tensor,
    scale: Tensor,
    link: Link,
    *,
    required: Sequence[int],
    fewest: int,
    most: int,
    work: Callable[..., float],
) -> tuple[list[int], float]:
    """Places of points, from the losses (samples, points) of a pilot, and the squared relative residual they leave.

    ``scale`` is the loss that errors at each point are relative to; ``work(number, residual)`` that of so many points.
    """
    links = link.forward(losses)
    weights = ((link.slope(links) + _LEAST_SLOPE) / scale) ** 2
    selection = select_points(links, links, weights, required=required, most=min(most, losses.shape[1] - 1))
    best = 1 + int(np.argmin([work(number, left) for number, left in enumerate(selection.residuals, 1)]))
    best = min(max(fewest, len(required) + 2, best), len(selection.chosen))
    return list(selection.chosen[:best]), selection.residuals[best - 1]


def further_points(
    old: Floats,
    candidates: Floats,
    targets: Floats,
    scale: Floats,
    probabilities: Floats,
    link: Link,
    *,
    most: int,
    work: Callable[..., float],
) -> tuple[list[int], float]:
    """Places of candidates that are worth their work, and what they leave of the variance of the predictions.

    ``old``, ``candidates`` and ``targets`` are losses (samples, points) of samples drawn with these probabilities;
    ``work(number, left)`` is that of so many more points, which leave this share of the variance.
    """
    known = old.shape[1]
    links = link.forward(torch.from_numpy(np.concatenate([old, candidates], axis=1)))
    wanted = link.forward(torch.from_numpy(targets))
    weights = ((link.slope(wanted) + _LEAST_SLOPE) / torch.from_numpy(scale)) ** 2
    weights = weights / torch.from_numpy(probabilities).unsqueeze(1)
    selection = select_points(links, wanted, weights, required=range(known), most=known + most)
    base = selection.residuals[known - 1]
    best, least, ratio = 0, math.inf, 1.0
    for number in range(len(selection.chosen) - known + 1):
        left = selection.residuals[known - 1 + number] / base if base > 0 else 1.0
        if (needed := work(number, left)) < least:
            best, least, ratio = number, needed, left
    return [place - known for place in selection.chosen[known : known + best]], ratio
