"""Which pairs to compute next, round by round, until the mean at every point is as accurate as asked for.

    pilot     a few hundred samples, all equally likely, on a coarse picture: from it the coarse points are chosen
    coarse    all samples at the coarse points; from what each one leaves unexplained follow the sizes of the draw
    samples   the first samples of the ranking at the points of each level
    again     more samples, more coarse points, and points whose interpolation fails, until all errors are small enough

A plan that would compute more than `_WORTH` of all pairs ends in computing all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from valleyscope.landscape.estimation.allocation import allocate
from valleyscope.landscape.estimation.coarse_points import first_points, further_points
from valleyscope.landscape.estimation.estimator import Estimate, Estimator
from valleyscope.landscape.estimation.grid_levels import first_picture, grid_levels
from valleyscope.landscape.estimation.known_pairs import Column, KnownPairs, Request
from valleyscope.landscape.estimation.links import Link
from valleyscope.landscape.estimation.ranking import Ranking
from valleyscope.landscape.estimation.sample_sizes import NEGLIGIBLE, leave_one_point_out
from valleyscope.landscape.estimation.statistics_sample import FEWEST_STATISTICS, FIRST, Change, measured_change

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

FEWEST_SAMPLES = 500
"""With fewer samples all pairs are computed."""
_PILOT = 512
_MOST_COARSE = 40
_FEWEST_COARSE = 6
_LEVEL_SHARES = (1.0, 0.3, 0.1)
_LEAST_DRAW = 200
_WORTH = 0.6
MOST_ROUNDS = 10
_FASTEST = 6.0
"""Draws grow at most by this factor in a round: variances from small draws are rough."""
_MOST_COARSE_LATER = 60
_MOST_FURTHER = 8
_MOST_STUBBORN = 4
_SAMPLES_A_COARSE_POINT = 10
_SELECTION_SAMPLES = 400
_SELECTION_POINTS = 60
_LARGEST = 2.0
"""The error of a single point may be larger than that of all by this factor."""
_MOST_STATISTICS = 0.95
"""The part of the accuracy that statistics of some samples may take."""
_UNKNOWN = 0.05
"""The errors that they are taken to make before it is known."""
_GAIN = 0.5
"""A guess of the variance of a draw by sizes as a share of that of a uniform draw."""


@dataclass
class SplitRounds:
    """The rounds of one split of ``size`` samples on the grid of lines x and y. ``required`` points become coarse.

    ``statistics`` samples of the same or another split give BatchNorm statistics at every point, exact ones from all of
    them at the coarse points, else from some; None without.
    """

    size: int
    x: Floats
    y: Floats
    accuracy: float
    seed: int
    link: Link
    required: tuple[int, ...] = ()
    statistics: int | None = None
    known: KnownPairs = field(init=False)
    exact: bool = field(init=False, default=False)
    """Whether all pairs are to be computed."""

    def __post_init__(self) -> None:
        self.known = KnownPairs(self.size)
        self.levels = grid_levels(self.x, self.y)
        self.points = len(self.x) * len(self.y)
        self.direct = self.levels.level == 0 if self.levels.last else np.ones(self.points, dtype=bool)
        self._pilot = Ranking(np.ones(self.size), self.seed).draw(_PILOT)
        self._picture = np.union1d(first_picture(len(self.y), len(self.x)), np.array(self.required, dtype=np.intp))
        self._pilot_columns: dict[int, Column] = {}
        self._ranking: Ranking | None = None
        self._counts: tuple[int, ...] = ()
        self._expected = 0.0
        self._statistics_order = Ranking(np.ones(self.statistics or 1), self.seed + 2).order
        self._statistics_count = min(FIRST, self.statistics or 0)
        self._trial_count = 0
        self._last: Estimate | None = None
        self.round = 0
        self.exact = self.size < FEWEST_SAMPLES or self.points <= 2 * len(self._picture)
        self.exact |= self.statistics is not None and self.statistics < FEWEST_STATISTICS

    # ---- what comes in

    def add(self, request: Request, columns: list[Column]) -> None:
        """Take in what was computed for a request, a column for each of its points."""
        self._last = None
        self.known.computed += request.pairs(self.size)
        for point, column in zip(request.points.tolist(), columns, strict=True):
            if request.kind == "pilot":
                self._pilot_columns[point] = column
            elif request.samples is None:
                self.known.coarse[point] = column
            elif request.kind == "statistics":
                self.known.trials[point] = column
            else:
                before = self.known.ranked.get(point)
                self.known.ranked[point] = column if before is None else before.extended(column)

    # ---- what goes out

    def next(self) -> list[Request]:
        """The pairs to compute in the next round; none when the estimate is good enough or `exact`."""
        if self.exact:
            return []
        self.round += 1
        if self.round == 1:
            return [self._request(self._picture, np.sort(self._pilot.samples), "pilot")]
        if self.round == 2:
            return self._judged(self._choose_coarse())
        if self.round == 3:
            self._begin_draws()
            return self._judged(self._missing() if self.statistics is None else self._trial())
        if not self.known.ranked:
            return self._judged(self._choose_statistics() + self._missing())
        if self._change.loss_spread > _MOST_STATISTICS * self.accuracy:
            self.exact = True
            return []
        if self.good_enough():
            return []
        if self.round > MOST_ROUNDS:
            self.exact = True
            return []
        return self._judged(self._refine())

    def state(self) -> dict[str, Any]:
        """What was decided for the present round, as plain values, for ``resume``."""
        promoted = np.flatnonzero(self.direct & (self.levels.level > 0))
        return {
            "round": self.round,
            "exact": self.exact,
            "counts": list(self._counts),
            "promoted": promoted.tolist(),
            "expected": self._expected,
            "statistics": [self._statistics_count, self._trial_count],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue with a round that was decided elsewhere, or for another accuracy, instead of calling ``next``."""
        self.round, self.exact = state["round"], state["exact"]
        self._counts, self._expected = tuple(state["counts"]), state["expected"]
        self.direct[state["promoted"]] = True
        self._statistics_count, self._trial_count = state.get("statistics", (0, 0))
        if self.round >= 3 and self._ranking is None:
            self._ranking = self._rank()[0]

    def _judged(self, requests: list[Request]) -> list[Request]:
        """The requests, unless computing all would hardly be more work."""
        planned = self.known.computed + sum(request.pairs(self.size) for request in requests)
        if planned > _WORTH * self._whole * self.points:
            self.exact = True
            return []
        return requests

    def _request(self, points: Indices, samples: Indices | None, kind: str) -> Request:
        """A request with its BatchNorm statistics: at coarse points exact."""
        if self.statistics is None:
            return Request(points, samples, kind)
        count = self.statistics if samples is None else self._statistics_count
        return Request(points, samples, kind, np.sort(self._statistics_order[:count]))

    @property
    def _whole(self) -> int:
        """Samples that an exact point takes."""
        return self._request(np.zeros(1, dtype=np.intp), None, "coarse").pairs(self.size)

    # ---- BatchNorm statistics

    @property
    def _change(self) -> Change:
        if not self.known.trials or self._ranking is None:
            return Change()
        return measured_change(self.known, self._ranking.draw(self._trial_count))

    def _trial(self) -> list[Request]:
        """The samples drawn at the coarse points once more, with statistics of some samples."""
        assert self._ranking is not None
        self._trial_count = self._counts[0]
        drawn = self._ranking.draw(self._trial_count).samples
        return [self._request(np.array(sorted(self.known.coarse), dtype=np.intp), drawn, "statistics")]

    def _choose_statistics(self) -> list[Request]:
        """Take as many samples for statistics as the accuracy needs, by the last trial; another one with these."""
        needed = self._change.needed(self._statistics_count, self.accuracy)
        if self.statistics is None or needed <= self._statistics_count:
            return []
        self._statistics_count = min(needed, self.statistics)
        return self._trial()

    # ---- the estimate

    def estimate(self) -> Estimate:
        """Means and errors from what is known after a round; NaN at points of which nothing is known."""
        if self._last is None:
            if self._ranking is not None and self.known.ranked:
                estimator = Estimator(self.known, self._ranking, self.levels, self.direct, self._counts, self.link)
                self._last = estimator.estimate()
            else:
                self._last = self._first_estimate()
            if self.statistics is not None:
                change = self._change if self.known.trials else Change(loss_spread=_UNKNOWN, error_spread=_UNKNOWN)
                self._last = change.corrected(self._last, list(self.known.coarse))
        return self._last

    def _first_estimate(self) -> Estimate:
        found = Estimate.empty(self.points)
        for point, column in self._pilot_columns.items():
            pairs = ((found.loss, found.loss_error, column.loss), (found.error, found.error_error, column.wrong))
            for mean, error, values in pairs:
                if values is not None:
                    mean[point], error[point] = _mean_and_error(np.asarray(values, dtype=np.float64), self.size)
        for point, column in self.known.coarse.items():
            found.loss[point], found.loss_error[point] = column.loss.mean(dtype=np.float64), 0.0
            if column.wrong is not None:
                found.error[point], found.error_error[point] = column.wrong.mean(), 0.0
        return found

    @property
    def evaluated(self) -> float:
        return min(1.0, self.known.computed / (self._whole * self.points))

    def relative(self, estimate: Estimate) -> Floats:
        """The relative error of the loss at every point."""
        with np.errstate(invalid="ignore"):
            relative = estimate.loss_error * self._scale(estimate)
        found: Floats = np.nan_to_num(relative, nan=0.0, posinf=np.inf)
        return found

    def _scale(self, estimate: Estimate) -> Floats:
        """What makes an error of the loss relative at every point; 0 where the loss is infinite."""
        loss = np.where(np.isfinite(estimate.loss), np.abs(estimate.loss), np.nan)
        floor = NEGLIGIBLE * float(np.nanmax(loss) - np.nanmin(loss)) if np.isfinite(loss).any() else 0.0
        with np.errstate(divide="ignore"):
            scale: Floats = 1.0 / np.maximum(np.nan_to_num(loss, nan=np.inf), floor)
        return scale

    def good_enough(self) -> bool:
        if not self.known.ranked:
            return False
        found = self.relative(self.estimate())
        return bool(_rms(found) <= self.accuracy and found.max() <= _LARGEST * self.accuracy)

    # ---- coarse points

    def _choose_coarse(self) -> list[Request]:
        """Coarse points for the least work in all, judged by the pilot."""
        usable = [p for p in self._picture.tolist() if np.isfinite(self._pilot_columns[p].loss).all()]
        if not usable:
            self.exact = True
            return []
        losses = torch.from_numpy(np.stack([self._pilot_columns[p].loss for p in usable], axis=1)).double()
        mean = losses.abs().mean(0)
        scale = torch.maximum(mean, NEGLIGIBLE * (mean.max() - mean.min())).clamp_min(1e-300)
        drawn = sum(
            float((self.levels.level == level).sum()) * share
            for level, share in zip(range(self.levels.last + 1), _LEVEL_SHARES, strict=False)
        )

        def work(number: int, residual: float) -> float:
            needed = min(self.size, max(_LEAST_DRAW, _GAIN * residual / self.accuracy**2))
            return number * self._whole + needed * drawn

        required = [usable.index(point) for point in self.required if point in usable]
        chosen, self._expected = first_points(
            losses, scale, self.link, required=required, fewest=_FEWEST_COARSE, most=_MOST_COARSE, work=work
        )
        points = np.array([usable[place] for place in chosen], dtype=np.intp)
        return [self._request(points, None, "coarse")]

    # ---- samples

    @property
    def _for_samples(self) -> float:
        """What BatchNorm statistics leave of the accuracy."""
        return float(np.sqrt(max(self.accuracy**2 - self._change.loss_spread**2, (0.1 * self.accuracy) ** 2)))

    def _rank(self) -> tuple[Ranking, float]:
        """The sizes of the draw: how badly each sample is predicted at a coarse point from the other coarse points."""
        sizes, gain = leave_one_point_out(self.known, self.link)
        return Ranking(sizes, self.seed + 1), gain

    def _begin_draws(self) -> None:
        self._ranking, gain = self._rank()
        count = min(self.size, max(_LEAST_DRAW, gain * self._expected / self.accuracy**2))
        shares = _LEVEL_SHARES[: self.levels.last + 1]
        self._counts = tuple(int(max(_LEAST_DRAW * (0.5 if share < 1 else 1.0), count * share)) for share in shares)
        self._promote()

    def _promote(self) -> None:
        """Points whose interpolation uses a diverged point are computed for all of the first draw."""
        diverged = np.zeros(self.points, dtype=bool)
        diverged[list(self.known.diverged | self._diverged_pilot())] = True
        for stencils in self.levels.stencils:
            self.direct |= stencils.touched_by(diverged)

    def _diverged_pilot(self) -> set[int]:
        return {point for point, column in self._pilot_columns.items() if not np.isfinite(column.loss).all()}

    def _depths(self) -> Indices:
        """How many samples of the ranking each point needs."""
        assert self._ranking is not None
        lengths = np.array([len(self._ranking.draw(count)) for count in self._counts], dtype=np.intp)
        depths = lengths[self.levels.level]
        depths[self.direct] = lengths[0]
        depths[list(self.known.coarse)] = 0
        return depths

    def _missing(self) -> list[Request]:
        """What the draws need and is not known, points of equal need together."""
        assert self._ranking is not None
        depths = self._depths()
        have = np.array([self.known.depth(point) for point in range(self.points)])
        wanted: dict[tuple[int, int], list[int]] = {}
        for point in np.flatnonzero(depths > have):
            wanted.setdefault((int(have[point]), int(depths[point])), []).append(int(point))
        return [
            self._request(np.array(points, dtype=np.intp), self._ranking.order[start:stop], "samples")
            for (start, stop), points in sorted(wanted.items())
        ]

    def _refine(self) -> list[Request]:
        """What brings the errors to the accuracy with the least work: more samples, promoted points, coarse points."""
        estimate = self.estimate()
        self._promote()
        variances = self._relative_variances(estimate)
        levels = np.where(self.direct, 0, self.levels.level)
        levels[list(self.known.coarse)] = -1
        extra, ratio = self._more_coarse(estimate)
        variances[0] *= ratio
        variances[:, extra] = 0.0
        levels[extra] = -1
        allocation = allocate(variances, levels, np.array(self._counts), self._for_samples)
        most = np.minimum(_FASTEST * np.array(self._counts), self.size)
        self.direct[allocation.promoted] = True
        # Coarse points are chosen by the samples drawn, which must be many more than the points.
        fewest = _SAMPLES_A_COARSE_POINT * (len(self.known.coarse) + len(extra))
        counts = np.minimum(allocation.counts, most)
        counts[0] = min(self.size, max(counts[0], fewest))
        self._counts = tuple(int(each) for each in counts)
        bad = allocation.expected > 0.9 * _LARGEST * self._for_samples
        self.direct |= bad
        # What stays bad with all of the first draw is computed for all samples: it also helps its neighbours.
        stubborn = np.flatnonzero(bad & (levels == 0))
        most_stubborn = max(0, _MOST_STUBBORN * (self.round - 3) - len(extra))
        stubborn = stubborn[np.argsort(-allocation.expected[stubborn])][:most_stubborn]
        coarse = np.union1d(extra, stubborn).astype(np.intp)
        requests = [self._request(coarse, None, "coarse")] if len(coarse) else []
        for request in self._missing():
            kept = request.points[~np.isin(request.points, coarse)]
            if len(kept):
                requests.append(replace(request, points=kept))
        return requests

    def _relative_variances(self, estimate: Estimate) -> Floats:
        """The terms of the variance of the loss at every point, relative to its square."""
        scale = np.where(estimate.loss_error > 0, self._scale(estimate), 0.0)
        found: Floats = estimate.terms[: len(self._counts)] * np.nan_to_num(scale, posinf=0.0) ** 2
        return found

    def _more_coarse(self, estimate: Estimate) -> tuple[Indices, float]:
        """Further coarse points that are worth their work, and what they leave of the first term of the variances."""
        assert self._ranking is not None
        none = np.zeros(0, dtype=np.intp)
        room = _MOST_COARSE_LATER - len(self.known.coarse)
        relative = self.relative(estimate)
        draw = self._ranking.draw(self._counts[0])
        count = min(len(draw), _SELECTION_SAMPLES)
        diverged = self.known.diverged
        usable = [int(p) for p in np.argsort(-relative) if self.direct[p] and self.known.depth(int(p)) >= count]
        candidates = [p for p in usable if p not in diverged and p not in self.known.coarse][:_SELECTION_POINTS]
        old = [p for p in self.known.coarse if p not in diverged]
        if room <= 0 or len(candidates) < 4 or count < 2 * len(old):
            return none, 1.0
        rest = [p for p in usable if p not in diverged and p not in self.known.coarse]
        targets = np.array(rest[:: max(1, len(rest) // _SELECTION_POINTS)], dtype=np.intp)
        variances = self._relative_variances(estimate)
        levels = np.where(self.direct, 0, self.levels.level)
        levels[old] = -1

        def work(number: int, left: float) -> float:
            scaled = variances.copy()
            scaled[0] *= left
            return number * self._whole + allocate(scaled, levels, np.array(self._counts), self._for_samples).work

        def losses(points: list[int] | Indices) -> Floats:
            assert self._ranking is not None
            return self.known.losses(np.array(points, dtype=np.intp), self._ranking.order, count)

        chosen, left = further_points(
            losses(old),
            losses(candidates),
            losses(targets),
            np.maximum(np.abs(estimate.loss[targets]), 1e-300),
            draw.probabilities[:count],
            self.link,
            most=min(room, _MOST_FURTHER),
            work=work,
        )
        return np.array([candidates[place] for place in chosen], dtype=np.intp), left


def _mean_and_error(values: Floats, size: int) -> tuple[float, float]:
    mean = float(values.mean())
    if not math.isfinite(mean):
        return mean, 0.0
    return mean, float(values.std(ddof=1) / math.sqrt(len(values)) * math.sqrt(max(0.0, 1 - len(values) / size)))


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
