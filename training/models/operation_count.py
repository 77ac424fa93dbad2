"""The cost of a network: parameters, and multiply-adds for one sample."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def count_parameters(model: nn.Module) -> int:
    """Return the number of parameters; buffers are not counted, a shared parameter is counted once.

    >>> count_parameters(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in model.parameters())


def multiply_adds(model: nn.Module, input_shape: Sequence[int]) -> int:
    """Return the multiplications (each with its addition) in convolutions and linear layers for one sample.

    Every output value of a layer costs one per weight of its filter or row. Biases, BatchNorm, activations and pooling
    are not counted, by convention. A layer that runs twice counts twice. The model may be on the meta device.

    >>> multiply_adds(nn.Conv2d(3, 8, 3, padding=1), (3, 4, 4)) == 4 * 4 * 8 * 3 * 3 * 3
    True
    """
    total = 0

    def count(layer: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        weight = layer.weight
        assert isinstance(weight, Tensor)
        total += output.numel() * weight[0].numel()

    modes = {module: module.training for module in model.modules()}
    layers = [module for module in modes if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    first = next(model.parameters(), torch.empty(0))
    try:
        # Evaluation mode changes neither running statistics nor generators.
        model.eval()
        with torch.no_grad():
            model(torch.zeros(1, *input_shape, device=first.device, dtype=first.dtype))
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes.items():
            module.training = training
    return total
