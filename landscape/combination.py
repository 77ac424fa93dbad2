"""Linear combinations of vectors, one point of weight space at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def combination(vectors: Sequence[Tensor], coefficients: Sequence[float], out: Tensor | None = None) -> Tensor:
    """sum_j c_j v_j, element by element in this order: the same bits for a point whichever points are asked for."""
    if coefficients[0] == 1.0 and len(vectors) > 1:
        result = torch.add(vectors[0], vectors[1], alpha=coefficients[1], out=out)
        rest = 2
    else:
        result = torch.mul(vectors[0], coefficients[0], out=out)
        rest = 1
    for vector, coefficient in zip(vectors[rest:], coefficients[rest:], strict=True):
        result.add_(vector, alpha=coefficient)
    return result
