"""Means over all samples at every point of a grid, with standard errors, from the pairs that are known.

A chain of predictions leads from what is known of every sample to what is known of few:

    from the coarse points      l0   a regression of a sample's loss on its losses at the coarse points: all samples
    from the coarse grid        l1   interpolation between points of level 0: the first n0 samples of the ranking
    from the finer grid         l2   interpolation between points of level 1: the first n1
    the true losses             l    the first n2

and the mean is estimated by the telescoping sum  mean(l0) + mean(l1 - l0) + mean(l2 - l1) + mean(l - l2), each mean
over the samples it is known for, weighted by the inverse of the probability with which they were drawn. It is unbiased
whatever the predictions are; the better they are, the smaller its variance, which the same differences give. In the
regression each sample is predicted as if it had not taken part. A point of level 0 needs the first two terms only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.estimation.grid_levels import GridLevels
from valleyscope.landscape.estimation.known_pairs import KnownPairs
from valleyscope.landscape.estimation.links import Link
from valleyscope.landscape.estimation.ranking import Draw, Ranking
from valleyscope.landscape.estimation.regression import Fit, fit

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

_POINTS_AT_ONCE = 512
_SAMPLES_AT_ONCE = 4096
_LEAST_SLOPE = 1e-3
_LARGEST = 1e30
"""Infinite losses are replaced by it, so that errors at diverged points can be estimated."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean loss and error at points, their standard errors, and the variance of each term of the loss, (3, points)."""

    loss: Floats
    loss_error: Floats
    error: Floats
    error_error: Floats
    terms: Floats

    @classmethod
    def empty(cls, points: int) -> Estimate:
        loss, loss_error, error, error_error = (np.full(points, np.nan) for _ in range(4))
        return cls(loss, loss_error, error, error_error, np.zeros((3, points)))


@dataclass(frozen=True, eq=False)
class Features:
    """The links of every sample's losses at the coarse points, centred and scaled, behind a column of ones."""

    all_samples: Tensor

    @classmethod
    def of(cls, known: KnownPairs, link: Link, without: set[int]) -> Features:
        points = [point for point in known.coarse if point not in without]
        values = torch.stack([link.forward(torch.from_numpy(known.coarse[point].loss)) for point in points], dim=1)
        deviation, mean = torch.std_mean(values, dim=0)
        scaled = (values - mean) / deviation.clamp_min(1e-12)
        return cls(torch.cat([torch.ones(known.size, 1), scaled], dim=1))


class Estimator:
    """The estimates of one split from known pairs; ``counts`` are n0, n1, n2 as expected sizes of draws."""

    def __init__(
        self,
        known: KnownPairs,
        ranking: Ranking,
        levels: GridLevels,
        direct: Mask,
        counts: tuple[int, ...],
        link: Link,
    ) -> None:
        self._known = known
        self._ranking = ranking
        self._levels = levels
        self._direct = direct
        self._link = link
        self._draws = [ranking.draw(count) for count in counts]
        self._features = Features.of(known, link, known.diverged).all_samples
        self._cache: dict[tuple[int, int], tuple[Floats, Floats | None]] = {}

    def estimate(self) -> Estimate:
        """All points of the grid."""
        known, points = self._known, len(self._direct)
        found = Estimate.empty(points)
        rest = np.ones(points, dtype=bool)
        for point, column in known.coarse.items():
            found.loss[point] = column.loss.mean(dtype=np.float64)
            found.loss_error[point] = 0.0
            if column.wrong is not None:
                found.error[point], found.error_error[point] = column.wrong.mean(), 0.0
            rest[point] = False
        for start in range(0, points, _POINTS_AT_ONCE):
            chunk = np.flatnonzero(rest[start : start + _POINTS_AT_ONCE]) + start
            if len(chunk):
                self._estimate_chunk(chunk, found)
        for point in known.diverged:
            found.loss[point], found.loss_error[point] = np.inf, 0.0
        return found

    def _estimate_chunk(self, points: Indices, found: Estimate) -> None:
        link, size = self._link, self._known.size
        first, *_ = self._draws
        target, wrong = self._values(points, 0)
        fitted, features = self._fit(target, first)
        base, base_error = self._predict_all(fitted.coefficients)
        # A sample that was drawn is predicted as if it had not taken part, here as below.
        taking_part = features @ fitted.coefficients
        left_out = link.inverse(fitted.left_out).numpy()
        base = base + (left_out - link.inverse(taking_part).numpy()).sum(0)
        wrong_left_out = _is_wrong(fitted.left_out.numpy())
        base_error = base_error + (wrong_left_out - _is_wrong(taking_part.numpy())).sum(0)
        losses = link.inverse(target).numpy() - left_out
        terms = [(losses, None if wrong is None else wrong - wrong_left_out)]
        terms += [self._difference(points, level) for level in range(1, len(self._draws))]
        total, variance = self._sum(terms, 0)
        # The coarse points were chosen by the samples drawn, which makes these look better predicted than others.
        variance[0] *= 1.0 / max(0.5, 1.0 - features.shape[1] / len(features)) if len(first) < size else 1.0
        found.loss[points] = (base + total) / size
        if link.kind == "margin":
            found.loss[points] = np.maximum(found.loss[points], 0.0)
        found.loss_error[points] = np.sqrt(variance.sum(0)) / size
        found.terms[: len(variance), points] = variance / size**2
        if wrong is not None:
            total, variance = self._sum(terms, 1)
            found.error[points] = np.clip((base_error + total) / size, 0.0, 1.0)
            found.error_error[points] = np.sqrt(variance.sum(0)) / size

    def _fit(self, target: Tensor, draw: Draw) -> tuple[Fit, Tensor]:
        features = self._features[torch.from_numpy(draw.samples)].double()
        weights = torch.from_numpy(1.0 / draw.probabilities).unsqueeze(1)
        rough = fit(features, target, weights.expand_as(target))
        slope = self._link.slope(rough.left_out) + _LEAST_SLOPE
        if self._link.kind == "identity":
            return rough, features
        return fit(features, target, weights * slope**2), features

    def _predict_all(self, coefficients: Tensor) -> tuple[Floats, Floats]:
        coefficients = coefficients.float()
        total = torch.zeros(coefficients.shape[1], dtype=torch.float64)
        wrong = torch.zeros_like(total)
        for part in torch.split(self._features, _SAMPLES_AT_ONCE):
            values = part @ coefficients
            wrong += (values < 0).sum(0)
            total += self._link.inverse(values).sum(0, dtype=torch.float64)
        return total.numpy(), wrong.numpy()

    def _sum(self, terms: list[tuple[Floats, Floats | None]], which: int) -> tuple[Floats, Floats]:
        """The sum of the terms, and the variance of each; terms over nested samples count as uncorrelated."""
        total = np.zeros(terms[0][0].shape[1])
        variances = []
        for level, term in enumerate(terms):
            values = term[which]
            assert values is not None
            probability = self._draws[level].probabilities[:, None]
            weighted = values / probability
            total += weighted.sum(0)
            variances.append(((1.0 - probability) * weighted**2).sum(0))
        return total, np.stack(variances)

    def _difference(self, points: Indices, level: int) -> tuple[Floats, Floats | None]:
        """What the values known at a level differ by from those interpolated from the level below."""
        count = len(self._draws[level])
        below, wrong_below = self._values(points, level - 1, count)
        here, wrong = self._values(points, level, count)
        loss = self._link.inverse(here).numpy() - self._link.inverse(below).numpy()
        return loss, None if wrong is None or wrong_below is None else wrong - wrong_below

    def _values(self, points: Indices, level: int, count: int | None = None) -> tuple[Tensor, Floats | None]:
        """Links of losses, (samples, points): true ones up to this level, else interpolated from its grid."""
        count = len(self._draws[level]) if count is None else count
        order, known = self._ranking.order, self._known
        true = self._direct[points] | (self._levels.level[points] <= level)
        values = torch.empty(count, len(points), dtype=torch.float64)
        wrong: Floats | None = None
        if true.any():
            values[:, torch.from_numpy(true)] = self._linked(points[true], count)
        if not true.all():
            stencils = self._levels.stencils[level]
            used, places = np.unique(stencils.points[points[~true]], return_inverse=True)
            linked = self._linked(used, count)
            weights = torch.from_numpy(stencils.weights[points[~true]])
            mixed = torch.zeros(count, int((~true).sum()), dtype=torch.float64)
            for column, place in enumerate(torch.from_numpy(places.reshape(weights.shape)).T):
                mixed.addcmul_(linked[:, place], weights[:, column])
            values[:, torch.from_numpy(~true)] = mixed
        if next(iter(known.coarse.values())).wrong is not None:
            wrong = _is_wrong(values.numpy())
            if true.any():
                wrong[:, true] = known.wrong(points[true], order, count)
        return values, wrong

    def _linked(self, points: Indices, count: int) -> Tensor:
        losses = torch.from_numpy(self._known.losses(points, self._ranking.order, count))
        return self._link.forward(losses).clamp(-_LARGEST, _LARGEST)


def _is_wrong(links: Floats) -> Floats:
    """Whether a sample is wrong by its margin: its class has less than half of the probability."""
    return (links < 0).astype(np.float64)
