"""Compute the pairs of a request with an evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.estimation.known_pairs import Column, Request
from valleyscope.landscape.evaluation.evaluator import Basis, Evaluator, Progress

Floats = NDArray[np.float64]
_FEWEST_TOGETHER = 64


def compute(
    evaluator: Evaluator,
    basis: Basis,
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
        basis,
        coefficients,
        splits=[split],
        samples=True,
        subset=subset,
        statistics=request.statistics,
        progress=progress,
        cancelled=cancelled,
    )[split]
    assert found.samples is not None
    wrong: Sequence[NDArray[np.bool_] | None] = [None] * len(rows) if found.wrong is None else list(found.wrong)
    return [Column(loss, misses) for loss, misses in zip(found.samples, wrong, strict=True)]


def split_request(request: Request, size: int, parts: int) -> list[Request]:
    """The request in this many parts, some maybe empty: by samples, or by points where there are few samples.

    Points that are computed together share the data and its first layer; samples of a point its BatchNorm statistics.
    """
    if request.statistics is not None:
        return [replace(request, points=part) for part in np.array_split(request.points, parts)]
    samples = np.arange(size) if request.samples is None else request.samples
    if len(samples) >= parts * _FEWEST_TOGETHER:
        return [Request(request.points, part, request.kind) for part in np.array_split(samples, parts)]
    return [Request(part, samples, request.kind) for part in np.array_split(request.points, parts)]


def merge_columns(request: Request, parts: Sequence[Request], columns: Sequence[Sequence[Column]]) -> list[Column]:
    """The columns of a request from those of its parts."""
    by_samples = all(len(part.points) == len(request.points) for part in parts) and request.statistics is None
    if not by_samples:
        return [column for some in columns for column in some]
    found = list(columns[0])
    for some in columns[1:]:
        found = [column.extended(other) for column, other in zip(found, some, strict=True)]
    return found
