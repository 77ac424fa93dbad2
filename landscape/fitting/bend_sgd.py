"""Stochastic gradient descent on the bends of a curve.

With w(t) = sum_j c_j(t) p_j the chain rule gives d loss / d p_j = c_j(t) d loss / d w, so one backward pass at w(t)
serves every bend: their gradients are multiples of one vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.network.flat_parameters import FlatNetwork

SMALLEST_FACTOR = 1e-3


class BendSGD:
    """SGD with momentum on the bends: ``m_j <- momentum m_j + c_j (g + decay w(t))``, ``p_j <- p_j - rate m_j``.

    Here g is the gradient at w(t), and decay that of the penalty (decay / 2) |w(t)|^2. This is torch's SGD on the
    bends. The momentum is stored as ``m_j = factor velocity_j``, so that one step needs one pass over the velocities
    (``velocity_j += c_j / factor g``) instead of two; the factor is folded in before it gets small.
    """

    def __init__(self, flat: FlatNetwork, points: Tensor, momentum: float, weight_decay: float) -> None:
        self.flat = flat
        self.points = points
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.velocities = torch.zeros_like(points[1:-1])
        self.factor = 1.0
        self._velocity_parts = [flat.views_of_buffer(velocity) for velocity in self.velocities]
        self._bend_parts = [flat.views_of_buffer(bend) for bend in points[1:-1]]

    def set_point(self, coefficients: NDArray[np.float64]) -> None:
        """Set the network to the point of the curve with these coefficients."""
        row = torch.from_numpy(coefficients).to(self.points)
        torch.mv(self.points.T, row, out=self.flat.weights)

    def step(self, coefficients: NDArray[np.float64], gradients: Sequence[Tensor], rate: float) -> None:
        """Move every bend by the gradients at the current point."""
        gradients = list(gradients)
        self.factor *= self.momentum
        if self.factor < SMALLEST_FACTOR:
            self.velocities.mul_(self.factor)
            self.factor = 1.0
        for index, coefficient in enumerate(coefficients[1:-1]):
            share = float(coefficient) / self.factor
            if share:
                velocity = self._velocity_parts[index]
                torch._foreach_add_(velocity, gradients, alpha=share)
                if self.weight_decay:
                    self.velocities[index].add_(self.flat.weights, alpha=share * self.weight_decay)
            self.points[index + 1].add_(self.velocities[index], alpha=-rate * self.factor)
