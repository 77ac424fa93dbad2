"""Which orders of units a network allows for."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from torch import Tensor, nn

from tests.landscape.alignment.random_networks import BLOCKS, Network, networks
from valleyscope import build_model
from valleyscope.landscape.alignment.symmetries import Symmetries, symmetries

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def permuted(found: Symmetries, state: dict[str, Tensor], seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    orders = {group.name: torch.randperm(group.units, generator=generator) for group in found.groups}
    return found.permuted(state, orders)


def change(network: nn.Module, state: dict[str, Tensor], x: Tensor) -> float:
    """The largest change of an output, computed in double precision."""
    network, x = network.double(), x.double()
    with torch.no_grad():
        before = network(x)
        network.load_state_dict({name: value.double() for name, value in state.items()})
        return float((network(x) - before).abs().max() / before.abs().max().clamp_min(1.0))


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(networks())
def test_a_random_order_of_the_units_of_a_random_network_changes_no_output(network: Network) -> None:
    x = torch.randn(3, 2, 4, 4)
    found = symmetries(network, (x,))
    state = permuted(found, network.state_dict())
    assert found.groups
    assert any(not torch.equal(value, state[name]) for name, value in network.state_dict().items())
    assert change(network, state, x) < 1e-5


@pytest.mark.drill
@settings(max_examples=1000, deadline=None, suppress_health_check=SLOW)
@given(networks())
def test_a_random_order_of_the_units_of_many_random_networks_changes_no_output(network: Network) -> None:
    x = torch.randn(3, 2, 4, 4)
    assert change(network, permuted(symmetries(network, (x,)), network.state_dict()), x) < 1e-5


@pytest.mark.parametrize("kind", BLOCKS)
def test_operations_that_depend_on_the_order_are_named_and_no_others(kind: str) -> None:
    found = symmetries(Network([kind], "flat"), (torch.randn(3, 2, 4, 4),))
    named = {"cumsum": ["cumsum is not known to treat channels alike"]}
    assert [text.split(": ")[-1] for text in found.left_alone] == named.get(kind, [])
    sizes = [group.units for group in found.groups]
    assert sizes[-1] == 7  # the hidden layer of the head always is free


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("narrow", {"first": 8, "blocks.0.one": 6, "blocks.0.two": 8, "hidden": 7}),
        ("residual", {"first": 8, "blocks.0.one": 8, "hidden": 7}),
        ("concat", {"first": 8, "blocks.0.one": 8, "blocks.0.two": 3, "blocks.0.three": 8, "hidden": 7}),
        ("depthwise", {"first": 8, "blocks.0.one": 8, "blocks.0.three": 8, "hidden": 7}),
        ("grouped", {"first": 8, "blocks.0.one": 4, "blocks.0.three": 8, "hidden": 7}),
        ("squeeze", {"first": 8, "blocks.0.one": 8, "blocks.0.two": 5, "hidden": 7}),
        ("gate", {"first": 8, "blocks.0.one": 8, "hidden": 7}),
        ("padded", {"first": 8, "blocks.0.one": 8, "blocks.0.two": 5, "blocks.0.two'": 8, "hidden": 7}),
        ("attention", {"first": 8, "blocks.0.one": 8, "blocks.0.two.in_proj_weight": 4, "hidden": 7}),
        ("heads", {"first": 8, "blocks.0.one": 8, "blocks.0.two": 4, "blocks.0.three": 8, "hidden": 7}),
        ("shared", {"first": 8, "blocks.0.one": 8, "hidden": 7}),
        ("groupnorm", {"first": 8, "blocks.0.one": 4, "blocks.0.one'": 4, "hidden": 7}),
        ("roll", {"first": 8, "hidden": 7}),
    ],
)
def test_units_that_are_read_together_move_together(kind: str, expected: dict[str, int]) -> None:
    found = symmetries(Network([kind], "flat"), (torch.randn(3, 2, 4, 4),))
    assert {group.name: group.units for group in found.groups} == expected


def test_an_mlp_has_the_orders_of_its_hidden_layers() -> None:
    found = symmetries(build_model("mlp", input_shape=(6,), classes=3, hidden=[5, 4]), (torch.randn(3, 6),))
    assert [group.units for group in found.groups] == [5, 4]
    assert found.orders == pytest.approx(math.log10(math.factorial(5) * math.factorial(4)))


def test_padded_shortcuts_split_a_wide_stage_into_old_and_new_channels() -> None:
    network = build_model("resnet56", input_shape=(3, 8, 8), classes=4, depth=8, width=4)
    found = symmetries(network, (torch.randn(3, 3, 8, 8),))
    sizes = {group.name: group.units for group in found.groups}
    # Channels of the first stage go through all three, those that the second adds through two, the third's through one.
    assert [sizes[name] for name in ("conv", "block2_1.conv2", "block3_1.conv2")] == [4, 4, 8]
    tensors = {group.name: {place.tensor for place in group.places} for group in found.groups}
    assert "linear.weight" in tensors["conv"] & tensors["block2_1.conv2"] & tensors["block3_1.conv2"]
    assert "block1_1.conv1.weight" in tensors["conv"] - tensors["block2_1.conv2"]


def test_statistics_of_batchnorm_move_with_their_channels() -> None:
    network = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 2, 3))
    (group,) = symmetries(network, (torch.randn(3, 1, 8, 8),)).groups
    assert {"1.running_mean", "1.running_var", "1.weight", "2.bias", "3.weight"} - {"2.bias"} <= {
        place.tensor for place in group.places
    }


def test_frozen_parameters_keep_their_order() -> None:
    network = nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise((3, 4, 5, 2))))
    network[0].weight.requires_grad_(False)
    (group,) = symmetries(network, (torch.randn(3, 3),)).groups
    assert group.name == "1"
    (group,) = symmetries(network, (torch.randn(3, 3),), parameters=["0.*", "1.*"]).groups
    assert group.name == "0"


def test_a_hook_makes_a_layer_unknown() -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 2))
    network[1].register_forward_hook(lambda _, __, output: output.cumsum(1))
    found = symmetries(network, (torch.randn(3, 3),))
    assert [group.name for group in found.groups] == ["2"]
    assert found.left_alone == ("1: ReLU with hooks or a replaced forward pass",)


class _Positions(nn.Module):
    """A network whose trace looks symmetric: the order enters through a function that is known by its name only."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(3, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(_relu(self.one(x)))


def relu(x: Tensor) -> Tensor:
    """Not what its name says."""
    return F.relu(x) * torch.arange(1.0, 1.0 + x.shape[1], dtype=x.dtype)


torch.fx.wrap("_relu")
_relu = relu


def test_a_group_is_tried_before_it_is_believed() -> None:
    network = _Positions()
    found = symmetries(network, (torch.randn(3, 3),))
    assert found.groups == ()
    assert found.left_alone == ("one: a random order of its units changes the outputs",)
