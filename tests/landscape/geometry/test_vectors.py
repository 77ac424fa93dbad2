"""Flat vectors of parameters: order, round trips, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from valleyscope.landscape.geometry.vectors import as_vector, dimension, flatten, unflatten, views


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))


class Tied(nn.Module):
    """Two layers that share one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight


def test_flatten_has_the_order_of_the_parameters_and_no_buffers() -> None:
    model = network()
    assert torch.equal(flatten(model), parameters_to_vector(model.parameters()).detach())
    assert torch.equal(flatten(model, model.state_dict()), flatten(model))
    assert dimension(model) == flatten(model).numel() == 3 * 9 + 3 + 6 + 24 + 2


def test_flatten_makes_a_copy_that_training_does_not_change() -> None:
    model = network()
    before = flatten(model)
    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    assert not torch.equal(before, flatten(model))


def test_unflatten_restores_every_parameter_and_keeps_the_buffers() -> None:
    model = network()
    model(torch.randn(8, 1, 4, 4))
    vector = torch.randn(dimension(model))
    state = unflatten(model, vector)
    assert list(state) == list(model.state_dict())
    assert torch.equal(state["1.running_mean"], model.state_dict()["1.running_mean"])
    fresh = network()
    fresh.load_state_dict(state)
    assert torch.equal(flatten(fresh), vector)
    assert torch.equal(flatten(model, state), vector)


def test_unflattened_tensors_own_their_memory() -> None:
    model = network()
    vector = torch.zeros(dimension(model))
    unflatten(model, vector)["0.weight"].add_(1.0)
    assert not vector.any()


def test_views_share_memory_with_the_vector() -> None:
    model = network()
    vector = torch.zeros(dimension(model))
    views(model, vector)["3.bias"].fill_(1.0)
    assert vector.sum() == 2
    assert bool((vector[-2:] == 1).all())


def test_a_shared_parameter_counts_once_under_any_of_its_names() -> None:
    model = Tied()
    assert dimension(model) == 16
    weight = torch.randn(4, 4)
    assert torch.equal(flatten(model, {"second.weight": weight}), weight.reshape(-1))
    state = unflatten(model, weight.reshape(-1))
    assert torch.equal(state["first.weight"], weight)
    assert torch.equal(state["second.weight"], weight)


def test_entries_that_are_not_parameters_are_ignored() -> None:
    model = network()
    assert torch.equal(flatten(model, {**model.state_dict(), "epoch": torch.tensor(3)}), flatten(model))


def test_weights_of_a_larger_network_are_refused_by_name() -> None:
    small, big = network(), nn.Sequential(*network(), nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"weights that Sequential does not have: '4\.weight', '4\.bias'; use"):
        flatten(small, big.state_dict())
    with pytest.raises(ValueError, match=r"end: state dict has weights .*: 'mask'"):
        as_vector(small, {**small.state_dict(), "mask": np.ones(3)}, name="end")


class Stateful(nn.Module):
    """A buffer that is not saved, and extra state that is not a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.register_buffer("table", torch.zeros(3), persistent=False)

    def get_extra_state(self) -> torch.Tensor:
        return torch.ones(2)

    def set_extra_state(self, state: torch.Tensor) -> None:
        pass


def test_buffers_and_extra_state_are_no_weights() -> None:
    model = Stateful()
    state = {**model.state_dict(), "table": torch.ones(3)}
    assert "_extra_state" in state
    assert torch.equal(flatten(model, state), flatten(model))


def test_vector_takes_the_data_type_of_the_model() -> None:
    model = network()
    state = {name: value.double() for name, value in model.state_dict().items()}
    assert flatten(model, state).dtype == torch.float32
    assert as_vector(model, flatten(model).double()).dtype == torch.float32
    assert flatten(model.double()).dtype == torch.float64


def test_a_missing_parameter_is_named() -> None:
    model = network()
    state = model.state_dict()
    del state["3.bias"]
    with pytest.raises(ValueError, match=r"no parameter '3.bias' \(shape \(2,\)\) of Sequential"):
        flatten(model, state)


def test_another_shape_is_named_with_both_shapes() -> None:
    model = network()
    with pytest.raises(ValueError, match=r"'3.weight' has shape \(5, 12\) in the state dict, but \(2, 12\)"):
        flatten(model, {**model.state_dict(), "3.weight": torch.zeros(5, 12)})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_named(value: float) -> None:
    model = network()
    state = model.state_dict()
    state["1.weight"] = torch.tensor([1.0, value, 1.0])
    with pytest.raises(ValueError, match=r"end: parameter '1.weight' has 1 of 3 values that are not finite"):
        as_vector(model, state, name="end")
    vector = flatten(model)
    vector[5] = value
    with pytest.raises(ValueError, match="end has 1 of 62 values that are not finite"):
        as_vector(model, vector, name="end")


@pytest.mark.parametrize("shape", [(61,), (62, 1)])
def test_a_vector_of_another_length_is_refused_with_both_numbers(shape: tuple[int, ...]) -> None:
    model = network()
    with pytest.raises(ValueError, match=r"start has shape \(6.*has 62 weights"):
        as_vector(model, torch.zeros(shape), name="start")
    with pytest.raises(ValueError, match="62"):
        unflatten(model, torch.zeros(shape))


def test_a_network_without_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="ReLU has no parameters"):
        flatten(nn.ReLU())
