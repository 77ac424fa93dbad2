"""Networks with zero groups for the tests of compaction."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.training import partition
from valleyscope.training.parameter_groups import prunable

SMALL: dict[str, dict[str, Any]] = {
    "vgg16": {"width": 4},
    "vgg16_bn": {"width": 4},
    "resnet56": {"depth": 14, "width": 4},
    "wrn28x10": {"depth": 10, "widen": 1},
}
"""Options that make the named models small."""


def with_zero_groups(
    model: nn.Module, share: float = 0.5, *, seed: int = 0, bias: bool = True, tie: bool = False
) -> nn.Module:
    """The network in evaluation mode with random BatchNorm statistics, biases and, in each layer, zero groups."""
    generator = torch.Generator().manual_seed(seed)

    def random(like: Tensor, low: float, high: float) -> Tensor:
        return torch.rand(like.shape, generator=generator) * (high - low) + low

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) and module.running_mean is not None:
                assert module.running_var is not None
                module.running_mean.copy_(random(module.running_mean, -0.5, 0.5))
                module.running_var.copy_(random(module.running_var, 0.5, 1.5))
                module.weight.copy_(random(module.weight, 0.5, 1.5))
            if isinstance(bias_of := getattr(module, "bias", None), Tensor):
                bias_of.copy_(random(bias_of, -0.5, 0.5))
        for group in prunable(partition(model, bias=bias, tie_residual=tie)):
            dead = torch.rand(len(group["params"][0]), generator=generator) < share
            offsets = group.get("offsets") or [0] * len(group["params"])
            for parameter, offset in zip(group["params"], offsets, strict=True):
                parameter[dead[offset : offset + len(parameter)]] = 0
    return model.eval()


def difference(a: nn.Module, b: nn.Module, x: Tensor) -> float:
    """The largest difference of the outputs, as a share of the largest output."""
    with torch.no_grad():
        expected = a(x)
        return float((expected - b(x)).abs().max() / expected.abs().max().clamp_min(1e-30))
