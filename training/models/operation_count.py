"""The cost of a network: parameters, and multiply-adds for one sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    first = next(model.parameters(), torch.empty(0))
    sample = torch.zeros(1, *input_shape, device=first.device, dtype=first.dtype)
    return sum(layer_multiply_adds(model, sample).values())


def layer_multiply_adds(model: nn.Module, *inputs: Tensor) -> dict[str, int]:
    """Return the multiply-adds of each convolution and linear layer that runs, by its name, for these inputs."""
    counts: dict[str, int] = {}
    layers = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear)
    }

    def counting(name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def count(layer: nn.Module, _: object, output: Tensor) -> None:
            weight = layer.weight
            assert isinstance(weight, Tensor)
            counts[name] = counts.get(name, 0) + output.numel() * weight[0].numel()

        return count

    modes = {module: module.training for module in model.modules()}
    hooks = [layer.register_forward_hook(counting(name)) for name, layer in layers.items()]
    try:
        # Evaluation mode changes neither running statistics nor generators.
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes.items():
            module.training = training
    return counts
