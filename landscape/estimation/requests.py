"""Compute the pairs of a request with an evaluator."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.estimation.known_pairs import Column, Request
from valleyscope.landscape.evaluation.evaluator import Evaluator, Progress

Floats = NDArray[np.float64]


def compute(
    evaluator: Evaluator,
    basis: Tensor,
    x: Floats,
    y: Floats,
    split: str,
    request: Request,
    *,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> list[Column]:
    """The losses of the request's samples at its points; ``basis`` is that of a plane: origin, u, v."""
    rows, columns = np.divmod(request.points, len(x))
    coefficients = np.stack([np.ones(len(rows)), x[columns], y[rows]], axis=1)
    subset = None if request.samples is None else {split: request.samples}
    found = evaluator.at(
        basis, coefficients, splits=[split], samples=True, subset=subset, progress=progress, cancelled=cancelled
    )[split]
    assert found.samples is not None
    wrong: Sequence[NDArray[np.bool_] | None] = [None] * len(rows) if found.wrong is None else list(found.wrong)
    return [Column(loss, misses) for loss, misses in zip(found.samples, wrong, strict=True)]


def parts_of(request: Request, size: int, most: float) -> list[Request]:
    """The request in parts of at most about so many pairs, divided by samples: points of a part share their data."""
    samples = np.arange(size) if request.samples is None else request.samples
    number = min(len(samples), max(1, math.ceil(request.pairs(size) / most)))
    return [Request(request.points, part, request.kind) for part in np.array_split(samples, number)]


def joined(parts: Sequence[Sequence[Column]]) -> list[Column]:
    """The columns of a request from those of its parts, in order."""
    found = list(parts[0])
    for part in parts[1:]:
        found = [column.extended(other) for column, other in zip(found, part, strict=True)]
    return found
