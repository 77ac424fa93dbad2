"""With what probability samples are drawn: how badly the coarse points predict one another for each of them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from valleyscope.landscape.estimation.known_pairs import KnownPairs
from valleyscope.landscape.estimation.links import Link

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-3
"""Losses below this share of their range are not judged relative to themselves."""
_SMALLEST_SIZE = 0.1
"""The least size of a sample in a draw, as a share of the mean: any sample may surprise at another point."""


def leave_one_point_out(known: KnownPairs, link: Link) -> tuple[Floats, float]:
    """The size of every sample's relative residuals where each coarse point is predicted from the others.

    Also by how much a draw in proportion to the sizes lowers a variance, compared with one that is uniform.
    """
    points = [point for point in known.coarse if np.isfinite(known.coarse[point].loss).all()]
    if len(points) < 2:
        return np.ones(known.size), 1.0
    losses = torch.stack([torch.from_numpy(known.coarse[point].loss) for point in points], dim=1).double()
    links = link.forward(losses)
    columns = torch.cat([torch.ones(known.size, 1, dtype=torch.float64), links], dim=1)
    mean = losses.abs().mean(0)
    mean = torch.maximum(mean, NEGLIGIBLE * (mean.max() - mean.min())).clamp_min(1e-300)
    total = torch.zeros(known.size, dtype=torch.float64)
    for place in range(len(points)):
        kept = [column for column in range(len(points) + 1) if column != place + 1]
        features = columns[:, kept]
        weighted = features * ((link.slope(links[:, place]) + 1e-3) ** 2).unsqueeze(1)
        matrix = weighted.T @ features
        matrix += 1e-6 * matrix.diagonal().mean() * torch.eye(len(kept), dtype=torch.float64)
        predicted = features @ torch.linalg.solve(matrix, weighted.T @ links[:, place])
        total += ((link.inverse(predicted) - losses[:, place]) / mean[place]) ** 2
    sizes = total.sqrt().numpy()
    average = float(sizes.mean())
    if not average > 0:
        return np.ones(known.size), 1.0
    sizes = sizes + _SMALLEST_SIZE * average
    squares = float((total.numpy()).mean())
    return sizes, float(np.clip(sizes.mean() * float((total.numpy() / sizes).mean()) / squares, 0.02, 1.0))
