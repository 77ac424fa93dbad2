"""Max-pooling before BatchNorm instead of after it."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope.landscape import Evaluator, flatten
from valleyscope.landscape.network.batchnorm_layers import scale_and_shift
from valleyscope.landscape.network.running_moments import RunningMoments


def block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]


def network(affine: bool = True) -> nn.Sequential:
    torch.manual_seed(0)
    made = nn.Sequential(*block(2, 6), *block(6, 4), nn.Flatten(), nn.Linear(4 * 4, 3))
    if not affine:
        made[1] = nn.BatchNorm2d(6, affine=False)
    for layer in made:
        if isinstance(layer, nn.BatchNorm2d) and layer.affine:
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
    return made


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_pooling_first_gives_the_same_bits_also_for_negative_scales(layout: torch.memory_format) -> None:
    layer = network()[1]
    assert isinstance(layer, nn.BatchNorm2d)
    assert 0 < int((layer.weight < 0).sum()) < 6
    x = torch.randn(5, 6, 7, 8).contiguous(memory_format=layout)
    moments = RunningMoments()
    moments.add(x)
    with torch.no_grad():
        expected = F.max_pool2d(scale_and_shift(layer, *moments.pooled(), x.dtype)(x).relu(), 2)
        found = scale_and_shift(layer, *moments.pooled(), x.dtype, (2, 2))(x).relu()
    assert torch.equal(found, expected)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("way", ["population", "frozen"])
def test_a_network_that_pools_after_batch_norm_equals_one_batch_in_float64(way: str, affine: bool) -> None:
    model = network(affine)
    x, y = torch.randn(60, 2, 8, 8), torch.arange(60) % 3
    model(3 * x + 1)  # other running averages than the statistics of x
    start = flatten(model)
    basis = torch.stack([start, 0.3 * torch.randn(len(start), generator=torch.Generator().manual_seed(1))])
    data = {"train": (x, y), "test": (x[:20], y[:20])}
    points = [(1.0, 0.0), (1.0, 1.0), (1.0, -1.0)]
    found = Evaluator(model, data, batch_norm=way, block=16).at(basis, points)  # type: ignore[arg-type]
    for number, (_, step) in enumerate(points):
        plain = copy.deepcopy(model)
        nn.utils.vector_to_parameters(start + step * basis[1], plain.parameters())
        plain.double()
        assert found["train"].loss[number] == pytest.approx(loss(plain, x, y, way), rel=1e-5)
        if way == "population":  # the statistics are those of all training samples
            assert found["test"].loss[number] == pytest.approx(loss_of_first(plain, x, y, 20), rel=1e-5)


def logits(model: nn.Module, x: Tensor, way: str) -> Tensor:
    with torch.no_grad():
        found: Tensor = copy.deepcopy(model).train(way == "population")(x.double())
    return found


def loss(model: nn.Module, x: Tensor, y: Tensor, way: str) -> float:
    return float(F.cross_entropy(logits(model, x, way), y))


def loss_of_first(model: nn.Module, x: Tensor, y: Tensor, count: int) -> float:
    return float(F.cross_entropy(logits(model, x, "population")[:count], y[:count]))
