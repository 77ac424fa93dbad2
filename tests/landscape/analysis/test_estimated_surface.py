"""surface(..., accuracy=...) beside the exact surface of the same network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from valleyscope.landscape import Evaluator, Plane, surface
from valleyscope.landscape.analysis.surfaces import Surface

Data = tuple[Tensor, Tensor]


def data_of(samples: int) -> Data:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 6, generator=generator)
    return x, (x[:, :3] + 0.5 * torch.randn(samples, 3, generator=generator)).argmax(1)


def network() -> nn.Module:
    return nn.Linear(6, 3)


def plane_of(model: nn.Module) -> Plane:
    size = sum(parameter.numel() for parameter in model.parameters())
    corners = torch.randn(3, size, generator=torch.Generator().manual_seed(1))
    return Plane.through(*(5 * corners))


def test_an_estimate_is_as_near_as_it_says_and_the_same_again() -> None:
    model, data = network(), data_of(4000)
    plane, evaluator = plane_of(model), Evaluator(model, data)
    exact = surface(model, plane, resolution=21, evaluator=evaluator)["train"]
    rounds: list[Surface] = []
    found, again = (
        surface(model, plane, resolution=21, evaluator=evaluator, accuracy=0.05, seed=3, on_round=rounds.append)
        for _ in range(2)
    )
    grid = found["train"]
    assert found.evaluated < 0.4
    assert np.sqrt(np.mean((grid.loss / exact.loss - 1) ** 2)) < 0.1
    assert np.abs(grid.error - exact.error).max() < 6 * grid["error_error"].max()
    for quantity in ("loss", "error", "loss_error", "error_error"):
        assert np.array_equal(grid[quantity], again["train"][quantity])
    first = rounds[0]["train"]
    assert np.isfinite(first.loss).sum() >= 81
    assert first["loss_error"][np.isfinite(first.loss)].min() > 0
    assert rounds[0].evaluated < rounds[1].evaluated <= found.evaluated


def test_a_loss_of_ones_own_is_estimated_from_itself() -> None:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return (model(batch[0]) - batch[0][:, :3]).square().sum(1)

    model, data = network(), data_of(3000)
    plane, evaluator = plane_of(model), Evaluator(model, data, loss=loss)
    exact = surface(model, plane, resolution=21, evaluator=evaluator)["train"]
    found = surface(model, plane, resolution=21, evaluator=evaluator, accuracy=0.05)
    assert found.evaluated < 0.4
    assert np.isnan(found["train"].error).all()
    assert np.sqrt(np.mean((found["train"].loss / exact.loss - 1) ** 2)) < 0.1


def test_few_samples_and_batch_norm_are_exact_and_said_to_be() -> None:
    model, data = network(), data_of(300)
    plane = plane_of(model)
    found = surface(model, plane, data, 9, accuracy=0.1)
    assert found.evaluated == 1.0
    assert "300 samples" in found.note
    assert np.array_equal(found["train"].loss, surface(model, plane, data, 9)["train"].loss)
    assert not found["train"]["loss_error"].any()
    normed = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
    assert "BatchNorm" in surface(normed, plane_of(normed), data_of(600), 3, accuracy=0.1).note
    evaluator = Evaluator(normed, data_of(600), batch_norm="running")
    assert "BatchNorm" in surface(normed, plane_of(normed), resolution=3, evaluator=evaluator, accuracy=0.1).note


def test_batch_norm_statistics_come_from_some_samples_and_their_error_is_counted() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3), nn.BatchNorm1d(3))
    plane, evaluator = plane_of(model), Evaluator(model, data_of(5000))
    exact = surface(model, plane, resolution=15, evaluator=evaluator)["train"]
    found = surface(model, plane, resolution=15, evaluator=evaluator, accuracy=0.1)
    grid = found["train"]
    assert found.evaluated < 0.6
    assert np.sqrt(np.mean((grid.loss / exact.loss - 1) ** 2)) < 0.14
    estimated = grid["loss_error"] > 0
    # Statistics are those of the same samples at all points, so deviations go together.
    assert np.sqrt(np.mean(((grid.loss - exact.loss)[estimated] / grid["loss_error"][estimated]) ** 2)) < 2.5
    assert np.allclose(grid.loss[~estimated], exact.loss[~estimated], rtol=1e-5)


def test_statistics_of_all_samples_are_those_without_a_choice() -> None:
    model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
    evaluator, basis = Evaluator(model, data_of(600)), plane_of(model).basis
    points = [(1.0, 0.5, -0.3), (1.0, 0.0, 0.0)]
    whole = evaluator.at(basis, points)["train"].loss
    assert np.array_equal(whole, evaluator.at(basis, points, statistics=np.arange(600))["train"].loss)
    x, y = data_of(600)
    half = Evaluator(model, {"train": (x[:300], y[:300]), "test": (x, y)}).at(basis, points)["test"].loss
    assert np.allclose(half, evaluator.at(basis, points, statistics=np.arange(300))["train"].loss, rtol=1e-5)
    with pytest.raises(ValueError, match="statistics"):
        Evaluator(network(), data_of(600)).at(plane_of(network()).basis, points, statistics=[0])


@pytest.mark.parametrize("accuracy", [0, -1, 1.5, float("nan"), True, "fine"])
def test_a_bad_accuracy_is_refused_before_any_work(accuracy: Any) -> None:
    model = network()
    with pytest.raises(ValueError, match="accuracy is"):
        surface(model, plane_of(model), data_of(10), 9, accuracy=accuracy)


def test_a_subset_has_the_losses_of_its_samples() -> None:
    model, data = network(), data_of(600)
    evaluator, basis = Evaluator(model, data), plane_of(model).basis
    chosen = [5, 599, 17]
    points = [(1.0, 0.5, -0.3), (1.0, 0.0, 0.0)]
    whole = evaluator.at(basis, points, samples=True)["train"].samples
    part = evaluator.at(basis, points, samples=True, subset={"train": chosen})["train"]
    assert whole is not None
    assert part.samples is not None
    assert np.allclose(part.samples, whole[:, chosen], rtol=1e-5)
    assert np.allclose(part.loss, part.samples.mean(1), rtol=1e-5)
    with pytest.raises(ValueError, match="0 to 599"):
        evaluator.at(basis, points, subset={"train": [600]})
