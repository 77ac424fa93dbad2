"""Group lasso and RMDA against closed forms and an independent implementation."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from valleyscope.training import partition
from valleyscope.training.methods.group_lasso import GroupLasso
from valleyscope.training.methods.rmda import RMDA


def layer(rows: Tensor) -> nn.Linear:
    made = nn.Linear(rows.shape[1], rows.shape[0], bias=False)
    made.weight.data.copy_(rows)
    return made


def shrunk(rows: Tensor, threshold: float) -> Tensor:
    return torch.stack([row * max(0.0, 1 - threshold / float(row.norm())) for row in rows])


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_proximal_group_lasso_ends_at_the_minimum_of_the_penalised_loss(momentum: float) -> None:
    """min ½||w - a||² + λ Σ ||w_i|| is S(a_i, λ), with momentum as without."""
    a = torch.tensor([[3.0, 4.0], [0.3, 0.4], [-1.0, 0.5]])
    model = layer(torch.randn(3, 2))
    optimizer = GroupLasso(partition(model, skip_output=False), lr=0.05, penalty=0.8, mode="prox", momentum=momentum)
    for _ in range(600):
        optimizer.zero_grad()
        (0.5 * (model.weight - a) ** 2).sum().backward()
        optimizer.step()
    torch.testing.assert_close(model.weight.data, shrunk(a, 0.8), atol=1e-4, rtol=1e-4)
    assert not model.weight[1].any()


def test_group_lasso_rda_is_the_sum_of_gradients_shrunk_by_the_sum_of_penalties() -> None:
    start = torch.randn(4, 3)
    model = layer(start)
    optimizer = GroupLasso(partition(model, skip_output=False), lr=0.1, penalty=0.5, mode="dual")
    total = torch.zeros_like(start)
    for _ in range(7):
        gradient = torch.randn_like(start)
        model.weight.grad = gradient.clone()
        optimizer.step()
        total += 0.1 * gradient
    torch.testing.assert_close(model.weight.data, shrunk(start - total, 7 * 0.1 * 0.5))


def test_rmda_follows_its_formula() -> None:
    start = torch.randn(4, 3)
    model = layer(start)
    optimizer = RMDA(partition(model, skip_output=False), lr=0.1, penalty=0.05, averaging=0.3)
    total, weight, penalty = torch.zeros_like(start), start.clone(), 0.0
    for t in range(1, 9):
        gradient = torch.randn_like(start)
        model.weight.grad = gradient.clone()
        optimizer.step()
        scale = 0.1 * math.sqrt(t)
        total, penalty = total + scale * gradient, penalty + scale * 0.05
        point = shrunk(start - total / math.sqrt(t), math.sqrt(3) * penalty / math.sqrt(t))
        weight = 0.7 * weight + 0.3 * point
        torch.testing.assert_close(model.weight.data, weight)


def test_rmda_reaches_exact_zeros() -> None:
    """The average with zero alone never would: .9^n of a float stays above zero for hundreds of steps."""
    model = layer(torch.randn(4, 3))
    optimizer = RMDA(partition(model, skip_output=False), lr=0.1, penalty=5.0, averaging=0.1)
    for _ in range(250):
        model.weight.grad = torch.zeros_like(model.weight)
        optimizer.step()
    assert not model.weight.any()


def test_rmda_keeps_the_floor() -> None:
    model = layer(torch.randn(4, 3))
    optimizer = RMDA(partition(model, skip_output=False), lr=0.1, penalty=5.0, floor=0.5)
    for _ in range(250):
        model.weight.grad = torch.zeros_like(model.weight)
        optimizer.step()
    assert int(model.weight.any(1).sum()) == 2
