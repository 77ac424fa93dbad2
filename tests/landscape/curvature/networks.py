"""Small networks in float64 with their full Hessian by torch.func, an independent implementation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, hessian

from valleyscope.landscape.geometry.vectors import flatten, views


@dataclass(frozen=True, eq=False)
class Case:
    model: nn.Module
    data: tuple[Tensor, Tensor]
    point: Tensor
    matrix: Tensor
    """The Hessian [D, D] of the mean loss."""


def smooth() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 3))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3)
    )


def normalised() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 3), nn.BatchNorm1d(3)
    )


def case(model: nn.Module, shape: tuple[int, ...], samples: int = 60, *, training: bool = False) -> Case:
    """The network with random data; ``training`` lets BatchNorm use the statistics of the whole batch."""
    torch.manual_seed(3)
    model = model.double()
    for parameter in model.parameters():
        parameter.data.copy_(0.6 * torch.randn(parameter.shape))
    x, y = torch.randn(samples, *shape, dtype=torch.float64), torch.randint(3, (samples,))
    point = flatten(model)
    model.train(training)

    def loss(vector: Tensor) -> Tensor:
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        return F.cross_entropy(functional_call(model, {**views(model, vector), **buffers}, (x,)), y)

    matrix = (_by_differences(grad(loss), point) if training else hessian(loss)(point)).detach()
    return Case(model, (x, y), point, (matrix + matrix.T) / 2)


def _by_differences(gradient: Callable[[Tensor], Tensor], point: Tensor, step: float = 1e-5) -> Tensor:
    """The Hessian by central differences; torch.func.hessian is wrong for BatchNorm in training mode."""
    steps = step * torch.eye(len(point), dtype=point.dtype)
    return torch.stack([(gradient(point + row) - gradient(point - row)) / (2 * step) for row in steps])
