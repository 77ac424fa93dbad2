"""Convolutions by Winograd's filtering: the same values as plain ones, used where they gain and nowhere else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as some
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

from valleyscope.landscape.convolution.memory_order import (
    CHANNELS_LAST,
    PIXELS_FIRST,
    SAMPLES_LAST,
    Order,
    empty_images,
    in_order,
)
from valleyscope.landscape.convolution.toom_cook import matrices, outputs_at_once
from valleyscope.landscape.convolution.winograd import WinogradConvolution, algorithm_for, find_winograd_layers
from valleyscope.landscape.convolution.workspace import Workspace
from valleyscope.landscape.network.call_recorder import record_calls

ORDERS = [CHANNELS_LAST, PIXELS_FIRST, SAMPLES_LAST, (0, 1, 2, 3)]


@pytest.mark.parametrize(("outputs", "taps"), [(2, 3), (4, 3), (2, 5), (4, 5)])
def test_the_matrices_filter_exactly(outputs: int, taps: int) -> None:
    after, kernel, before = matrices(outputs, taps)
    d, g = torch.randn(outputs + taps - 1).double(), torch.randn(taps).double()
    expected = torch.stack([d[row : row + taps] @ g for row in range(outputs)])
    torch.testing.assert_close(after @ ((kernel @ g) * (before @ d)), expected)


def used_workspace() -> Workspace:
    """A workspace full of NaN from an earlier use."""
    found = Workspace()
    found.cut((1_000_000,))[0].fill_(float("nan"))
    return found


@settings(max_examples=40, deadline=None)
@given(
    channels=some.integers(1, 9),
    filters=some.integers(1, 9),
    taps=some.sampled_from([3, 5]),
    padding=some.integers(0, 2),
    height=some.integers(5, 13),
    width=some.integers(5, 13),
    samples=some.integers(1, 5),
    bias=some.booleans(),
    given_order=some.sampled_from(ORDERS),
    order=some.sampled_from(ORDERS),
    window=some.sampled_from([(1, 1), (2, 2), (1, 3)]),
)
def test_any_convolution_with_its_pooling_is_that_of_torch(
    channels: int,
    filters: int,
    taps: int,
    padding: int,
    height: int,
    width: int,
    samples: int,
    bias: bool,
    given_order: Order,
    order: Order,
    window: tuple[int, int],
) -> None:
    torch.manual_seed(channels + 10 * filters)
    layer = nn.Conv2d(channels, filters, taps, padding=padding, bias=bias)
    points = [{name: torch.randn_like(part) for name, part in layer.named_parameters()} for _ in range(3)]
    x = torch.randn(samples, channels, height, width)
    coefficients = [1.0, -0.7, 0.4]
    exact = sum(c * point["weight"].double() for c, point in zip(coefficients, points, strict=True))
    plain = conv2d(x.double(), exact, layer.bias.double() if layer.bias is not None else None, padding=padding)
    assume(plain.shape[2] >= window[0] and plain.shape[3] >= window[1])
    expected = max_pool2d(plain, window)
    convolution = WinogradConvolution(layer, used_workspace(), *plain.shape[2:])
    convolution.window, convolution.order = window, order
    convolution.set_basis(points)
    convolution.set_point(coefficients)
    with torch.inference_mode():
        found = layer(empty_images(x.shape, given_order, x).copy_(x))
    assert found.shape == expected.shape
    assert in_order(found, order).is_contiguous()
    error = (found - expected).norm() / plain.norm()
    assert error < 3e-6, float(error)


def test_a_sample_has_the_same_bits_in_any_group() -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(32, 64, 3, padding=1)
    convolution = WinogradConvolution(layer, Workspace(), 16, 16)
    convolution.set_basis([{"weight": layer.weight.detach()}])
    convolution.set_point([1.0])
    x = torch.randn(100, 32, 16, 16)
    with torch.inference_mode():
        torch.testing.assert_close(layer(x)[:7], layer(x[:7]), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(layer(x), layer(x), rtol=0, atol=0)


def test_groups_of_several_sizes_share_a_workspace_that_grows() -> None:
    torch.manual_seed(0)
    small, large = nn.Conv2d(3, 4, 5), nn.Conv2d(4, 40, 5, padding=2)
    workspace = Workspace()
    for layer, side in ((small, 8), (large, 8)):
        convolution = WinogradConvolution(layer, workspace, side, side, reuse=True)
        convolution.set_basis([{"weight": layer.weight.detach()}])
        convolution.set_point([1.0])
    with torch.inference_mode():
        for samples in (5, 130, 128, 257, 5):
            x = torch.randn(samples, 3, 12, 12)
            expected = conv2d(conv2d(x, small.weight, small.bias), large.weight, large.bias, padding=2)
            torch.testing.assert_close(large(small(x)), expected, rtol=1e-4, atol=1e-4)


def test_outputs_are_in_the_same_memory_only_where_that_was_asked_for() -> None:
    for reuse in (False, True):
        layer = nn.Conv2d(2, 3, 5)
        convolution = WinogradConvolution(layer, Workspace(), 4, 4, reuse=reuse)
        convolution.set_basis([{"weight": layer.weight.detach()}])
        convolution.set_point([1.0])
        with torch.inference_mode():
            first = layer(torch.ones(2, 2, 8, 8))
            second = layer(torch.zeros(2, 2, 8, 8))
        assert torch.equal(first, second) is reuse


def found_in(*layers: nn.Module, shape: tuple[int, ...] = (64, 8, 8)) -> list[nn.Module]:
    """The layers that are replaced in a network that starts with another one."""
    network = nn.Sequential(nn.Conv2d(64, 128, 1), *layers, nn.Flatten(), nn.LazyLinear(2))
    x = torch.randn(2, *shape)
    network(x)
    return [layer.layer for layer in find_winograd_layers(network, record_calls(network, x))]


def test_wide_layers_on_small_images_gain() -> None:
    layer = nn.Conv2d(128, 128, 3, padding=1)
    assert algorithm_for(layer, 8, 8).gain(128, 128) > 40
    assert found_in(layer) == [layer]
    assert found_in(same := nn.Conv2d(128, 128, 5, padding="same")) == [same]
    assert found_in(valid := nn.Conv2d(128, 128, 3, padding="valid"), shape=(64, 10, 10)) == [valid]


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2},
        {"dilation": 2},
        {"groups": 2},
        {"padding": (1, 0)},
        {"padding": 1, "padding_mode": "circular"},
        {"kernel_size": (3, 5)},
        {"kernel_size": 1},
        {"kernel_size": 7},
        {"dtype": torch.float64},
    ],
)
def test_what_it_cannot_do_is_left_to_torch(options: dict[str, object]) -> None:
    layer = nn.Conv2d(128, 128, **{"kernel_size": 3, **options})  # type: ignore[arg-type]
    convert: list[nn.Module] = [_Doubled()] if layer.weight.dtype is torch.float64 else []
    back: list[nn.Module] = [_Single()] if convert else []
    assert found_in(*convert, layer, *back) == []


def test_narrow_layers_hooked_layers_and_shared_weights_are_left_alone() -> None:
    assert found_in(nn.Conv2d(128, 4, 3)) == []
    hooked = nn.Conv2d(128, 128, 3, padding=1)
    hooked.register_forward_hook(lambda *_: None)
    assert found_in(hooked) == []
    one, other = nn.Conv2d(128, 128, 3, padding=1), nn.Conv2d(128, 128, 3, padding=1)
    other.weight = one.weight
    assert found_in(one, other) == []
    assert found_in(one, nn.ReLU(), one) == []


def test_the_layer_that_sees_the_data_is_left_to_the_cache_of_its_maps() -> None:
    network = nn.Sequential(nn.Conv2d(128, 128, 3), nn.Flatten(), nn.Linear(128 * 36, 2))
    x = torch.randn(2, 128, 8, 8)
    assert find_winograd_layers(network, record_calls(network, x)) == []


def test_the_number_of_rows_is_the_cheapest() -> None:
    assert [outputs_at_once(rows, 3) for rows in (1, 2, 4, 8, 16)] == [2, 2, 4, 4, 4]


class _Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.double()


class _Single(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float()


@torch.no_grad()
def test_layers_that_share_the_memory_of_their_weights_give_the_same_bits() -> None:
    torch.manual_seed(0)
    x, workspace = torch.randn(3, 4, 8, 8).contiguous(memory_format=torch.channels_last), Workspace()
    for filters in (8, 4):
        layer = nn.Conv2d(4, filters, 3, padding=1)
        found = []
        for shared in (False, True):
            convolution = WinogradConvolution(layer, workspace, 8, 8)
            convolution.share_weights = shared
            convolution.set_basis([{"weight": 2 * layer.weight.detach()}])
            convolution.set_point([0.5])  # which are the weights of the layer itself
            found.append(convolution(x).clone())
            layer.forward = convolution._forward  # type: ignore[method-assign]
        assert torch.equal(*found)
