"""Graphs of networks: used only if they compute what the network computes at all weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.landscape.reference import assert_exact, samples
from valleyscope.landscape import Evaluator
from valleyscope.landscape.network.fx_graph import trace_network

SHAPE = (8, 8, 8)


class Wide(nn.Module):
    """A convolution that Winograd's filtering takes over, after a first one."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(8, 128, 1)
        self.wide = nn.Conv2d(128, 128, 3, padding=1)
        self.last = nn.Linear(128, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.features(F.relu(self.first(x))).mean((2, 3)))

    def features(self, h: Tensor) -> Tensor:
        output: Tensor = self.wide(h)
        return output


class Twice(Wide):
    """The weight of the convolution is used by a function as well."""

    def features(self, h: Tensor) -> Tensor:
        return F.conv2d(self.wide(h), self.wide.weight, padding=1)


class TwiceInTheDark(Twice):
    """The same, in a network whose path depends on values."""

    def features(self, h: Tensor) -> Tensor:
        return super().features(h) if float(h.sum()) > -1e9 else h


class FromAList(Wide):
    """Reads the weight where a tracer cannot see it, and scales by its norm."""

    def features(self, h: Tensor) -> Tensor:
        weight = next(value for value in self.parameters() if value.dim() == 4 and value.shape[1] == 128)
        return super().features(h) * weight.norm()


def hooked() -> nn.Module:
    """A hook of another module reads the weight."""
    model = Wide()
    model.first.register_forward_hook(lambda module, _, output: output * module.other[0].weight.norm())
    model.first.other = [model.wide]  # type: ignore[assignment]
    return model


@pytest.mark.parametrize("network", [Wide, Twice, TwiceInTheDark, FromAList, hooked])
def test_a_weight_that_is_read_elsewhere_moves_with_the_point(network: type[nn.Module]) -> None:
    assert_exact(network(), {"train": samples(SHAPE, 12, 3)})


def test_only_a_weight_that_nothing_else_reads_is_left_out_of_the_buffer() -> None:
    models = Wide(), Twice(), hooked()
    evaluators = [Evaluator(model, samples(SHAPE, 6, 3)) for model in models]
    assert [len(evaluator._layers) for evaluator in evaluators] == [1, 1, 1]
    assert [len(evaluator._flat.released) for evaluator in evaluators] == [1, 0, 0]


def test_a_graph_with_a_frozen_weight_is_not_used() -> None:
    x = samples(SHAPE, 2, 3)[0]
    assert trace_network(Wide(), x) is not None
    assert trace_network(FromAList(), x) is None


def test_the_weights_are_the_same_after_tracing() -> None:
    model = Wide()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    trace_network(model, samples(SHAPE, 2, 3)[0])
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
