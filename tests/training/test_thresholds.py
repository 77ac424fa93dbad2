"""The thresholds of AltSDP, their sums, and the way back from a target to c."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from valleyscope.training.schedules import Constant, Halving, Milestones, Piecewise, step_rates
from valleyscope.training.settings import Training, steps_an_epoch
from valleyscope.training.thresholds import MODES, accumulated_threshold, c_for_target, dual_increment, threshold

RATES = [0.1] * 30 + [0.05] * 30 + [0.01] * 30


def test_g_is_the_papers_formula() -> None:
    assert threshold(7, 0.04, 3e-4, 0.6) == pytest.approx(3e-4 * math.sqrt(0.04) * (7 * 0.04) ** 0.6, rel=1e-15)


@pytest.mark.parametrize("mu", [0.0, 0.4, 0.51, 1.0])
def test_dual_increments_at_constant_rate_sum_to_g(mu: float) -> None:
    total = sum(dual_increment(n, 0.1, 2e-3, mu) for n in range(1, 501))
    assert total == pytest.approx(threshold(500, 0.1, 2e-3, mu), rel=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("mode", MODES)
def test_the_accumulated_threshold_is_the_sum_over_steps(mode: str, momentum: float) -> None:
    each = dual_increment if mode == "dual" else threshold
    direct = sum(each(n, rate / (1 - momentum), 1e-4, 0.51) for n, rate in enumerate(RATES, 1))
    found = accumulated_threshold(RATES, 1e-4, 0.51, mode=mode, momentum=momentum)  # type: ignore[arg-type]
    assert found == pytest.approx(direct, rel=1e-12)


@given(
    target=some.floats(1e-6, 100),
    mu=some.floats(0, 1.5),
    mode=some.sampled_from(MODES),
    momentum=some.floats(0, 0.95),
)
def test_c_for_a_target_reaches_it(target: float, mu: float, mode: str, momentum: float) -> None:
    c = c_for_target(target, RATES, mu, mode=mode, momentum=momentum)  # type: ignore[arg-type]
    reached = accumulated_threshold(RATES, c, mu, mode=mode, momentum=momentum)  # type: ignore[arg-type]
    assert reached == pytest.approx(target, rel=1e-9)


def test_the_papers_c_on_digits_reaches_its_g() -> None:
    rates = step_rates(Halving(every=30), 0.1, 120, 44)
    assert accumulated_threshold(rates, 1.68e-4, 0.51) == pytest.approx(1.6, rel=0.01)


@pytest.mark.parametrize("target", [-1.0, math.nan, math.inf])
def test_a_target_that_is_no_threshold_is_refused(target: float) -> None:
    with pytest.raises(ValueError, match="target="):
        c_for_target(target, RATES, 0.5)


def test_schedules_follow_the_papers_settings() -> None:
    halving, milestones = Halving(every=30), Milestones(at=(60, 160), factors=(0.2, 0.2))
    assert [halving.factor(epoch, 200) for epoch in (0, 29, 30, 60, 199)] == [1, 1, 0.5, 0.25, 0.5**6]
    assert [milestones.factor(epoch, 260) for epoch in (59, 60, 159)] == [1, 0.2, 0.2]
    assert milestones.factor(160, 260) == pytest.approx(0.04)
    assert Constant().factor(5, 10) == 1


def test_the_connectivity_schedule_holds_falls_and_holds() -> None:
    schedule = Piecewise()
    assert [schedule.factor(epoch, 100) for epoch in (0, 50)] == [1, 1]
    assert schedule.factor(70, 100) == pytest.approx(0.505)
    assert schedule.factor(90, 100) == pytest.approx(0.01)
    assert schedule.factor(99, 100) == 0.01
    factors = [schedule.factor(epoch, 100) for epoch in range(100)]
    assert all(b <= a for a, b in pairwise(factors))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"at": (60, 160), "factors": (0.2,)}, "one factor each"),
        ({"at": (160, 60), "factors": (0.2, 0.2)}, "ascending"),
        ({"at": (60,), "factors": (-0.2,)}, "above 0"),
    ],
)
def test_milestones_that_make_no_sense_are_refused(fields: dict[str, tuple[float, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Milestones(**fields)  # type: ignore[arg-type]


def test_settings_know_the_g_that_they_reach() -> None:
    steps = steps_an_epoch(1437, 32)
    assert steps == 45
    settings = Training(optimizer="altsdp", target=1.6, epochs=120)
    assert settings.reach(steps) == pytest.approx(1.6)
    assert Training().scale(steps) == 0.0
    assert len(settings.rates(steps)) == 120 * 45
    np.testing.assert_allclose(np.unique(settings.rates(steps)), [0.0125, 0.025, 0.05, 0.1])
