"""The first layer of a network at many points of weight space, from a few maps computed once for a block of data.

A convolution or linear layer is linear in its weight and bias together. At the points w = sum_j c_j b_j of a plane or
curve its output is therefore

    layer(x; w) = sum_j c_j layer(x; b_j),

and the maps layer(x; b_j), one for each basis vector, serve every point.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call

from landscape.combination import Combination
from landscape.graphs import is_hooked
from landscape.shortcuts import take_pooling
from landscape.trial import Trial

_LINEAR_IN_WEIGHTS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


class FirstLayer:
    """Stands in for the forward pass of a layer that sees the raw data.

    With a ``window`` (height, width) it also does the max-pooling over windows that follows: its maps are kept with the
    pixels of a window on an axis of their own in front, where the maximum over them is cheap.
    """

    def __init__(self, layer: nn.Module, window: tuple[int, int] | None = None) -> None:
        self.layer = layer
        self._plain = copy.copy(layer)
        self._window = window
        self._basis: Sequence[dict[str, Tensor]] = ()
        self._maps: Combination | None = None
        self._buffer: Tensor | None = None
        self._coefficients: Sequence[float] = ()
        layer.forward = self

    def span(self, basis: Sequence[dict[str, Tensor]]) -> None:
        """Take the layer's parameters in every basis vector."""
        self._basis = basis

    def forget(self) -> None:
        """Drop the maps, before another block of data is seen."""
        self._maps = self._buffer = None

    def move(self, coefficients: Sequence[float]) -> None:
        """Go to a point."""
        self._coefficients = coefficients

    def __call__(self, x: Tensor) -> Tensor:
        if self._maps is None:
            maps = [self._arranged(functional_call(self._plain, part, (x,))) for part in self._basis]
            self._maps = Combination(maps)
            self._buffer = None if self._window is None else torch.empty_like(maps[0])
        combined = self._maps.at(self._coefficients, out=self._buffer)
        return combined if self._window is None else combined.amax(dim=0).movedim(-1, 1)

    def _arranged(self, image: Tensor) -> Tensor:
        """(samples, channels, height, width) as (pixels of a window, samples, rows, columns, channels)."""
        if self._window is None:
            return image
        height, width = self._window
        rows, columns = image.shape[2] // height, image.shape[3] // width
        cut = image[:, :, : rows * height, : columns * width]
        windows: Tensor = cut.unflatten(3, (columns, width)).unflatten(2, (rows, height))  # type: ignore[no-untyped-call]
        return windows.permute(3, 5, 0, 2, 4, 1).flatten(0, 1).contiguous()


def cache_first_layer(network: nn.Module, trial: Trial) -> FirstLayer | None:
    """Replace the forward pass of the layer that saw the raw data in the trial, if there is one and it was called once.

    Where max-pooling follows a convolution of images in a traced network, the layer takes it over.
    """
    calls = Counter(call.module for call in trial.calls)
    candidates = (call.module for call in trial.calls if call.raw and calls[call.module] == 1)
    layer = next((layer for layer in candidates if _is_linear_in_weights(layer)), None)
    if layer is None:
        return None
    if isinstance(network, fx.GraphModule) and isinstance(layer, nn.Conv2d):
        return FirstLayer(layer, take_pooling(network, layer))
    return FirstLayer(layer)


def _is_linear_in_weights(layer: nn.Module) -> bool:
    """Whether a layer surely is: hooks could do anything, and a weight may be computed from other parameters."""
    return type(layer) in _LINEAR_IN_WEIGHTS and "weight" in layer._parameters and not is_hooked(layer)
