"""Loss along a path: equal to a plain loop, and the numbers that sum it up."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from valleyscope.landscape.analysis.profiles import Profile, along, barrier, line
from valleyscope.landscape.analysis.verdict import VerdictKind, verdict
from valleyscope.landscape.evaluation.accumulators import Values
from valleyscope.landscape.evaluation.evaluator import Evaluator
from valleyscope.landscape.geometry.curves import Bezier
from valleyscope.landscape.geometry.vectors import dimension


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def data(count: int = 50) -> dict[str, tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return {
        split: (torch.randn(count, 4, generator=generator), torch.randint(3, (count,), generator=generator))
        for split in ("train", "test")
    }


def control_points(count: int) -> Tensor:
    return torch.randn(count, dimension(network()), generator=torch.Generator().manual_seed(count))


def test_profile_equals_a_plain_loop_over_points() -> None:
    model, curve, splits = network(), Bezier(control_points(3)), data()
    profile = along(model, curve, splits, points=7, samples=True)
    assert list(profile) == ["train", "test"]
    np.testing.assert_allclose(profile.t, np.linspace(0, 1, 7))
    for index, t in enumerate(profile.t):
        vector_to_parameters(curve.point(t), model.parameters())
        for split, (x, y) in splits.items():
            with torch.no_grad():
                logits = model(x)
            losses = F.cross_entropy(logits.double(), y, reduction="none").numpy()
            assert profile[split].loss[index] == pytest.approx(losses.mean(), rel=1e-5)
            assert profile[split].error[index] == pytest.approx(float((logits.argmax(1) != y).double().mean()))
            kept = profile[split].samples
            assert kept is not None
            np.testing.assert_allclose(kept[index], losses, rtol=1e-4, atol=1e-5)
            wrong = profile[split].wrong
            assert wrong is not None
            np.testing.assert_array_equal(wrong[index], (logits.argmax(1) != y).numpy())


def test_profile_has_sixty_one_points_both_ends_and_the_arc_length() -> None:
    curve = Bezier(control_points(3))
    profile = along(network(), curve, data()["train"])
    assert list(profile) == ["train"]
    assert profile["train"].loss.shape == profile["train"].error.shape == profile.arc.shape == (61,)
    assert profile["train"].samples is None
    assert (profile.t[0], profile.t[-1]) == (0.0, 1.0)
    assert profile.arc[0] == 0
    assert profile.arc[-1] == pytest.approx(curve.length())
    assert profile.kind == "bezier"


def test_line_and_reversed_line_have_mirrored_profiles() -> None:
    start, end = control_points(2)
    forth = along(network(), line(start, end), data(), points=9)
    back = along(network(), line(end, start), data(), points=9)
    np.testing.assert_allclose(forth["test"].loss, back["test"].loss[::-1], rtol=1e-5)
    assert forth.kind == "line"


def test_an_evaluator_that_holds_the_data_serves_several_paths() -> None:
    model = network()
    evaluator = Evaluator(model, data())
    path = line(*control_points(2))
    served = along(model, path, evaluator=evaluator, points=5)
    np.testing.assert_array_equal(served["train"].loss, along(model, path, data(), points=5)["train"].loss)


def planted(loss: list[float], arc: list[float]) -> Profile:
    values = np.array(loss)
    return Profile("bezier", np.linspace(0, 1, len(loss)), np.array(arc), {"train": Values(values, values / 10)})


def test_summary_has_the_numbers_of_a_planted_profile() -> None:
    """On a path whose first half of t covers nine tenths of the way, the arc-length mean weighs the first half so."""
    summary = planted([1.0, 1.0, 3.0], [0.0, 9.0, 10.0]).summary("train")
    assert (summary.loss.min, summary.loss.max) == (1.0, 3.0)
    assert summary.loss.mean == pytest.approx(5 / 3)
    assert summary.loss.integral == pytest.approx((9 * 1 + 1 * 2) / 10)
    assert summary.error.integral == pytest.approx(0.11)
    assert summary.barrier == 0.0
    assert planted([1.0, 2.5, 2.0], [0.0, 1.0, 2.0]).summary().barrier == barrier([1.0, 2.5, 2.0]) == 0.5


def test_arc_length_mean_of_an_even_path_is_the_integral_over_t() -> None:
    t = np.linspace(0, 1, 2001)
    summary = planted(list(np.exp(t)), list(5 * t)).summary()
    assert summary.loss.integral == pytest.approx(math.e - 1, rel=1e-6)


def test_summary_of_a_path_without_length_or_with_overflow_is_no_nan() -> None:
    assert planted([2.0, 2.0, 2.0], [0.0, 0.0, 0.0]).summary().loss.integral == 2.0
    blown = planted([1.0, math.inf, 1.0], [0.0, 1.0, 2.0]).summary()
    assert blown.loss.integral == math.inf
    assert blown.barrier == math.inf


def test_the_rise_of_the_test_error_has_an_interval_over_samples() -> None:
    start, end = control_points(2)
    found = verdict(along(network(), line(start, end), data(200), points=5, samples=True)).test_error_verdict
    assert found is not None
    assert found.line.rise is not None
    low, high = found.line.rise.low, found.line.rise.high
    assert low is not None
    assert high is not None
    assert low <= found.line.rise.value <= high
    assert low < high


def test_verdict_reads_a_profile() -> None:
    model, (start, end) = network(), control_points(2)
    path = line(start, start + 1e-4 * end)
    assert verdict(along(model, path, data(), points=5, samples=True)).kind is VerdictKind.UNDECIDED, "labels at random"
    vector_to_parameters(start.clone(), model.parameters())
    learnt = {split: (x, model(x).argmax(1)) for split, (x, _) in data().items()}
    found = verdict(along(model, path, learnt, points=5, samples=True))
    assert found.kind is VerdictKind.LEVEL_VALLEY
    assert found.line.high is not None
    assert set(found.test_error) == {"line"}


def test_bad_inputs_are_named() -> None:
    model, path = network(), line(*control_points(2))
    with pytest.raises(ValueError, match="points is 2"):
        along(model, path, data(), points=2)
    with pytest.raises(ValueError, match="points of 3 weights, but Sequential has 51"):
        along(model, line(torch.zeros(3), torch.ones(3)), data())
    with pytest.raises(ValueError, match="data is missing"):
        along(model, path)
    with pytest.raises(KeyError, match="no split 'validation'"):
        _ = along(model, path, data(), points=3)["validation"]


def test_a_path_that_is_turned_round_is_the_path_from_its_end() -> None:
    model, ends, splits = network(), control_points(2), data()
    there, back = (along(model, line(*pair), splits, points=5, samples=True) for pair in (ends, ends.flip(0)))
    turned = there.reversed()
    np.testing.assert_allclose(turned.arc, back.arc, rtol=1e-6)
    np.testing.assert_allclose(turned.t, back.t)
    np.testing.assert_allclose(turned["test"].loss, back["test"].loss, rtol=1e-5)
    assert turned["train"].guessing == back["train"].guessing == pytest.approx(math.log(3), rel=0.05)
    assert turned["train"].samples is not None
    np.testing.assert_array_equal(turned["train"].samples[::-1], there["train"].samples)
