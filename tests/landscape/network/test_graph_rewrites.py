"""Rewritings of traced networks: the same values in whichever order images lie in memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import fx, nn
from torch.nn.functional import max_pool2d

from valleyscope.landscape.convolution.memory_order import (
    CHANNELS_LAST,
    PIXELS_FIRST,
    SAMPLES_LAST,
    Order,
    empty_images,
    to_samples_last,
)
from valleyscope.landscape.network.graph_rewrites import (
    flatten_samples,
    only_consumer,
    pooled_in_place,
    remove_pooling,
    rewrite_graph,
    window_maximum,
)

orders = some.sampled_from([CHANNELS_LAST, PIXELS_FIRST, SAMPLES_LAST, (0, 1, 2, 3)])
sides = some.integers(1, 7)


@given(samples=some.integers(1, 4), height=sides, width=sides, window=some.tuples(sides, sides), order=orders)
def test_pooling_in_place_is_that_of_torch(
    samples: int, height: int, width: int, window: tuple[int, int], order: Order
) -> None:
    window = min(window[0], height), min(window[1], width)
    x = torch.randn(samples, 3, height, width)
    expected = max_pool2d(x, window)
    assert torch.equal(window_maximum(empty_images(x.shape, order, x).copy_(x), window), expected)
    assert torch.equal(pooled_in_place(empty_images(x.shape, order, x).copy_(x), window), expected)


@given(samples=some.integers(1, 4), height=sides, width=sides, order=orders)
def test_flat_images_have_their_values_in_the_usual_order(samples: int, height: int, width: int, order: Order) -> None:
    x = torch.randn(samples, 3, height, width)
    images = empty_images(x.shape, order, x).copy_(x)
    assert torch.equal(flatten_samples(images), x.flatten(1))
    assert torch.equal(to_samples_last(images), x)


@pytest.mark.parametrize(
    "flatten",
    [
        nn.Flatten(),
        nn.Flatten(2),
        nn.Flatten(1, 2),
        lambda x: torch.flatten(x, 1),
        lambda x: torch.flatten(x, 2),
        lambda x: torch.flatten(x, start_dim=2),
        lambda x: x.flatten(1),
        lambda x: x.flatten(1, -1),
        lambda x: x.flatten(),
        lambda x: x.flatten(end_dim=1),
    ],
)
def test_all_ways_to_flatten_mean_what_they_did(flatten: object) -> None:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flatten = flatten

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.flatten(x)
            return output

    x = torch.randn(2, 3, 4, 5)
    graph = fx.symbolic_trace(Network())
    rewrite_graph(graph)
    assert torch.equal(graph(x), Network()(x))


def test_the_consumer_of_a_layer_is_behind_relu_and_pooling() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 3, 1), nn.Flatten())
    graph = fx.symbolic_trace(network)
    rewrite_graph(graph)
    found = only_consumer(graph, network[0])
    assert found is not None
    assert found.target == "3"
    assert remove_pooling(graph, network[0]) == (2, 2)
    assert only_consumer(graph, network[0]) is found
    last = only_consumer(graph, network[3])
    assert last is not None
    assert last.target is flatten_samples


def test_what_is_used_twice_has_no_single_consumer() -> None:
    class Split(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(1, 2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.layer(x)
            return h.sum() + h.amax()

    graph = fx.symbolic_trace(Split())
    assert only_consumer(graph, graph.layer) is None
