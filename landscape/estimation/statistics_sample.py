"""BatchNorm statistics of some samples instead of all: by how much they change a mean, and how far that is known.

At the coarse points both are known for the samples drawn: their losses with exact statistics and with those of the
sample. The mean of the relative differences corrects estimates at all other points, and their spread over the coarse
points counts as an error there, beside that of drawing samples. Both fall with the size of the sample: the mean with
its inverse, the spread with the inverse root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.estimation.estimator import Estimate
from valleyscope.landscape.estimation.known_pairs import KnownPairs
from valleyscope.landscape.estimation.ranking import Draw
from valleyscope.landscape.estimation.sample_sizes import NEGLIGIBLE

Floats = NDArray[np.float64]

FIRST = 1024
"""Samples of the first statistics."""
FEWEST_STATISTICS = 2 * FIRST
"""With fewer samples statistics are exact everywhere."""
SHARE = 0.6
"""The part of the error, in variance as a square, that statistics shall make."""


@dataclass(frozen=True)
class Change:
    """What statistics of a sample do to the loss, relative, and to the error rate: a mean and a spread over points."""

    loss: float = 0.0
    loss_spread: float = 0.0
    error: float = 0.0
    error_spread: float = 0.0

    def needed(self, samples: int, accuracy: float) -> int:
        """About how many samples have a spread that leaves room for the accuracy, if so many have this one."""
        return int(np.ceil(samples * (self.loss_spread / (SHARE * accuracy)) ** 2))

    def corrected(self, found: Estimate, coarse: list[int]) -> Estimate:
        """An estimate that was made with these statistics at all but the coarse points."""
        loss, terms = found.loss / (1 + self.loss), found.terms / (1 + self.loss) ** 2
        loss_error = np.hypot(found.loss_error / (1 + self.loss), self.loss_spread * np.abs(loss))
        error = np.clip(found.error - self.error, 0.0, 1.0)
        error_error = np.hypot(found.error_error, self.error_spread)
        for old, new in ((found.loss, loss), (found.error, error)):
            new[coarse] = old[coarse]
        for new in (loss_error, error_error):
            new[coarse] = 0.0
        diverged = ~np.isfinite(found.loss)
        loss[diverged], loss_error[diverged] = found.loss[diverged], found.loss_error[diverged]
        return Estimate(loss, loss_error, error, error_error, terms)


def measured_change(known: KnownPairs, draw: Draw) -> Change:
    """The change at the coarse points of which the losses with the sample's statistics are known."""
    loss, error = [], []
    means = {p: float(c.loss.mean(dtype=np.float64)) for p, c in known.coarse.items() if np.isfinite(c.loss).all()}
    floor = NEGLIGIBLE * (max(means.values()) - min(means.values())) if means else 0.0
    for point, column in known.trials.items():
        if point not in means or not np.isfinite(column.loss).all():
            continue
        exact = known.coarse[point].chosen(draw.samples)
        difference = (column.loss.astype(np.float64) - exact.loss) / draw.probabilities
        loss.append(difference.sum() / known.size / max(abs(means[point]), floor, 1e-300))
        if column.wrong is not None and exact.wrong is not None:
            misses = (column.wrong.astype(np.float64) - exact.wrong) / draw.probabilities
            error.append(misses.sum() / known.size)
    return Change(*_mean_and_spread(loss), *_mean_and_spread(error))


def _mean_and_spread(values: list[float]) -> tuple[float, float]:
    """The mean, and the standard deviation of a further value from it."""
    if len(values) < 2:
        return 0.0, 0.0 if not values else float("inf")
    return float(np.mean(values)), float(np.std(values, ddof=1) * np.sqrt(1 + 1 / len(values)))
