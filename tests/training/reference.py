"""AltSDP's equations written down plainly in float64, and small networks to compare it on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from valleyscope.training.altsdp import AltSDP
from valleyscope.training.parameter_groups import partition
from valleyscope.training.zero_groups import sparsity

MODES = ["prox", "dual", "cumulative"]
STRUCTURES = ["filter", "kernel", "vector", "element"]
# Accumulated thresholds that leave some groups and remove others, for weights of the networks below.
TARGETS = {"filter": 0.8, "kernel": 0.4, "vector": 0.25, "element": 0.12}
STEPS = 9


def positions(shapes: Sequence[tuple[int, ...]], structure: str) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
    """Groups of a layer, each a list of (tensor, index): the weight is tensor 0, what shares its rows comes after."""
    weight = shapes[0]
    if len(weight) == 2 and structure in ("kernel", "vector"):
        structure = "filter"
    outer = {"filter": 1, "kernel": 2, "vector": len(weight) - 1, "element": len(weight)}[structure]
    for head in itertools.product(*(range(size) for size in weight[:outer])):
        tails = itertools.product(*(range(size) for size in weight[outer:]))
        group: list[tuple[int, tuple[int, ...]]] = [(0, (*head, *tail)) for tail in tails]
        yield group + [(companion, head) for companion in range(1, len(shapes))]


class Reference:
    """The paper's updates in float64, one group after the other, for one layer; without a structure it is plain SGD."""

    def __init__(self, weights: Sequence[Tensor], structure: str | None, **settings: Any) -> None:
        self.w = [weight.detach().double().cpu().numpy().copy() for weight in weights]
        self.v = [weight.copy() for weight in self.w]
        self.momentum_buffer = [np.zeros_like(weight) for weight in self.w]
        self.structure = structure
        self.mode, self.c, self.mu = settings["mode"], settings["c"], settings["mu"]
        self.momentum, self.decay = settings["momentum"], settings["weight_decay"]
        self.floor = settings.get("floor", 0.0)
        self.n = 0
        self.sum = 0.0

    def step(self, gradients: Sequence[Tensor], lr: float) -> None:
        self.n += 1
        n, rate = self.n, lr / (1 - self.momentum)
        g = self.c * math.sqrt(rate) * (n * rate) ** self.mu
        before = (n - 1) ** self.mu if n > 1 else 0.0  # also at μ = 0 the threshold begins with the first step
        self.sum += self.c * rate ** (self.mu + 0.5) * (n**self.mu - before) if self.mode == "dual" else g
        threshold = g if self.mode == "prox" else self.sum
        moving = self.w if self.mode == "prox" or self.structure is None else self.v
        for i, gradient in enumerate(gradients):
            direction = gradient.double().cpu().numpy() + self.decay * self.w[i]
            self.momentum_buffer[i] = self.momentum * self.momentum_buffer[i] + direction
            moving[i] = moving[i] - lr * self.momentum_buffer[i]
        if self.structure is None:
            return
        groups = list(positions([weight.shape for weight in self.w], self.structure))
        norms = [math.sqrt(sum(moving[tensor][index] ** 2 for tensor, index in group)) for group in groups]
        keep = math.ceil(self.floor * len(groups))
        if self.floor and keep < len(groups):
            threshold = min(threshold, max((norm for norm in norms if norm < sorted(norms)[-keep]), default=0.0))
        elif self.floor:
            threshold = 0.0
        self.zero = 0
        for group, norm in zip(groups, norms, strict=True):
            scale = max(0.0, 1 - threshold / norm) if norm > 0 else 0.0
            self.zero += scale == 0
            for tensor, index in group:
                self.w[tensor][index] = scale * moving[tensor][index]


class Case:
    """A network, AltSDP on a partition of it, and the reference on the same layers under the same random gradients."""

    def __init__(
        self,
        structure: str = "filter",
        dtype: torch.dtype = torch.float64,
        memory_format: torch.memory_format = torch.contiguous_format,
        bias: bool = True,
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        self.settings = {"mode": "prox", "mu": 0.51, "momentum": 0.0, "weight_decay": 0.0} | settings
        self.settings.setdefault("c", scale_for(TARGETS[structure], self.settings))
        torch.manual_seed(1)
        self.model = nn.Sequential(
            nn.Conv2d(3, 6, 3),
            nn.BatchNorm2d(6),
            nn.Conv2d(6, 4, (2, 3), bias=False),
            nn.Flatten(),
            nn.Linear(5, 7),
            nn.Linear(7, 3),
        )
        nn.init.normal_(self.model[1].weight)
        self.model.to(device, dtype, memory_format=memory_format)  # type: ignore[call-overload]
        self.groups = partition(self.model, structure, bias)  # type: ignore[arg-type]
        assert len(self.groups) == 4
        self.references = [Reference(group["params"], group["structure"], **self.settings) for group in self.groups]
        self.generator = torch.Generator().manual_seed(2)

    def optimizer(self, **more: Any) -> AltSDP:
        return AltSDP(copy_groups(self.groups), lr=RATES[0], **self.settings, **more)

    def gradients(self, layout: torch.memory_format = torch.preserve_format) -> list[list[Tensor]]:
        """Random gradients of every layer, in the network's type and memory layout or in another one."""
        fresh = []
        for group in self.groups:
            fresh.append([])
            for parameter in group["params"]:
                values = 0.1 * torch.randn(parameter.shape, generator=self.generator, dtype=torch.float64)
                parameter.grad = torch.empty_like(parameter, memory_format=layout).copy_(values)
                fresh[-1].append(parameter.grad)
        return fresh

    def run(self, optimizer: AltSDP, steps: Sequence[int] = range(STEPS), **more: Any) -> None:
        for n in steps:
            for group in optimizer.param_groups:
                group["lr"] = RATES[n]
            for reference, gradients in zip(self.references, self.gradients(**more), strict=True):
                reference.step(gradients, RATES[n])
            optimizer.step()

    def check(self, tolerance: float = 1e-12) -> None:
        layers = zip(self.groups, self.references, strict=True)
        pairs = [(p, w) for group, reference in layers for p, w in zip(group["params"], reference.w, strict=True)]
        for parameter, expected in pairs:
            found = parameter.detach().double().cpu().numpy()
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            if tolerance < 1e-9:
                assert ((found == 0) == (expected == 0)).all()
        zero = sum(reference.zero for reference in self.references[:-1])
        assert 0 < zero < sum(layer.groups for layer in sparsity(self.groups).layers)


# A learning rate that is halved and raised again: n must go on counting, γ must be the current one.
RATES = [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.2, 0.2, 0.025]


def scale_for(target: float, settings: dict[str, Any]) -> float:
    """The c with which the threshold of these steps adds up to `target`."""
    mu, total = settings["mu"], 0.0
    for n, lr in enumerate(RATES, start=1):
        rate = lr / (1 - settings["momentum"])
        dual = rate ** (mu + 0.5) * (n**mu - ((n - 1) ** mu if n > 1 else 0))
        total += dual if settings["mode"] == "dual" else math.sqrt(rate) * (n * rate) ** mu
    return target / total


def copy_groups(groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parameter groups of the same parameters: torch's optimisers keep and change the dictionaries they are given."""
    return [dict(group) for group in groups]


def network(dtype: torch.dtype = torch.float32) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten(), nn.Linear(80, 6), nn.ReLU(), nn.Linear(6, 4)
    )
    return model.to(dtype), torch.randn(12, 2, 6, 6, dtype=dtype), torch.arange(12) % 4


def descend(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def weights_of(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def assert_same_bits(first: nn.Module, second: nn.Module) -> None:
    for one, other in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(one, other)
