"""The first layer of a network at many points of weight space, from a few maps computed once for a block of data.

A convolution or linear layer is linear in its weight and bias together. At the points w = sum_j c_j b_j of a plane or
curve its output is therefore

    layer(x; w) = sum_j c_j layer(x; b_j),

and the maps layer(x; b_j), one for each basis vector, serve every point.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from landscape.combination import combination

_LINEAR_IN_WEIGHTS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


class FirstLayer:
    """Stands in for the forward pass of a layer that sees the raw data.

    ``window`` (height, width) is set where max-pooling over windows that do not overlap follows: the maps are then kept
    with the pixels of a window on an axis of their own in front, where the maximum over them is cheap.
    """

    def __init__(self, layer: nn.Module, window: tuple[int, int] | None = None) -> None:
        self.window = window
        self._plain = copy.copy(layer)
        self._basis: Sequence[Mapping[str, Tensor]] = ()
        self._maps: list[Tensor] = []
        self._coefficients: Sequence[float] = ()
        layer.forward = self

    def span(self, basis: Sequence[Mapping[str, Tensor]]) -> None:
        """Take the layer's parameters in every basis vector."""
        self._basis = basis

    def forget(self) -> None:
        """Drop the maps: a new block of data begins, or the work is done."""
        self._maps = []

    def move(self, coefficients: Sequence[float]) -> None:
        """Go to a point."""
        self._coefficients = coefficients

    def __call__(self, x: Tensor) -> Tensor:
        if not self._maps:
            self._maps = [self._arranged(functional_call(self._plain, part, (x,))) for part in self._basis]
        combined = combination(self._maps, self._coefficients)
        return combined if self.window is None else combined.amax(dim=0).movedim(-1, 1)

    def _arranged(self, image: Tensor) -> Tensor:
        """(samples, channels, height, width) as (pixels of a window, samples, rows, columns, channels)."""
        if self.window is None:
            return image
        height, width = self.window
        rows, columns = image.shape[2] // height, image.shape[3] // width
        cut = image[:, :, : rows * height, : columns * width]
        windows = cut.unflatten(3, (columns, width)).unflatten(2, (rows, height))
        return windows.permute(3, 5, 0, 2, 4, 1).flatten(0, 1).contiguous()


def find_first_layer(network: nn.Module, x: Tensor) -> nn.Module | None:
    """The layer that sees the raw data (or a view of it, such as the flattened images) and is called once; or None.

    It is found by watching a trial run on ``x``. A layer with hooks, or whose weight is computed from other parameters,
    need not be linear in the parameters and is left alone.
    """
    seen: dict[nn.Module, list[bool]] = {}
    untouched = x._version

    def watch(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        raw = inputs[0].untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and x._version == untouched
        seen.setdefault(layer, []).append(raw)

    hooks = [layer.register_forward_pre_hook(watch) for layer in network.modules() if _is_plain(layer)]
    try:
        with torch.no_grad():
            network(x)
    finally:
        for hook in hooks:
            hook.remove()
    return next((layer for layer, raw in seen.items() if raw == [True]), None)


def _is_plain(layer: nn.Module) -> bool:
    hooked = layer._forward_hooks or layer._forward_pre_hooks
    return type(layer) in _LINEAR_IN_WEIGHTS and "weight" in layer._parameters and not hooked
