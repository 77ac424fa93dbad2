"""The mean of the predicted probabilities of several networks, and its loss and error."""

from __future__ import annotations

import torch
from torch import Tensor

from valleyscope.landscape.evaluation.accumulators import Values
from valleyscope.landscape.evaluation.splits import Split


class MeanPrediction:
    """Adds up softmax probabilities of every sample of one split over the points of a sweep, in float64."""

    def __init__(self, split: Split, points: int) -> None:
        self.split = split
        self._points = points
        self._sum: Tensor | None = None

    def add(self, first: int, part: slice, logits: Tensor) -> None:  # noqa: ARG002
        """Add the logits (points, samples, classes) of a block; the order of the points does not matter."""
        if self._sum is None:
            shape = (len(self.split), logits.shape[-1])
            self._sum = torch.zeros(shape, dtype=torch.float64, device=logits.device)
        for one in logits:
            self._sum[part] += one.double().softmax(dim=-1)

    def values(self) -> Values:
        """Mean of -log p(true class) and of wrong classes, for the mean p over the points; one point."""
        assert self._sum is not None
        mean, y = self._sum / self._points, self.split.y
        loss = -mean.gather(1, y[:, None]).log().mean()
        error = (mean.argmax(dim=1) != y).double().mean()
        return Values(loss.cpu().numpy()[None], error.cpu().numpy()[None], guessing=self.split.guessing)
