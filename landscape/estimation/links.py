"""Transforms of a sample's loss to a number that is smooth over a plane, in which it can be predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

_SMALLEST_LOSS = 1e-12
_LARGE_LOSS = 20.0


@dataclass(frozen=True)
class Link:
    """``margin`` for the cross-entropy of one class: m = -log(exp(l) - 1), so l = log(1 + exp(-m)); else identity."""

    kind: Literal["margin", "identity"]

    def forward(self, losses: Tensor) -> Tensor:
        if self.kind == "identity":
            return losses
        small = losses.clamp(_SMALLEST_LOSS, _LARGE_LOSS)
        return torch.where(losses > _LARGE_LOSS, -losses, -small.expm1().log())

    def inverse(self, values: Tensor) -> Tensor:
        return values if self.kind == "identity" else F.softplus(-values)

    def slope(self, values: Tensor) -> Tensor:
        """The size of the derivative of ``inverse``."""
        return torch.ones_like(values) if self.kind == "identity" else torch.sigmoid(-values)
