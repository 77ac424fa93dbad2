"""Inner products over millions of weights, accumulated in float64.

A float32 sum over 15 million weights loses the digits that tell whether two directions are orthogonal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CHUNK = 1 << 18
"""Weights converted to float64 at a time: small enough for the cache, large enough for BLAS."""


def gram(rows: Tensor, minus: Tensor | None = None) -> NDArray[np.float64]:
    """Inner products of the rows (of ``rows - minus`` where given): [k, k]."""
    count, size = rows.shape
    total = torch.zeros(count, count, dtype=torch.float64, device=rows.device)
    for part in chunks(size):
        piece = rows[:, part].to(torch.float64)
        if minus is not None:
            piece = piece - minus[..., part].to(torch.float64)
        total += piece @ piece.T
    return np.asarray(total.cpu().numpy(), dtype=np.float64)


def dot(first: Tensor, second: Tensor) -> float:
    """Inner product of two flat vectors."""
    total = torch.zeros((), dtype=torch.float64, device=first.device)
    for part in chunks(first.numel()):
        total += first[part].to(torch.float64) @ second[part].to(torch.float64)
    return float(total)


def norm(vector: Tensor) -> float:
    """Euclidean length of a flat vector."""
    return math.sqrt(dot(vector, vector))


def chunks(size: int) -> Iterator[slice]:
    """Consecutive slices that cover ``range(size)``."""
    return (slice(begin, min(begin + CHUNK, size)) for begin in range(0, size, CHUNK))
