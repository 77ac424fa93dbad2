"""Estimated means: unbiased draws, left-out predictions, honest errors, exact where all is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from valleyscope.landscape.estimation.estimator import Estimator
from valleyscope.landscape.estimation.grid_levels import grid_levels
from valleyscope.landscape.estimation.known_pairs import Column, KnownPairs
from valleyscope.landscape.estimation.links import Link
from valleyscope.landscape.estimation.ranking import Ranking, total_and_variance
from valleyscope.landscape.estimation.regression import fit
from valleyscope.landscape.estimation.rounds import SplitRounds

MARGIN = Link("margin")


def planted_losses(samples: int, side: int, seed: int, noise: float) -> np.ndarray:
    """Losses (points, samples) of margins that are quadratic over the plane for every sample, with some noise."""
    random = np.random.default_rng(seed)
    place = np.linspace(-1, 1, side)
    x, y = np.meshgrid(place, place)
    shapes = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y]).reshape(6, -1)
    margins = random.normal(size=(samples, 6)) @ shapes + 3.0 - 4.0 * (shapes[3] + shapes[5])
    margins += noise * random.normal(size=margins.shape)
    return np.logaddexp(0, -margins).T.astype(np.float32)


def run(losses: np.ndarray, side: int, accuracy: float, seed: int = 0, link: Link = MARGIN) -> SplitRounds:
    lines = np.linspace(-1, 1, side)
    rounds = SplitRounds(losses.shape[1], lines, lines, accuracy, seed, link, (side * side // 2,))
    while requests := rounds.next():
        for request in requests:
            which = slice(None) if request.samples is None else request.samples
            rounds.add(request, [Column(losses[p][which], losses[p][which] > np.log(2)) for p in request.points])
    return rounds


def test_draws_are_nested_and_their_probabilities_add_up_to_the_size_asked_for() -> None:
    ranking = Ranking(np.random.default_rng(0).exponential(size=300) ** 2, seed=1)
    small, large = ranking.draw(40), ranking.draw(150)
    assert np.array_equal(large.samples[: len(small)], small.samples)
    whole = np.minimum(1.0, ranking._scale(40) * ranking.shares)
    assert whole.sum() == pytest.approx(40)
    assert np.array_equal(small.probabilities, whole[small.samples])
    assert np.array_equal(np.sort(ranking.draw(300).samples), np.arange(300))


def test_a_weighted_total_and_its_variance_are_unbiased() -> None:
    random = np.random.default_rng(2)
    sizes, values = random.exponential(size=60), random.normal(size=60) + 0.5
    found = []
    for seed in range(4000):
        draw = Ranking(sizes, seed).draw(15)
        found.append(total_and_variance(values[draw.samples], draw))
    totals, variances = np.array(found).T
    assert totals.mean() == pytest.approx(values.sum(), abs=4 * totals.std() / np.sqrt(len(totals)))
    assert variances.mean() == pytest.approx(totals.var(), rel=0.1)


def test_left_out_predictions_are_those_of_fits_without_the_sample() -> None:
    torch.manual_seed(0)
    features = torch.cat([torch.ones(30, 1), torch.randn(30, 3)], dim=1).double()
    targets, weights = torch.randn(30, 2).double(), torch.rand(30, 2).double() + 0.1
    whole = fit(features, targets, weights, ridge=0.0)
    for sample in (0, 7, 29):
        rest = [index for index in range(30) if index != sample]
        without = fit(features[rest], targets[rest], weights[rest], ridge=0.0)
        assert torch.allclose(features[sample] @ without.coefficients, whole.left_out[sample])


def test_interpolation_is_exact_for_cubics_between_uneven_lines() -> None:
    x = np.sort(np.random.default_rng(0).uniform(-1, 1, 21))
    y = np.linspace(-1, 2, 33)
    cubic = (1 + x[None] - 2 * x[None] ** 3) * (y[:, None] ** 3 - y[:, None] ** 2)
    levels = grid_levels(x, y)
    assert levels.last == 2
    for stencils in levels.stencils:
        assert np.allclose((cubic.ravel()[stencils.points] * stencils.weights).sum(1), cubic.ravel())


def test_an_estimate_from_all_samples_is_exact() -> None:
    losses = planted_losses(200, 13, 0, noise=0.5)
    lines = np.linspace(-1, 1, 13)
    known, levels = KnownPairs(200), grid_levels(lines, lines)
    ranking = Ranking(np.arange(1.0, 201.0), seed=0)
    for point, column in enumerate(losses):
        known.ranked[point] = Column(column[ranking.order], column[ranking.order] > np.log(2))
    for point in (0, 84, 168):
        known.coarse[point] = Column(losses[point], losses[point] > np.log(2))
    counts = (200,) * (levels.last + 1)
    found = Estimator(known, ranking, levels, levels.level == 0, counts, MARGIN).estimate()
    assert np.allclose(found.loss, losses.mean(1), rtol=1e-5)
    assert np.allclose(found.error, (losses > np.log(2)).mean(1))
    assert found.loss_error.max() == found.error_error.max() == 0


@given(seed=st.integers(0, 10_000), noise=st.sampled_from([0.0, 0.3, 3.0]), accuracy=st.sampled_from([0.03, 0.1]))
@settings(max_examples=3, deadline=None)
def test_errors_never_claim_more_than_they_reach(seed: int, noise: float, accuracy: float) -> None:
    losses = planted_losses(2000, 21, seed, noise)
    rounds = run(losses, 21, accuracy, seed)
    if rounds.exact:
        return
    found, truth = rounds.estimate(), losses.mean(1, dtype=np.float64)
    deviation = found.loss - truth
    assert np.sqrt(np.mean((deviation / truth) ** 2)) < 2 * accuracy
    estimated = found.loss_error > 0
    assert np.allclose(deviation[~estimated], 0, atol=1e-6)
    # Points share their samples, so their deviations go together, and hundreds of them count as a few.
    assert np.sqrt(np.mean((deviation[estimated] / found.loss_error[estimated]) ** 2)) < 2.5


def test_estimates_become_exact_as_the_accuracy_goes_to_zero() -> None:
    losses = planted_losses(2000, 25, 0, noise=0.3)
    shares = [1.0 if (found := run(losses, 25, accuracy)).exact else found.evaluated for accuracy in (0.3, 0.1, 1e-6)]
    assert shares[0] <= shares[1] < shares[2] == 1


def test_a_diverged_point_stays_diverged_and_harms_no_other() -> None:
    losses = planted_losses(3000, 21, 0, noise=0.1)
    losses[:30, 100:200] = np.inf
    rounds = run(losses, 21, 0.1)
    assert not rounds.exact
    found, truth = rounds.estimate(), losses.mean(1, dtype=np.float64)
    assert np.array_equal(np.isinf(found.loss), np.isinf(truth))
    assert np.isfinite(found.loss_error).all()
    assert np.isfinite(found.error).all()
    finite = np.isfinite(truth)
    assert np.abs(found.loss[finite] / truth[finite] - 1).max() < 0.5


def test_losses_of_any_kind_are_estimated() -> None:
    random = np.random.default_rng(0)
    place = np.linspace(-1, 1, 21)
    bowl = (place[None] ** 2 + place[:, None] ** 2).ravel() + 0.2
    losses = (bowl[:, None] * random.exponential(size=3000) + 0.01 * random.normal(size=(441, 3000))).astype(np.float32)
    rounds = run(losses, 21, 0.03, link=Link("identity"))
    assert rounds.evaluated < 0.3
    assert np.sqrt(np.mean((rounds.estimate().loss / losses.mean(1) - 1) ** 2)) < 0.06


def test_the_first_picture_is_whole_and_has_errors() -> None:
    losses = planted_losses(3000, 41, 0, noise=0.1)
    lines = np.linspace(-1, 1, 41)
    rounds = SplitRounds(3000, lines, lines, 0.01, 0, MARGIN)
    (request,) = rounds.next()
    assert request.samples is not None
    rounds.add(request, [Column(losses[point][request.samples], None) for point in request.points])
    found = rounds.estimate()
    drawn = np.isfinite(found.loss).reshape(41, 41)
    assert drawn[::5, ::5].all()
    assert drawn.sum() == 81
    truth = losses.mean(1)[drawn.ravel()]
    assert (np.abs(found.loss[drawn.ravel()] - truth) < 5 * found.loss_error[drawn.ravel()]).all()


@pytest.mark.drill
def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    losses = planted_losses(6000, 41, 3, noise=0.3)
    truth = losses.mean(1, dtype=np.float64)
    covered = []
    for seed in range(20):
        found = run(losses, 41, 0.01, seed).estimate()
        estimated = found.loss_error > 0
        covered.append(np.abs(found.loss - truth)[estimated] < 1.96 * found.loss_error[estimated])
    assert 0.93 <= np.concatenate(covered).mean() <= 0.98
