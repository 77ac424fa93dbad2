"""Linear combinations of a few large tensors, for many sets of coefficients one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class LinearCombination:
    """sum_j c_j v_j, computed element by element as (c_0 v_0 + c_2 v_2 + c_3 v_3 + ...) + c_1 v_1.

    The sum in brackets is cached: along a row of a grid, with coefficients (1, x, y), only c_1 changes. The result has
    the same bits whatever was computed before.
    """

    def __init__(self, vectors: Sequence[Tensor]) -> None:
        self._vectors = vectors
        self._partial_sum = torch.empty_like(vectors[0])
        self._partial_coefficients: tuple[float, ...] = ()

    def at(self, coefficients: Sequence[float], out: Tensor | None = None) -> Tensor:
        """The combination with these coefficients, in ``out`` if given."""
        others = (coefficients[0], *coefficients[2:])
        if others != self._partial_coefficients:
            torch.mul(self._vectors[0], coefficients[0], out=self._partial_sum)
            for vector, coefficient in zip(self._vectors[2:], coefficients[2:], strict=True):
                self._partial_sum.add_(vector, alpha=coefficient)
            self._partial_coefficients = others
        if len(self._vectors) == 1:
            return self._partial_sum.clone() if out is None else out.copy_(self._partial_sum)
        return torch.add(self._partial_sum, self._vectors[1], alpha=coefficients[1], out=out)


def combine_parts(
    vectors: Sequence[Sequence[Tensor]], targets: Sequence[Tensor], coefficients: Sequence[float]
) -> None:
    """Write the same combination of vectors in parts to targets, which may be in other memory orders.

    Without any memory of its own; it takes longer, and has the same bits.
    """
    order = [*range(2, len(vectors)), *range(1, min(2, len(vectors)))]
    for target, *parts in zip(targets, *vectors, strict=True):
        torch.mul(parts[0], coefficients[0], out=target)
        for place in order:
            target.add_(parts[place], alpha=coefficients[place])
