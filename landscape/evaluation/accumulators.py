"""Sums of losses and errors over blocks of samples, at many points, in float64 and never NaN."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.evaluation.splits import Split


@dataclass(frozen=True, eq=False)
class Values:
    """Mean loss in nats and error rate in [0, 1] at every point, shape (n,).

    ``samples`` has the loss of every sample at every point, shape (n, N), if requested, and ``wrong`` whether its class
    is wrong. ``guessing`` is the loss of always predicting the class frequencies.
    """

    loss: NDArray[np.float64]
    error: NDArray[np.float64]
    samples: NDArray[np.float32] | None = None
    guessing: float | None = None
    wrong: NDArray[np.bool_] | None = None

    def reversed(self) -> Values:
        """The values with the last point first."""
        samples = None if self.samples is None else self.samples[::-1]
        wrong = None if self.wrong is None else self.wrong[::-1]
        return replace(self, loss=self.loss[::-1], error=self.error[::-1], samples=samples, wrong=wrong)


class LossAccumulator:
    """Losses and errors of one split at several points; with ``samples``, of every sample."""

    def __init__(self, split: Split, points: int, *, samples: bool) -> None:
        self.split = split
        self._loss = torch.zeros(points, dtype=torch.float64, device=split.y.device)
        self._wrong = torch.zeros(points, dtype=torch.float64, device=split.y.device)
        self._samples = np.empty((points, len(split)), dtype=np.float32) if samples else None
        self._misses = np.empty((points, len(split)), dtype=np.bool_) if samples else None

    def add(self, first: int, part: slice, logits: Tensor) -> None:
        """Add the logits (points, samples, classes) of a block at the points from index ``first`` on.

        With the same blocks in the same order, the sums of a point do not depend on the other points.
        """
        points, block, classes = logits.shape
        losses, wrong = cross_entropy(logits.reshape(-1, classes), self.split.y[part].repeat(points))
        # One reduction per point: a reduction of the matrix may use another order for more rows.
        for point, (loss, misses) in enumerate(zip(losses.view(-1, block), wrong.view(-1, block), strict=True), first):
            self._loss[point] += loss.sum()
            self._wrong[point] += misses.sum()
        if self._samples is not None and self._misses is not None:
            self._samples[first : first + points, part] = losses.view(-1, block).cpu().numpy()
            self._misses[first : first + points, part] = wrong.view(-1, block).cpu().numpy()

    def values(self) -> Values:
        """Means over all samples of the split."""
        loss, error = ((total / len(self.split)).cpu().numpy() for total in (self._loss, self._wrong))
        return Values(loss, error, self._samples, self.split.guessing, self._misses)


def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Loss of every sample in float64, and whether its class is wrong.

    The loss of a sample that is right by a margin m is about exp(-m); float32 would lose it below 1e-7. A sample
    whose logits are not all finite has an infinite loss and is wrong.
    """
    precise = logits.to(torch.float64)
    log_probabilities = torch.log_softmax(precise, dim=1)
    losses = log_probabilities.gather(1, labels.unsqueeze(1)).squeeze(1).neg_()
    not_finite = ~torch.isfinite(precise.sum(dim=1))
    return losses.masked_fill_(not_finite, torch.inf), (logits.argmax(dim=1) != labels).logical_or_(not_finite)
