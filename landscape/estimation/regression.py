"""Weighted ridge regression at many points at once, with predictions as if each sample had been left out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_RIDGE = 1e-5
_POINTS_AT_ONCE = 128


@dataclass(frozen=True, eq=False)
class Fit:
    """``coefficients`` of shape (features, points), and ``left_out``: predictions of each sample from the others."""

    coefficients: Tensor
    left_out: Tensor


def fit(features: Tensor, targets: Tensor, weights: Tensor, ridge: float = _RIDGE) -> Fit:
    """Minimise sum_s w_sp (t_sp - f_s . c_p)^2 + ridge for every point p.

    ``features`` are (samples, features), ``targets`` and ``weights`` (samples, points), in float64.
    """
    count = features.shape[1]
    coefficients = targets.new_empty(count, targets.shape[1])
    left_out = torch.empty_like(targets)
    products = (features.unsqueeze(2) * features.unsqueeze(1)).flatten(1)
    for start in range(0, targets.shape[1], _POINTS_AT_ONCE):
        part = slice(start, start + _POINTS_AT_ONCE)
        wanted, weight = targets[:, part], weights[:, part]
        matrices = (weight.T @ products).view(-1, count, count)
        scale = matrices.diagonal(dim1=1, dim2=2).mean(1)
        matrices = matrices + (ridge * scale + 1e-300).view(-1, 1, 1) * torch.eye(count, dtype=matrices.dtype)
        inverse = torch.linalg.inv(matrices)
        found = (inverse @ ((weight * wanted).T @ features).unsqueeze(2)).squeeze(2)
        predicted = features @ found.T
        leverage = (weight * (products @ inverse.flatten(1).T)).clamp(0.0, 0.999)
        coefficients[:, part] = found.T
        left_out[:, part] = wanted - (wanted - predicted) / (1.0 - leverage)
    return Fit(coefficients, left_out)
