"""The multiply-adds that are left when groups of a network are zero, counted without removing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.training.batch_norm import NORMS
from valleyscope.training.parameter_groups import broadcast_masks

_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


@dataclass(frozen=True)
class LayerOperations:
    """What is left of a layer in one forward pass: outputs that are computed and read, inputs that are not zero."""

    outputs: int
    inputs: int
    all_inputs: int
    multiply_adds: int
    all_multiply_adds: int


class RemainingOperations:
    """Counts multiply-adds of a network of which some filters are zero.

    A copy of the network with weights 1 where they are not zero, and 0 else, is evaluated on an image of ones: since
    nothing is negative, a channel is zero exactly if it is zero for every image. The gradient of its output tells which
    channels are read. A layer then costs positions x outputs read x inputs that are not zero x kernel size.
    """

    def __init__(self, model: nn.Module, groups: Sequence[Mapping[str, Any]], shape: Sequence[int]) -> None:
        self._model = model
        self._shape = tuple(shape)
        self._copy = deepcopy(model).cpu().double().eval()
        copies = dict(zip(model.parameters(), self._copy.parameters(), strict=True))
        self._layers = {
            group["name"]: {**group, "params": [copies[parameter] for parameter in group["params"]]}
            for group in groups
            if group["structure"] == "filter"
        }
        for norm in (module for module in self._copy.modules() if isinstance(module, NORMS)):
            if norm.track_running_stats:
                norm.reset_running_stats()
        self._calls: list[tuple[str, nn.Module, Tensor, Tensor]] = []
        for name, layer in self._copy.named_modules():
            if isinstance(layer, _LAYERS):
                layer.register_forward_hook(self._watcher(name))

    def _watcher(self, name: str) -> Any:
        def watch(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            # Scaled, so that no depth makes the values overflow or vanish.
            output = output / output.detach().amax().clamp_min(1e-300)
            output.retain_grad()
            self._calls.append((name, layer, inputs[0].detach(), output))
            return output

        return watch

    def layers(self, removed: Mapping[str, Tensor] | None = None) -> dict[str, LayerOperations]:
        """The cost of each layer, in the order of execution, if the groups `removed` (by layer) are zero, too."""
        with torch.no_grad():
            for parameter, copy in zip(self._model.parameters(), self._copy.parameters(), strict=True):
                copy.copy_(parameter != 0)
            for name, gone in (removed or {}).items():
                for weights, mask in broadcast_masks(self._layers[name], gone.cpu()):
                    weights.masked_fill_(mask, 0)
        self._calls = []
        with torch.enable_grad():
            logits = self._copy(torch.ones(1, *self._shape, dtype=torch.float64).requires_grad_())
            logits.sum().backward()
        found: dict[str, LayerOperations] = {}
        for name, layer, inputs, output in self._calls:
            cost = _cost(layer, inputs, output)
            if name in found:  # a layer that runs twice costs twice
                before = found[name]
                cost = LayerOperations(
                    cost.outputs, cost.inputs, cost.all_inputs,
                    cost.multiply_adds + before.multiply_adds, cost.all_multiply_adds + before.all_multiply_adds,
                )  # fmt: skip
            found[name] = cost
        self._copy.zero_grad()
        self._calls = []
        return found

    def share(self, removed: Mapping[str, Tensor] | None = None) -> float:
        """The share of the full network's multiply-adds that is left."""
        layers = self.layers(removed).values()
        return sum(layer.multiply_adds for layer in layers) / sum(layer.all_multiply_adds for layer in layers)


def _cost(layer: nn.Module, inputs: Tensor, output: Tensor) -> LayerOperations:
    weight = layer.weight
    assert isinstance(weight, Tensor)
    linear = isinstance(layer, nn.Linear)
    channels_last = -1 if linear else 1
    computed = (weight.detach() != 0).flatten(1).any(1)
    gradient = torch.zeros_like(output) if output.grad is None else output.grad
    read = _any_but(gradient != 0, channels_last)
    live = computed & read
    positions = output.numel() // weight.shape[0]
    full = positions * weight.numel()
    present = _any_but(inputs != 0, channels_last)
    if getattr(layer, "groups", 1) > 1:
        return LayerOperations(
            int(live.sum()), int(present.sum()), len(present), positions * int(live.sum()) * weight[0].numel(), full
        )
    used = present & (weight.detach()[live] != 0).transpose(0, 1).flatten(1).any(1)
    kernel = weight[0, 0].numel()
    left = positions * int(live.sum()) * int(used.sum()) * kernel
    return LayerOperations(int(live.sum()), int(used.sum()), len(present), left, full)


def _any_but(values: Tensor, dim: int) -> Tensor:
    """Whether any entry is true, for each index of one dimension."""
    return values.movedim(dim, 0).flatten(1).any(1)
