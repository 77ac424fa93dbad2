"""Choose the points at which all samples are computed: those from which the others are predicted best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_TINY = 1e-12


@dataclass(frozen=True)
class Selection:
    """Candidates in the order of choice, and after each choice the mean squared relative residual of a sample."""

    chosen: tuple[int, ...]
    residuals: tuple[float, ...]


def select_points(
    candidates: Tensor, targets: Tensor, weights: Tensor, *, required: Sequence[int] = (), most: int
) -> Selection:
    """Greedy choice of columns of ``candidates`` (samples, points) that predict ``targets`` (samples, targets).

    Each target t has its own regression, with ``weights`` (samples, targets): the mean of w (t - prediction)^2 over
    samples is its residual. ``required`` come first. Residuals are corrected for the number of columns.
    """
    samples, count = candidates.shape
    ones = candidates.new_ones(samples, 1)
    columns = torch.cat([ones, candidates], dim=1)
    products = torch.stack([(columns * weights[:, [t]]).T @ columns for t in range(targets.shape[1])])
    against = torch.stack([columns.T @ (weights[:, t] * targets[:, t]) for t in range(targets.shape[1])])
    left = (weights * targets**2).sum(0)
    floor = products.diagonal(dim1=1, dim2=2) * 1e-9 + _TINY
    chosen: list[int] = []
    residuals: list[float] = []

    def take(column: int) -> None:
        nonlocal products, against, left
        pivot = products[:, column, column].clamp_min(_TINY)
        row = products[:, column, :]
        gain = against[:, column] / pivot
        usable = products[:, column, column] > floor[:, column]
        row = torch.where(usable.unsqueeze(1), row, torch.zeros_like(row))
        gain = torch.where(usable, gain, torch.zeros_like(gain))
        left = (left - gain * against[:, column]).clamp_min(0.0)
        against = against - gain.unsqueeze(1) * row
        products = products - row.unsqueeze(2) * row.unsqueeze(1) / pivot.view(-1, 1, 1)

    take(0)
    while len(chosen) < min(most, count):
        wanted = [point for point in required if point not in chosen]
        if wanted:
            best = wanted[0]
        else:
            diagonal = products.diagonal(dim1=1, dim2=2)
            gains = torch.where(diagonal > floor, against**2 / diagonal.clamp_min(_TINY), torch.zeros_like(against))
            total = gains.sum(0)
            total[0] = -1.0
            total[[point + 1 for point in chosen]] = -1.0
            best = int(total.argmax()) - 1
        take(best + 1)
        chosen.append(best)
        free = max(1, samples - len(chosen) - 1)
        residuals.append(float(left.mean()) / free)
    return Selection(tuple(chosen), tuple(residuals))
