"""The first layer of a network at many points of weight space, from a few feature maps computed once per block.

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

from valleyscope.landscape.convolution.memory_order import CHANNELS_LAST, Order, as_images, to_samples_last
from valleyscope.landscape.convolution.winograd import best_order_after
from valleyscope.landscape.geometry.linear_combination import LinearCombination
from valleyscope.landscape.network.call_recorder import CallRecord
from valleyscope.landscape.network.fx_graph import is_altered
from valleyscope.landscape.network.graph_rewrites import Window, remove_pooling

_PART_BYTES = 1_000_000  # bytes of the maps that are pooled at once
_LINEAR_IN_WEIGHTS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


class FirstLayer:
    """Replaces the forward pass of a layer that sees the raw data.

    With a ``window`` (height, width) it also does the max-pooling that follows: its maps have the pixels of a window on
    the first axis, where the maximum is cheap, and its images are in the given memory order. With ``reuse`` all outputs
    are in the same memory: only for networks that do not need an output in the next call.
    """

    is_replacement = True

    def __init__(
        self,
        layer: nn.Module,
        *,
        window: Window | None = None,
        order: Order = CHANNELS_LAST,
        reuse: bool = False,
    ) -> None:
        self.layer = layer
        self._plain = copy.copy(layer)
        self._window = window
        self._order = order
        self._reuse = reuse
        self._basis: Sequence[dict[str, Tensor]] = ()
        self._cached_input: Tensor | None = None
        self._maps: FeatureMaps | PooledFeatureMaps | None = None
        self._coefficients: Sequence[float] = ()
        layer.forward = self

    def set_basis(self, basis: Sequence[dict[str, Tensor]]) -> None:
        """Set the layer's parameters in every basis vector."""
        self._basis = basis

    def clear(self) -> None:
        """Drop the maps of the last block of data."""
        self._maps = self._cached_input = None

    def set_point(self, coefficients: Sequence[float]) -> None:
        """Set the weights to a point."""
        self._coefficients = coefficients

    def __call__(self, x: Tensor) -> Tensor:
        # The input is kept, so that no other one can reuse its memory and be mistaken for it.
        if self._maps is None or self._cached_input is None or not _is_same(x, self._cached_input):
            images = [functional_call(self._plain, part, (x,)) for part in self._basis]
            if self._window is None:
                self._maps = FeatureMaps(images, self._reuse)
            else:
                self._maps = PooledFeatureMaps(images, self._window, self._order)
            self._cached_input = x
        return self._maps.at(self._coefficients)


def _is_same(x: Tensor, other: Tensor) -> bool:
    return x.data_ptr() == other.data_ptr() and x.shape == other.shape and x.stride() == other.stride()


class FeatureMaps:
    """Feature maps of a block of data, one per basis vector, and their combination."""

    def __init__(self, maps: Sequence[Tensor], reuse: bool) -> None:
        self._maps = LinearCombination(maps)
        self._output = torch.empty_like(maps[0]) if reuse else None

    def at(self, coefficients: Sequence[float]) -> Tensor:
        """The output of the layer at a point."""
        return self._maps.at(coefficients, out=self._output)


class PooledFeatureMaps:
    """Feature maps with max-pooling, computed in parts that fit in the cache."""

    def __init__(self, images: Sequence[Tensor], window: Window, order: Order) -> None:
        maps = [_windows(image, window, order) for image in images]
        self._output = torch.empty_like(maps[0][0])
        length = max(1, len(self._output) * _PART_BYTES // maps[0].nbytes)
        self._parts = [
            (LinearCombination([map[:, part] for map in maps]), self._output[part])
            for part in (slice(start, start + length) for start in range(0, len(self._output), length))
        ]
        self._combined = torch.empty_like(maps[0][:, :length])
        self._order = order

    def at(self, coefficients: Sequence[float]) -> Tensor:
        """The pooled output of the layer at a point, always in the same memory."""
        for combination, target in self._parts:
            torch.amax(combination.at(coefficients, out=self._combined[:, : len(target)]), dim=0, out=target)
        return as_images(self._output, self._order)


def _windows(images: Tensor, window: Window, order: Order) -> Tensor:
    """The pixels of a window on the first axis, then the axes of the pooled images in memory order."""
    height, width = window
    rows, columns = images.shape[2] // height, images.shape[3] // width
    if order[-1] == 0:
        # A matrix transpose is fast in torch; other permutations are not.
        images = to_samples_last(images)
    cut = images[:, :, : rows * height, : columns * width]
    apart: Tensor = cut.unflatten(3, (columns, width)).unflatten(2, (rows, height))  # type: ignore[no-untyped-call]
    return apart.permute(3, 5, *((0, 1, 2, 4)[axis] for axis in order)).flatten(0, 1).contiguous()


def cache_first_layer(network: nn.Module, record: CallRecord) -> FirstLayer | None:
    """Replace the forward pass of the layer that sees the raw data, if there is one and it was called once.

    In a traced network it also does the max-pooling after a convolution of images.
    """
    calls = Counter(call.module for call in record.calls)
    candidates = (call.module for call in record.calls if call.raw and calls[call.module] == 1)
    layer = next((layer for layer in candidates if _is_linear_in_weights(layer)), None)
    if layer is None:
        return None
    if not isinstance(network, fx.GraphModule):
        return FirstLayer(layer)
    window = remove_pooling(network, layer) if isinstance(layer, nn.Conv2d) else None
    return FirstLayer(layer, window=window, order=best_order_after(network, layer), reuse=True)


def _is_linear_in_weights(layer: nn.Module) -> bool:
    """Whether a layer is linear in its weights for sure: without hooks, and with weights that are parameters."""
    return type(layer) in _LINEAR_IN_WEIGHTS and "weight" in layer._parameters and not is_altered(layer)
