"""Sums of losses and errors over blocks of samples, at many points, in float64 and never NaN."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.evaluation.batches import Batch
from valleyscope.landscape.evaluation.guessing_baseline import guessing_loss
from valleyscope.landscape.evaluation.objectives import Objective, Terms
from valleyscope.landscape.evaluation.splits import Split


@dataclass(frozen=True, eq=False)
class Values:
    """Mean loss and error rate in [0, 1] at every point, shape (n,); NaN where a loss has no error.

    ``samples`` has the loss of every sample at every point, shape (n, N), if requested, and ``wrong`` whether its class
    is wrong. ``guessing`` is the loss of always predicting the class frequencies, for classifiers. ``unit`` is that of
    the loss: nats, or empty.
    """

    loss: NDArray[np.float64]
    error: NDArray[np.float64]
    samples: NDArray[np.float32] | None = None
    guessing: float | None = None
    wrong: NDArray[np.bool_] | None = None
    unit: str = "nats"

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
        if losses.is_cuda:
            self._loss[first : first + points] += losses.view(-1, block).sum(1)
            self._wrong[first : first + points] += wrong.view(-1, block).sum(1)
        else:
            # One reduction per point: a reduction of the matrix may use another order for more rows.
            rows = zip(losses.view(-1, block), wrong.view(-1, block), strict=True)
            for point, (loss, misses) in enumerate(rows, first):
                self._loss[point] += loss.sum()
                self._wrong[point] += misses.sum()
        if self._samples is not None and self._misses is not None:
            self._samples[first : first + points, part] = losses.view(-1, block).cpu().numpy()
            self._misses[first : first + points, part] = wrong.view(-1, block).cpu().numpy()

    def values(self) -> Values:
        """Means over all samples of the split."""
        loss, error = ((total / len(self.split)).cpu().numpy() for total in (self._loss, self._wrong))
        return Values(loss, error, self._samples, self.split.guessing, self._misses)


class TermAccumulator:
    """The terms of an objective over the samples of a split at several points."""

    def __init__(self, size: int, points: int, objective: Objective, *, samples: bool) -> None:
        self._size = size
        self._objective = objective
        self._loss = np.zeros(points)
        self._wrong: NDArray[np.float64] | None = np.zeros(points) if objective.has_error else None
        self._count = np.zeros(points)
        self._samples = np.empty((points, size), dtype=np.float32) if samples else None
        self._classes = np.zeros(0)

    def add(self, point: int, part: slice, terms: Terms) -> None:
        """Add the terms of a block at a point."""
        self._loss[point] += float(terms.loss.sum())
        self._count[point] += float(terms.count.sum())
        if terms.wrong is None:
            self._wrong = None
        elif self._wrong is not None:
            self._wrong[point] += float(terms.wrong.sum())
        if self._samples is not None:
            self._samples[point, part] = terms.loss.cpu().numpy()

    def add_targets(self, batch: Batch) -> None:
        """Count the classes of a block, of which guessing would know the frequencies."""
        if not self._objective.is_classification:
            return
        _, target = self._objective.split(batch)
        if target.dim() != 1:
            return
        counts = target[target >= 0].bincount().cpu().numpy()
        length = max(len(counts), len(self._classes))
        self._classes = np.pad(self._classes, (0, length - len(self._classes))) + np.pad(
            counts, (0, length - len(counts))
        )

    def values(self) -> Values:
        """Means over all that counts; the mean over ``samples`` is the loss."""
        if not self._count.all():
            raise ValueError("data: all targets of a split are ignored, so it has no loss")
        loss = self._loss / self._count
        error = np.full_like(loss, np.nan) if self._wrong is None else self._wrong / self._count
        samples = self._samples
        if samples is not None and not (self._count == self._size).all():
            samples = samples * np.float32(self._size / self._count[0])
        guessing = guessing_loss(self._classes) if self._classes.sum() else None
        return Values(loss, error, samples, guessing, unit=self._objective.unit)


class OutputAccumulator:
    """Outputs of a network as terms of a named loss, for the samples and targets of one split."""

    def __init__(self, split: Split, points: int, objective: Objective, *, samples: bool) -> None:
        self.split = split
        self._objective = objective
        self._terms = TermAccumulator(len(split), points, objective, samples=samples)

    def add(self, first: int, part: slice, outputs: Tensor) -> None:
        """Add the outputs (points, samples, ...) of a block at the points from index ``first`` on."""
        assert self._objective.measure is not None
        for point, output in enumerate(outputs, first):
            self._terms.add(point, part, self._objective.measure(output, self.split.y[part]))
        if first == 0:
            self._terms.add_targets((None, self.split.y[part]))

    def values(self) -> Values:
        return self._terms.values()


class Accumulator(Protocol):
    """What a sweep adds the outputs of a split to."""

    split: Split

    def add(self, first: int, part: slice, outputs: Tensor, /) -> None:
        """Add the outputs (points, samples, ...) of a block at the points from index ``first`` on."""

    def values(self) -> Values:
        """The values of all points."""


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
