"""Sharpness: laws of the rise of the loss around a minimum."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from valleyscope.landscape.analysis.sharpness import DEFAULT_RADIUS, Sharpness, sharpness
from valleyscope.landscape.evaluation.evaluator import Evaluator
from valleyscope.landscape.geometry.random_directions import filter_normalised
from valleyscope.landscape.geometry.vectors import flatten


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8, bias=False), nn.ReLU(), nn.Linear(8, 3, bias=False))


def separable(count: int = 60) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 5, generator=torch.Generator().manual_seed(0))
    return x, x[:, :3].argmax(1)


def trained() -> nn.Sequential:
    model, (x, y) = network(), separable()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in range(200):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def test_rises_equal_a_plain_loop_over_directions_and_signs() -> None:
    model, (x, y) = trained(), separable()
    centre = flatten(model)
    found = sharpness(model, centre, (x, y), radius=0.3, directions=4, seed=7)
    generator = torch.Generator().manual_seed(7)
    probe = network()
    expected = []
    with torch.no_grad():
        lowest = F.cross_entropy(model(x).double(), y).item()
        for _ in range(4):
            direction = filter_normalised(model, centre, generator)
            for sign in (1, -1):
                vector_to_parameters(centre + sign * 0.3 * direction.float(), probe.parameters())
                expected.append(F.cross_entropy(probe(x).double(), y).item() - lowest)
    np.testing.assert_allclose(found.rises.ravel(), expected, rtol=1e-3, atol=1e-6)
    assert found.rise == pytest.approx(np.mean(expected), rel=1e-3)
    assert found.highest == pytest.approx(max(expected), rel=1e-3)


def test_rise_grows_with_the_radius() -> None:
    model = trained()
    rises = [sharpness(model, flatten(model), separable(), radius=radius).rise for radius in (0.1, 0.3, 0.9)]
    assert 0 < rises[0] < rises[1] < rises[2]


def test_rescaling_that_keeps_the_function_keeps_the_sharpness() -> None:
    """Ten times the first layer and a tenth of the second: the same function of a rectifier network."""
    model = trained()
    first, second = (parameter.detach() for parameter in model.parameters())
    rescaled = torch.cat([(10 * first).reshape(-1), (second / 10).reshape(-1)])
    assert sharpness(model, rescaled, separable(), seed=3).rise == pytest.approx(
        sharpness(model, flatten(model), separable(), seed=3).rise, rel=1e-3
    )


def test_larger_logits_at_the_same_error_are_sharper() -> None:
    """The logits of twice the last layer are twice as large: each relative step moves them twice as far."""
    model = network()
    x, y = separable()
    wrong = (x, (y + 1) % 3)
    first, second = (parameter.detach() for parameter in model.parameters())
    louder = torch.cat([first.reshape(-1), 4 * second.reshape(-1)])
    assert (
        sharpness(model, louder, wrong, directions=20).highest
        > sharpness(model, flatten(model), wrong, directions=20).highest
    )


def test_equal_seeds_give_equal_sharpness_and_an_evaluator_serves_too() -> None:
    model = trained()
    first = sharpness(model, model.state_dict(), separable(), directions=3, seed=1)
    assert np.array_equal(first.rises, sharpness(model, flatten(model), separable(), directions=3, seed=1).rises)
    assert not np.array_equal(first.rises, sharpness(model, flatten(model), separable(), directions=3, seed=2).rises)
    evaluator = Evaluator(model, {"train": separable()})
    served = sharpness(model, flatten(model), evaluator=evaluator, directions=3, seed=1)
    np.testing.assert_allclose(first.rises, served.rises)
    assert first.radius == DEFAULT_RADIUS


def test_json_is_plain_and_has_no_infinity() -> None:
    found = Sharpness(0.5, 0.1, np.array([[0.2, math.inf]]), seed=3, split="train")
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["rise"] is None
    assert content["radius"] == 0.5
    assert content["directions"] == 1


def test_weights_that_overflow_nearby_have_an_infinite_rise() -> None:
    model = network()
    found = sharpness(model, 3e18 * torch.ones_like(flatten(model)), separable(), radius=1e3, directions=2)
    assert found.highest == math.inf
    assert not np.isnan(found.rises).any()


def test_bad_inputs_are_named() -> None:
    model = network()
    weights = flatten(model)
    with pytest.raises(ValueError, match="radius is -1"):
        sharpness(model, weights, separable(), radius=-1)
    with pytest.raises(ValueError, match="directions is 0"):
        sharpness(model, weights, separable(), directions=0)
    with pytest.raises(ValueError, match="split is 'test'; the data has 'train'"):
        sharpness(model, weights, {"train": separable()}, split="test")
    with pytest.raises(ValueError, match="data is missing"):
        sharpness(model, weights)
