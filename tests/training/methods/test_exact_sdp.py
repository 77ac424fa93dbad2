"""Exact directional pruning as a method: the formula of the theorem, with given direction factors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.training.methods.cases import RUN, digits, plain
from valleyscope.training import partition, train
from valleyscope.training.parameter_groups import group_norms, prunable
from valleyscope.training.sdp import sdp


def norms(model: torch.nn.Module) -> Tensor:
    return torch.cat([group_norms(layer).double() for layer in prunable(partition(model))])


def factors(_model: Any, groups: Any, _settings: Any) -> Tensor:
    count = sum(group_norms(layer).numel() for layer in prunable(groups))
    return torch.linspace(-0.3, 1.2, count, dtype=torch.float64).roll(7)


@pytest.mark.parametrize("wish", [{"sparsity": 0.4}, {"strength": 0.8}])
def test_a_cut_is_the_closed_form_of_the_theorem(wish: dict[str, float]) -> None:
    model, expected = plain(), plain()
    train(model, digits(), **RUN | {"of": "sgd", "method": "sdp", "direction_factors": factors} | wish)
    groups = partition(expected)
    state = sdp(expected, expected, groups, factors(None, groups, None), **wish)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value.contiguous(), state[name].contiguous(), msg=name)


def test_groups_with_a_negative_factor_grow_and_the_record_says_how_strong_it_was() -> None:
    model = plain()
    before = norms(model)
    found = train(model, digits(), of="sgd", method="sdp", strength=0.2, direction_factors=factors)
    s = factors(None, partition(model), None)
    assert (norms(model)[s < 0] > before[s < 0]).all()
    assert found.pruning["strength"] == 0.2
    assert "λ = 0.2, s from -0.30 to 1.20" in found.pruning["text"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "method 'sdp' must know how much to prune: give sparsity, macs or strength"),
        ({"sparsity": 0.5}, "factors='hessian': train.. does not know the Hessian; pass direction_factors="),
        ({"sparsity": 0.5, "strength": 1.0}, "sparsity=0.5 and strength=1.0: give one of them"),
        ({"sparsity": 0.9, "direction_factors": factors}, "sparsity=0.9 cannot be reached: only 0.780 of"),
        ({"sparsity": 0.5, "direction_factors": lambda *_: torch.ones(3)}, "gave 3 numbers for 50 groups: one each"),
    ],
)
def test_what_cannot_work_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(plain(), digits(), of="sgd", method="sdp", **fields)
