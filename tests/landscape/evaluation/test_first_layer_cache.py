"""Networks whose layers write into memory that they have used before: no value is overwritten that is still needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.landscape.reference import assert_exact, basis_around, samples
from valleyscope.landscape import Evaluator
from valleyscope.landscape.convolution import winograd
from valleyscope.landscape.convolution.memory_order import CHANNELS_LAST, SAMPLES_LAST
from valleyscope.landscape.evaluation import sweeps
from valleyscope.landscape.evaluation.first_layer_cache import FirstLayer
from valleyscope.landscape.evaluation.sweeps import BlockSweep

SHAPE = (1, 28, 28)


class Residual(nn.Module):
    """The output of a filtered convolution is used twice, and added to that of another."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 10, 5, padding=2)
        self.second = nn.Conv2d(10, 20, 5, padding=2)
        self.third = nn.Conv2d(20, 20, 5, padding=2)
        self.last = nn.Linear(20 * 49, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.second(F.max_pool2d(F.relu(self.first(x)), 4)))
        return self.last((h + F.relu(self.third(h))).flatten(1))


class Again(nn.Module):
    """The first layer is called once more for more than two samples, which a trial does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 10, 5)
        self.second = nn.Conv2d(10, 3, 24)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if len(x) > 2:
            h = h.relu_() + self.first(x) + self.first(0.5 * x)
        return self.second(h).flatten(1)


def convolutions(*between: nn.Module, side: int) -> Callable[[], nn.Module]:
    """Two convolutions of 5 x 5, the second with as many outputs as classes, and other layers between them."""

    def network() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 10, 5), *between, nn.Conv2d(10, 3, 5), nn.MaxPool2d(side), nn.Flatten())

    return network


def chain(*kernels: int) -> Callable[[], nn.Module]:
    """Convolutions with such kernels, each with pooling; filtered ones and others follow each other."""

    def network() -> nn.Module:
        layers: list[nn.Module] = []
        for channels, kernel in zip((1, 8, 12, 16), kernels, strict=False):
            filters = {1: 8, 8: 12, 12: 16, 16: 20}[channels]
            layers += [nn.Conv2d(channels, filters, kernel, padding=kernel // 2), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(3))

    return network


@pytest.mark.parametrize(
    "network",
    [
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 3)),
        convolutions(nn.MaxPool2d(2), nn.ReLU(), side=8),
        convolutions(nn.ReLU(), side=20),
        convolutions(nn.Tanh(), nn.AvgPool2d(2), side=8),
        chain(5, 5, 5),
        chain(5, 3, 5, 1),
        chain(3, 5, 3),
        Residual,
        Again,
    ],
)
def test_networks_that_end_anywhere_equal_the_plain_loop(network: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model = network()
    with torch.no_grad():
        model(torch.randn(2, *SHAPE))
    assert_exact(model, {"train": samples(SHAPE, 150, 3), "test": samples(SHAPE, 10, 3, seed=1)})


def order_of_first(model: nn.Module) -> object:
    sweep = Evaluator(model, samples(SHAPE, 6, 3))._sweep
    assert isinstance(sweep, BlockSweep)
    assert isinstance(sweep._first, FirstLayer)
    return sweep._first._order


def test_the_first_layer_leaves_its_images_as_the_second_one_needs_them() -> None:
    torch.manual_seed(0)
    filtered, left_alone = chain(5, 5)(), chain(5, 3)()
    for model in (filtered, left_alone):
        model(torch.randn(2, *SHAPE))
    assert order_of_first(filtered) == SAMPLES_LAST
    assert order_of_first(left_alone) == CHANNELS_LAST


def test_large_networks_keep_no_copy_of_their_basis_and_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.MaxPool2d(4), nn.Flatten()
    model = nn.Sequential(*layers, nn.Linear(64 * 4, 3))
    data, basis = {"train": samples((1, 10, 10), 9, classes=3)}, basis_around(model)
    points = [(1.0, 0.2, -0.4), (1.0, 0.9, -0.4), (0.5, 0.1, 0.7)]
    small = Evaluator(model, data)
    expected = small.at(basis, points)["train"].loss
    assert len(small._layers) == 1
    monkeypatch.setattr(sweeps, "_MOST_COPIED", 0)
    monkeypatch.setattr(winograd, "_MOST_TRANSFORMED", 0)
    large = Evaluator(model, data)
    assert large._layers[0].share_weights
    assert np.array_equal(expected, large.at(basis, points)["train"].loss)
    assert np.array_equal(expected, large.at(list(basis), points)["train"].loss)
