"""Linear combinations of a few large tensors, for many sets of coefficients one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class LinearCombination:
    """sum_j c_j v_j, computed element by element as (c_0 v_0 + c_2 v_2 + c_3 v_3 + ...) + c_1 v_1.

    The sum in brackets is kept: along a row of a grid, with coefficients (1, x, y), only c_1 changes. The result for
    given coefficients has the same bits whatever was asked before.
    """

    def __init__(self, vectors: Sequence[Tensor]) -> None:
        self._vectors = vectors
        self._rest = torch.empty_like(vectors[0])
        self._kept: tuple[float, ...] = ()

    def at(self, coefficients: Sequence[float], out: Tensor | None = None) -> Tensor:
        """The combination with these coefficients, in ``out`` if given."""
        kept = (coefficients[0], *coefficients[2:])
        if kept != self._kept:
            torch.mul(self._vectors[0], coefficients[0], out=self._rest)
            for vector, coefficient in zip(self._vectors[2:], coefficients[2:], strict=True):
                self._rest.add_(vector, alpha=coefficient)
            self._kept = kept
        if len(self._vectors) == 1:
            return self._rest.clone() if out is None else out.copy_(self._rest)
        return torch.add(self._rest, self._vectors[1], alpha=coefficients[1], out=out)
