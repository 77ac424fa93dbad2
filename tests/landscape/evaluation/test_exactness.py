"""The evaluator against a plain float64 loop over points and batches."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tests.landscape.reference import COEFFICIENTS, assert_equals_plain, assert_exact, basis_around, plain, samples
from valleyscope.landscape import Evaluator, Plane, flatten, surface
from valleyscope.training.models import build_model


@pytest.mark.parametrize(
    ("name", "options", "shape", "count"),
    [
        ("cnn", {"channels": [10, 20], "hidden": 50}, (1, 28, 28), 60),
        ("lenet", {}, (1, 28, 28), 60),
        ("mlp", {}, (1, 8, 8), 60),
        ("vgg16", {}, (3, 32, 32), 12),
        ("vgg16_bn", {"width": 8}, (3, 32, 32), 40),
        ("vgg16_bn", {}, (3, 32, 32), 10),
        ("resnet56", {}, (3, 32, 32), 30),
        ("wrn28x10", {"depth": 10, "widen": 1}, (3, 32, 32), 30),
    ],
)
def test_named_networks_equal_the_plain_loop(
    name: str, options: dict[str, object], shape: tuple[int, ...], count: int
) -> None:
    model = build_model(name, input_shape=shape, seed=0, **options)
    assert_exact(model, {"train": samples(shape, count), "test": samples(shape, count // 2, seed=1)})


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    widths=some.lists(some.integers(1, 6), min_size=1, max_size=3),
    kernel=some.sampled_from([1, 3]),
    norm=some.booleans(),
    pool=some.sampled_from(["max", "average", "none"]),
    activation=some.sampled_from([nn.ReLU, nn.Tanh, nn.GELU]),
    bias=some.booleans(),
    block=some.integers(3, 40),
)
def test_random_networks_equal_the_plain_loop(
    widths: list[int], kernel: int, norm: bool, pool: str, activation: type[nn.Module], bias: bool, block: int
) -> None:
    torch.manual_seed(len(widths))
    layers: list[nn.Module] = []
    channels = 2
    for width in widths:
        layers.append(nn.Conv2d(channels, width, kernel, padding=kernel // 2, bias=bias))
        layers += [nn.BatchNorm2d(width)] if norm else []
        layers += [activation()]
        layers += {"max": [nn.MaxPool2d(2, ceil_mode=True)], "average": [nn.AvgPool2d(2, ceil_mode=True)]}.get(pool, [])
        channels = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, 3)).eval()
    data = {"train": samples((2, 9, 9), 41, classes=3), "test": samples((2, 9, 9), 10, classes=3, seed=1)}
    basis = basis_around(model)
    assert_equals_plain(Evaluator(model, data, block=block).at(basis, COEFFICIENTS), plain(model, basis, data))


class Tangled(nn.Module):
    """Control flow, a parameter used twice, and an input used twice: nothing that a tracer likes."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(5, 5)
        self.skip = nn.Linear(5, 3)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(2 if float(x.sum()) > -1e9 else 1):
            y = torch.tanh(self.shared(y))
        return self.scale * self.skip(y) + self.skip(x)


def test_a_tangled_network_of_ones_own_equals_the_plain_loop() -> None:
    torch.manual_seed(0)
    data = {"train": samples((5,), 50, classes=3), "test": samples((5,), 20, classes=3, seed=1)}
    assert_exact(Tangled(), data)


@pytest.mark.parametrize("name", ["cnn", "resnet56"])
def test_any_tiling_and_order_give_the_same_bits(name: str) -> None:
    options = {"resnet56": {"depth": 8, "width": 4}, "cnn": {}}[name]
    shape = (1, 8, 8)
    model = build_model(name, input_shape=shape, seed=0, **options)
    a = flatten(model)
    plane = Plane.through(a, a + 0.1 * torch.randn_like(a), a + 0.1 * torch.randn_like(a))
    data = {"train": samples(shape, 70), "test": samples(shape, 30, seed=1)}
    whole = surface(model, plane, data, resolution=7)
    tiled = surface(model, plane, data, resolution=7, tile_size=5)
    for split in ("train", "test"):
        assert np.array_equal(whole[split].loss, tiled[split].loss)
        assert np.array_equal(whole[split].error, tiled[split].error)
    order = np.random.default_rng(0).permutation(9)
    places = np.stack([np.ones(9), np.repeat(whole.x[:3], 3), np.tile(whole.y[:3], 3)], axis=1)
    evaluator = Evaluator(model, data)
    straight, shuffled = evaluator.at(plane.basis, places), evaluator.at(plane.basis, places[order])
    assert np.array_equal(straight["train"].loss[order], shuffled["train"].loss)


def test_the_users_network_is_left_as_it_was() -> None:
    model = build_model("resnet56", depth=8, width=4, seed=0).train()
    before = copy.deepcopy(model.state_dict())
    strides = [parameter.stride() for parameter in model.parameters()]
    Evaluator(model, {"train": samples((3, 32, 32), 10)}).at(basis_around(model), COEFFICIENTS)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert strides == [parameter.stride() for parameter in model.parameters()]
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_an_overflowing_point_is_infinite_and_all_wrong_never_nan() -> None:
    model = build_model("cnn", seed=0)
    origin = flatten(model)
    direction = torch.full_like(origin, 1e30)
    values = Evaluator(model, {"train": samples((1, 8, 8), 20)}).at(
        torch.stack([origin, direction]), np.array([[1.0, 0.0], [1.0, 1e8]]), samples=True
    )["train"]
    assert np.isfinite(values.loss[0])
    assert values.loss[1] == np.inf
    assert values.error[1] == 1.0
    assert values.samples is not None
    assert not np.isnan(values.samples).any()


def test_small_losses_keep_their_digits() -> None:
    """-log(1 + e) in float32 is rounding for confident networks; the mean must still be right to 1e-5."""
    model = nn.Linear(3, 2)
    model.weight.data = torch.tensor([[8.0, 0.0, 0.0], [-8.0, 0.0, 0.0]])
    x = torch.ones(50, 3) + 0.01 * torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    y = torch.zeros(50, dtype=torch.long)
    found = Evaluator(model, {"train": (x, y)}).at(flatten(model).unsqueeze(0), [[1.0]])["train"].loss[0]
    exact = float(cross_entropy(copy.deepcopy(model).double()(x.double()), y))
    assert found == pytest.approx(exact, rel=1e-5)
    assert exact < 1e-5
