"""Several points in one forward pass: the way of GPUs, on the processor, beside the plain float64 loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.landscape.reference import COEFFICIENTS, assert_equals_plain, basis_around, plain, samples
from valleyscope.landscape import Evaluator
from valleyscope.landscape.evaluation.evaluator import PointsAtOnce
from valleyscope.training.models import build_model


@pytest.mark.parametrize(
    ("name", "options", "shape", "at_once"),
    [
        ("cnn", {}, (1, 12, 12), "auto"),
        ("cnn", {}, (1, 12, 12), 2),
        ("lenet", {}, (1, 28, 28), 3),
        ("mlp", {}, (1, 8, 8), 2),
        ("vgg16", {"width": 4}, (3, 32, 32), 2),
    ],
)
def test_points_in_batches_equal_the_plain_loop(
    name: str, options: dict[str, object], shape: tuple[int, ...], at_once: PointsAtOnce
) -> None:
    model = build_model(name, input_shape=shape, seed=0, **options)
    data = {"train": samples(shape, 30), "test": samples(shape, 11, seed=1)}
    basis = basis_around(model)
    evaluator = Evaluator(model, data, block=8, points_at_once=at_once)
    assert_equals_plain(evaluator.at(basis, COEFFICIENTS), plain(model, basis, data))


def test_stored_batch_norm_statistics_and_frozen_parameters_are_the_same_at_every_point() -> None:
    model = build_model("resnet56", depth=8, width=4, input_shape=(3, 8, 8), seed=0)
    model(samples((3, 8, 8), 40)[0])  # statistics that are not those of the start
    data = {"train": samples((3, 8, 8), 30)}
    for parameters in (None, "*conv*"):
        one, three = (
            Evaluator(model, data, batch_norm="frozen", parameters=parameters, points_at_once=count) for count in (1, 3)
        )
        origin = torch.cat([parameter.detach().reshape(-1) for parameter in one._flat.parameters])
        basis = torch.stack([origin, 0.1 * torch.randn(len(origin), generator=torch.Generator().manual_seed(0))])
        points = [(1.0, step) for step in np.linspace(0, 1, 4)]
        assert np.allclose(one.at(basis, points)["train"].loss, three.at(basis, points)["train"].loss, rtol=1e-5)


def test_a_point_has_the_same_bits_whichever_points_it_is_computed_with() -> None:
    model = build_model("cnn", input_shape=(1, 12, 12), seed=0)
    evaluator = Evaluator(model, {"train": samples((1, 12, 12), 30)}, points_at_once=4)
    basis = basis_around(model)
    points = np.random.default_rng(0).normal(size=(10, 3))
    points[:, 0] = 1.0
    whole = evaluator.at(basis, points)["train"].loss
    assert np.array_equal(whole[7:], evaluator.at(basis, points[7:])["train"].loss)
    assert np.array_equal(whole[::-1], evaluator.at(basis, points[::-1])["train"].loss)


def test_a_loss_of_any_outputs_and_single_samples_are_batched_too() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    x = torch.randn(20, 4)
    data, basis = {"train": (x, x[:, :2])}, basis_around(model)
    one, many = (
        Evaluator(model, data, loss="mse", points_at_once=count).at(
            basis, COEFFICIENTS, samples=True, subset={"train": [3, 1, 7]}
        )["train"]
        for count in (1, 2)
    )
    assert one.samples is not None
    assert many.samples is not None
    assert np.allclose(one.samples, many.samples, rtol=1e-4)


def test_the_ways_tried_are_recorded_and_the_fastest_is_taken() -> None:
    model = build_model("mlp", input_shape=(1, 4, 4), seed=0)
    data = {"train": samples((1, 4, 4), 30)}
    assert Evaluator(model, data).calibration is None
    calibration = Evaluator(model, data, points_at_once="auto").calibration
    assert calibration is not None
    assert [trial.batching and trial.batching.points for trial in calibration.trials] == [None, 16, 4, 64]
    times = [trial.microseconds for trial in calibration.trials if trial.microseconds is not None]
    assert calibration.best.microseconds == min(times) > 0
    assert len([line for line in calibration.lines() if line.startswith("*")]) == 1


class Undecided(nn.Module):
    """Does something else for large outputs, which no batch of points can."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layer(x)
        return y if float(y.sum()) > 0 else 2 * y


def test_a_network_that_cannot_run_several_points_runs_them_one_by_one_or_says_so() -> None:
    model, data = Undecided(), {"train": samples((4,), 30, classes=3)}
    evaluator, basis = Evaluator(model, data, points_at_once="auto"), basis_around(model)
    assert evaluator.calibration is not None
    assert evaluator.calibration.best.batching is None
    assert all(trial.problem for trial in evaluator.calibration.trials[1:])
    plainly = Evaluator(model, data).at(basis, COEFFICIENTS)["train"].loss
    assert np.array_equal(evaluator.at(basis, COEFFICIENTS)["train"].loss, plainly)
    with pytest.raises(ValueError, match="points_at_once is 4"):
        Evaluator(model, data, points_at_once=4)
    with pytest.raises(ValueError, match="points_at_once is 0"):
        Evaluator(model, data, points_at_once=0)
