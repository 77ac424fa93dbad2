"""Least squares after a cut: each layer's weights are refitted to the outputs that the network had before.

Layer by layer in the order of execution, with X' the inputs of the layer in the cut network (earlier layers refitted
already) and Y the layer's outputs in the network before the cut, on the same training images,

    min over Δ  ||X'(W + Δ) - Y||² + ε ||Δ||²

for the filters that are left (the reconstruction of He, Zhang and Sun 2017, and of Luo et al. 2017, for every layer in
turn). It needs inputs and outputs of layers alone, so BatchNorm and residual additions between them do not matter; what
a removed filter added to a residual sum is made up for by the layers that read the sum. Grouped convolutions are left.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, unfold

from valleyscope.training.methods.one_shot import OneShot

Layer = nn.Conv2d | nn.Linear
_MOST_IMAGES = 1024
_BATCH = 64
_ROWS_PER_INPUT = 10
_LEAST_ROWS = 8192
_RIDGE = 1e-5


class OneShotLeastSquares(OneShot):
    """ls."""

    def after_cut(self, original: nn.Module) -> None:
        refit(self.context.model, original, self.context.data.x_train)


class _Reached(Exception):
    """The layer in question was reached: the rest of the forward pass is not needed."""


@torch.no_grad()
def refit(model: nn.Module, original: nn.Module, x: Tensor) -> None:
    """Refit the layers of a cut network to the outputs of the network before, on samples of `x`."""
    modes = {module: module.training for module in (*model.modules(), *original.modules())}
    model.eval()
    original.eval()
    samples = x[:: -(-len(x) // _MOST_IMAGES)]
    before, after = dict(original.named_modules()), dict(model.named_modules())
    for name in executed_layers(model, samples[:1]):
        layer = after[name]
        if not isinstance(layer, nn.Conv2d | nn.Linear) or getattr(layer, "groups", 1) > 1:
            continue
        live = layer.weight.flatten(1).any(1)
        gram, product = _normal_equations(model, layer, original, before[name], samples)
        if gram is None:
            continue
        ridge = _RIDGE * float(gram.diagonal().mean())
        change = torch.linalg.solve(gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device), product)
        change = torch.where(live, change, 0).to(layer.weight.dtype)
        if layer.bias is not None:
            layer.bias.add_(change[-1])
            change = change[:-1]
        layer.weight.add_(change.T.reshape(layer.weight.shape))
    for module, training in modes.items():
        module.training = training


def executed_layers(model: nn.Module, x: Tensor) -> list[str]:
    """The names of the convolutions and linear layers in the order in which they run."""
    order: list[str] = []
    hooks = [
        module.register_forward_hook(lambda *_, name=name: order.append(name))
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear)
    ]
    training = model.training
    with torch.no_grad():
        model.eval()(x)
    model.train(training)
    for hook in hooks:
        hook.remove()
    return list(dict.fromkeys(order))


def input_rows(layer: Layer, inputs: Tensor) -> Tensor:
    """The inputs of every output value as rows, [samples, positions, weights of a filter]."""
    if isinstance(layer, nn.Linear):
        return inputs.flatten(1, -2) if inputs.dim() > 2 else inputs[:, None]
    if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        raise ValueError(f"least squares needs convolutions with padding by numbers of zeros, not {layer.padding!r}")
    columns = unfold(inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    return columns.transpose(1, 2)


def _normal_equations(
    model: nn.Module, layer: Layer, original: nn.Module, twin: nn.Module, samples: Tensor
) -> tuple[Tensor | None, Tensor]:
    """X'ᵀX' and X'ᵀ(Y - X'W) over a part of all positions; None where the layer's inputs did not change."""
    size = layer.weight[0].numel() + (layer.bias is not None)
    gram = torch.zeros(size, size, dtype=torch.float64, device=samples.device)
    product = torch.zeros(size, layer.weight.shape[0], dtype=torch.float64, device=samples.device)
    generator = torch.Generator().manual_seed(0)
    wanted = max(_LEAST_ROWS, _ROWS_PER_INPUT * size)
    changed = False
    for block in torch.split(samples, _BATCH):
        inputs, _ = at_layer(model, layer, block)
        inputs_before, outputs = at_layer(original, twin, block)
        changed = changed or not torch.equal(inputs, inputs_before)
        rows = input_rows(layer, inputs)
        positions = rows.shape[1]
        share = -(-wanted // len(samples))  # positions of each image
        chosen = torch.randperm(positions, generator=generator)[: max(1, share)].to(samples.device)
        x = rows[:, chosen].flatten(0, 1).double()
        y = _output_rows(outputs)[:, chosen].flatten(0, 1).double()
        weight = layer.weight.detach().flatten(1).double().T
        if layer.bias is not None:
            x = pad(x, (0, 1), value=1.0)
            weight = torch.cat([weight, layer.bias.detach().double()[None]])
        gram += x.T @ x
        product += x.T @ (y - x @ weight)
    return (gram if changed else None), product


def _output_rows(outputs: Tensor) -> Tensor:
    if outputs.dim() == 2:
        return outputs[:, None]
    return outputs.flatten(2).transpose(1, 2)


def at_layer(model: nn.Module, layer: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and outputs of one layer."""
    found: list[Any] = []

    def stop(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        found.extend((inputs[0], output))
        raise _Reached

    hook = layer.register_forward_hook(stop)
    try:
        model(x)
    except _Reached:
        pass
    finally:
        hook.remove()
    return found[0], found[1]
