"""Random architectures with random zero groups: the outputs stay, or the network is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.training.compaction.networks import difference, with_zero_groups
from valleyscope import compact

ACTIVATIONS = (nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, lambda: nn.LeakyReLU(0.1), lambda: nn.Hardtanh(-1.0, 2.0))
WIDTHS = st.sampled_from([2, 4, 6])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("conv"), WIDTHS, st.sampled_from([1, 3]), st.booleans(), st.sampled_from([0, 1])),
        st.tuples(st.just("norm")),
        st.tuples(st.just("activation"), st.integers(0, len(ACTIVATIONS) - 1)),
        st.tuples(st.just("pool"), st.sampled_from(["max", "average", "padded"])),
        st.tuples(st.just("residual"), WIDTHS, st.booleans()),
        st.tuples(st.just("widen"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("concatenate"), WIDTHS),
        st.tuples(st.just("gate")),
        st.tuples(st.just("depthwise"), st.booleans()),
        st.tuples(st.just("grouped")),
        st.tuples(st.just("slice")),
        st.tuples(st.just("dropout")),
    ),
    min_size=1,
    max_size=7,
)


class Step(nn.Module):
    """One random step on images; `width` is the number of its output channels."""

    def __init__(self, kind: str, channels: int, *options: Any) -> None:
        super().__init__()
        self.kind, self.width, self.options = kind, channels, options
        if kind == "conv":
            self.width, kernel, bias, padding = options
            self.layer: nn.Module = nn.Conv2d(
                channels, self.width, kernel, bias=bias, padding=max(padding, kernel // 2)
            )
        elif kind == "norm":
            self.layer = nn.BatchNorm2d(channels)
        elif kind == "activation":
            self.layer = ACTIVATIONS[options[0]]()
        elif kind == "pool":
            pools = {"max": nn.MaxPool2d(2, 1), "average": nn.AvgPool2d(2, 1), "padded": nn.AvgPool2d(3, 1, 1)}
            self.layer = pools[options[0]]
        elif kind == "residual":
            inner, norm = options
            last = [nn.BatchNorm2d(channels)] if norm else []
            self.layer = nn.Sequential(
                nn.Conv2d(channels, inner, 3, padding=1), nn.ReLU(), nn.Conv2d(inner, channels, 1, bias=not norm), *last
            )
        elif kind == "widen":
            self.width = channels + sum(options)
        elif kind == "concatenate":
            self.layer = nn.Conv2d(channels, options[0], 1)
            self.width = channels + options[0]
        elif kind == "gate":
            self.layer = nn.Conv2d(channels, channels, 1)
        elif kind == "depthwise":
            self.layer = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=options[0])
        elif kind == "grouped":
            self.layer = nn.Conv2d(channels, channels, 1, groups=2 if channels % 2 == 0 else 1)
        elif kind == "slice":
            self.width = -(-channels // 2)
        elif kind == "dropout":
            self.layer = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "residual":
            return x + self.layer(x)
        if self.kind == "widen":
            return F.pad(x, (0, 0, 0, 0, *self.options))
        if self.kind == "concatenate":
            return torch.cat([self.layer(x), x], dim=1)
        if self.kind == "gate":
            return x * torch.sigmoid(self.layer(F.adaptive_avg_pool2d(x, 1)))
        if self.kind == "slice":
            return x[:, : self.width]
        result: Tensor = self.layer(x)
        return result


def assert_outputs_stay(steps: list[tuple[Any, ...]], share: float, bias: bool, tie: bool, seed: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        channels, side = 3, 7
        for kind, *options in steps:
            layers.append(Step(kind, channels, *options))
            channels = layers[-1].width
            with torch.no_grad():
                side = nn.Sequential(*layers).eval()(torch.zeros(1, 3, 7, 7)).shape[-1]
            if side < 3:
                break
        head = [nn.Flatten(), nn.Linear(channels * side**2, 4), nn.ReLU(), nn.Linear(4, 3)]
        model = with_zero_groups(nn.Sequential(*layers, *head), share, seed=seed, bias=bias, tie=tie)
        found = compact(model, torch.zeros(1, 3, 7, 7))
        assert difference(model, found.model, torch.randn(4, 3, 7, 7)) < 1e-5
    assert all("grouped convolution" in reason for reason in found.report.left_whole.values())


ARCHITECTURES = given(
    steps=STEPS, share=st.floats(0.2, 1.0), bias=st.booleans(), tie=st.booleans(), seed=st.integers(0, 2**16)
)


@settings(max_examples=20)
@ARCHITECTURES
def test_outputs_of_random_architectures_stay(**drawn: Any) -> None:
    assert_outputs_stay(**drawn)


@pytest.mark.drill
@settings(max_examples=300)
@ARCHITECTURES
def test_outputs_of_many_random_architectures_stay(**drawn: Any) -> None:
    assert_outputs_stay(**drawn)
