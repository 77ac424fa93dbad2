"""Orthonormal directions in weight space, made in float64: Gram-Schmidt, random completion, principal directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.geometry.inner_products import chunks, dot, gram, norm

COLLINEAR_SINE = 1e-6
"""Sine of an angle below which two directions count as one."""


def orthogonal_part(direction: Tensor, to: Sequence[Tensor]) -> Tensor:
    """The direction minus its parts along orthonormal vectors; done twice to remove rounding errors."""
    rest = direction.to(torch.float64, copy=True)
    for _ in range(2):
        for unit in to:
            rest.add_(unit, alpha=-dot(rest, unit))
    return rest


def normalised(direction: Tensor) -> Tensor:
    return direction / norm(direction)


def complete_basis(directions: Sequence[Tensor], like: Tensor, seed: int) -> list[Tensor]:
    """Two orthonormal directions: the given ones, completed by seeded isotropic random ones."""
    generator = torch.Generator().manual_seed(seed)
    result = list(directions)
    if like.numel() < 2:
        raise ValueError("weight space has one dimension; a plane needs two")
    while len(result) < 2:
        drawn = torch.randn(like.numel(), dtype=torch.float64, generator=generator).to(like.device)
        result.append(normalised(orthogonal_part(drawn, result)))
    return result


def principal_directions(path: Tensor) -> tuple[list[Tensor], tuple[float, float]]:
    """Up to two leading right singular vectors of the rows w_i - w_n, and the share of squared distance of each.

    They come from the small matrix of inner products, so D may be millions. Fewer than two are returned when the
    trajectory stays within rounding of a point or a line.
    """
    final = path[-1].to(torch.float64)
    products = gram(path[:-1], minus=path[-1])
    values, vectors = np.linalg.eigh(products)
    total = float(np.trace(products))
    smallest = max(rounding_noise([path[-1]]) ** 2 * len(path), COLLINEAR_SINE**2 * total)
    start = path[0].to(torch.float64) - final
    directions: list[Tensor] = []
    for index in range(-1, -1 - min(2, len(values)), -1):
        if values[index] > smallest:
            unit = normalised(orthogonal_part(_combined(path, vectors[:, index]), directions))
            # The sign of a singular vector is arbitrary: the trajectory shall start on the positive side.
            directions.append(-unit if dot(unit, start) < 0 else unit)
    share = np.maximum(values[::-1][:2], 0.0) / total if total > 0 else np.zeros(2)
    return directions, (float(share[0]), float(share[1]))


def rounding_noise(vectors: Sequence[Tensor]) -> float:
    """Distance below which vectors of these lengths and data type may differ by rounding alone."""
    precision = max(torch.finfo(vector.dtype).eps for vector in vectors)
    return 4.0 * precision * max(norm(vector) for vector in vectors)


def _combined(path: Tensor, weights: NDArray[np.float64]) -> Tensor:
    """sum_i weights_i (w_i - w_n) in float64, chunk by chunk."""
    factors = torch.from_numpy(weights.copy()).to(path.device)
    result = torch.empty(path.shape[1], dtype=torch.float64, device=path.device)
    for part in chunks(path.shape[1]):
        result[part] = factors @ (path[:-1, part].to(torch.float64) - path[-1, part].to(torch.float64))
    return result
