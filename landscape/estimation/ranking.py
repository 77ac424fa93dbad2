"""Samples drawn with unequal probabilities: Poisson sampling in one order that serves every sample size.

A draw of expected size n has sample i with probability p_i(n) = min(1, c(n) q_i), independently of all others; q_i are
shares and c(n) is such that the p_i(n) add up to n. With one random number u_i for each, sample i is drawn as soon as
c(n) > u_i / q_i. So larger draws contain the smaller ones, and work already done is never lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Draw:
    """Samples that were drawn, in the order of their ranks, and the probability with which each one was."""

    samples: NDArray[np.intp]
    probabilities: Floats

    def __len__(self) -> int:
        return len(self.samples)

    def first(self, other: Draw) -> slice:
        """The places of a smaller draw of the same ranking in this one."""
        return slice(0, len(other))


class Ranking:
    """The order in which samples are drawn: proportional to ``sizes``, seeded."""

    def __init__(self, sizes: ArrayLike, seed: int) -> None:
        given = np.asarray(sizes, dtype=np.float64)
        self.shares = given / given.sum()
        uniform = np.random.default_rng(seed).random(len(given))
        self._entry = uniform / self.shares
        self.order = np.argsort(self._entry, kind="stable")

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def _falling(self) -> Floats:
        return np.sort(self.shares)[::-1]

    def draw(self, count: float) -> Draw:
        """A sample of this expected size; all samples, each with probability 1, from the number of samples on."""
        if count >= len(self):
            return Draw(self.order, np.ones(len(self)))
        scale = self._scale(count)
        number = int(np.searchsorted(self._entry[self.order], scale, side="left"))
        drawn = self.order[:number]
        return Draw(drawn, np.minimum(1.0, scale * self.shares[drawn]))

    def _scale(self, count: float) -> float:
        """The factor c for which min(1, c q) adds up to the count."""
        rest = 1.0 - np.concatenate([[0.0], np.cumsum(self._falling)])[:-1]
        certain = np.arange(len(self))
        # With the largest `certain` shares at probability 1 the others share the rest of the count.
        with np.errstate(divide="ignore", invalid="ignore"):
            scales = (count - certain) / rest
        fits = scales * self._falling <= 1.0
        return float(scales[int(np.argmax(fits))])


def total_and_variance(values: Floats, draw: Draw) -> tuple[Floats, Floats]:
    """The unbiased estimate of a total over all samples from values of those drawn (last axis), and its variance."""
    weighted = values / draw.probabilities
    return weighted.sum(axis=-1), ((1.0 - draw.probabilities) * weighted**2).sum(axis=-1)
