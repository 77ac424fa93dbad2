"""Convolutions by Winograd's minimal filtering, at many points of weight space.

CPU libraries do not offer this for float32. For wide layers it takes half the time of a plain convolution, at an
error of about 1e-6 instead of 2e-7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, fx, nn

from valleyscope.landscape.convolution.memory_order import CHANNELS_LAST, Order, empty_images
from valleyscope.landscape.convolution.winograd_1d import RowConvolver, RowFilter
from valleyscope.landscape.convolution.winograd_2d import TileConvolver, TileFilter
from valleyscope.landscape.convolution.workspace import Workspace
from valleyscope.landscape.geometry.linear_combination import LinearCombination
from valleyscope.landscape.network.call_recorder import CallRecord
from valleyscope.landscape.network.fx_graph import is_altered, module_of
from valleyscope.landscape.network.graph_rewrites import (
    Window,
    flatten_samples,
    only_consumer,
    pooled_in_place,
    remove_pooling,
)

_MOST_TRANSFORMED = 250_000_000
"""Bytes of transformed weights of all layers, beyond which layers share the memory for theirs."""
_ALGORITHMS: dict[int, type[RowFilter | TileFilter]] = {3: TileFilter, 5: RowFilter}
"""By taps: filtering 5 x 5 kernels along both axes would lose too much accuracy."""


class WinogradConvolution:
    """Replaces the forward pass of a convolution, and of the max-pooling after it, at points of weight space.

    The weights of a point are combined first and transformed then: transformed weights are four times as many. With
    ``reuse`` every output is in the same memory: only for networks that call the layer once in a forward pass and do
    not need its output in the next one. With ``share_weights`` the layer's own are transformed at every call, in memory
    that all layers share: for networks so large that a second copy of the weights is too much.
    """

    is_replacement = True

    def __init__(self, layer: nn.Conv2d, workspace: Workspace, rows: int, columns: int, *, reuse: bool = False) -> None:
        self.share_weights = False
        self.layer = layer
        self.order = CHANNELS_LAST
        self.window: Window = (1, 1)
        self.algorithm = algorithm_for(layer, rows, columns)
        self._reuse = reuse
        self._workspace = workspace
        self._convolvers: dict[tuple[int, int, int], RowConvolver | TileConvolver] = {}
        self._generation = workspace.generation
        self._kernel_transform = self.algorithm.kernel_transform.float()
        self._weights: LinearCombination | None = None
        self._combined: Tensor | None = None
        self._transformed: Tensor | None = None
        self._output: Tensor | None = None
        self._forward = layer.forward
        layer.forward = self  # type: ignore[method-assign, assignment]

    @property
    def weight(self) -> nn.Parameter:
        """The parameter that this object replaces."""
        return cast("nn.Parameter", self.layer.weight)

    def set_basis(self, basis: Sequence[dict[str, Tensor]]) -> None:
        """Set the layer's parameters in every basis vector."""
        self.clear()
        if self.share_weights:
            return
        self._weights = LinearCombination([self.algorithm.weight_matrix(part["weight"]) for part in basis])

    def set_point(self, coefficients: Sequence[float]) -> None:
        """Set the weights to a point."""
        if self._weights is None:
            return
        self._combined = self._weights.at(coefficients, out=self._combined)
        if self._transformed is None:
            self._transformed = self._combined.new_empty(len(self._kernel_transform), self._combined.shape[1])
        torch.mm(self._kernel_transform, self._combined, out=self._transformed)

    def _transformed_weights(self) -> Tensor | None:
        """The transformed weights of the point; None before one is set, unless they are the layer's own."""
        if not self.share_weights:
            return self._transformed
        taps = self.algorithm.weight_matrix(self.weight.detach())
        shared = self._workspace.weights(len(self._kernel_transform), taps.shape[1])
        return torch.mm(self._kernel_transform, taps, out=shared)

    def clear(self) -> None:
        """Free the basis and the last output."""
        self._weights = self._combined = self._transformed = self._output = None

    def __call__(self, x: Tensor) -> Tensor:
        transformed = self._transformed_weights()
        if transformed is None:
            return pooled_in_place(self._forward(x), self.window)  # a trial run, before a point is set
        samples, channels, *sides = x.shape
        rows, columns = (side + 2 * self.algorithm.padding - self.algorithm.taps + 1 for side in sides)
        # Images may have another size than in the trial run; the transform of the weights stays.
        algorithm = replace(self.algorithm, rows=rows, columns=columns)
        if min(rows, columns) < 1:
            return self._forward(x)  # raises torch's error
        y = self._output_buffer(samples, algorithm, x)
        samples_per_group = algorithm.samples_per_group(channels, transformed.nbytes)
        for start in range(0, samples, samples_per_group):
            part = slice(start, min(samples, start + samples_per_group))
            values = self._convolver_for(algorithm, part.stop - start).convolve(x[part], transformed)
            values = pooled_in_place(values, self.window)
            if self.layer.bias is None:
                y[part] = values
            else:
                torch.add(values, self.layer.bias.view(-1, 1, 1), out=y[part])
        return y

    def _convolver_for(self, algorithm: RowFilter | TileFilter, samples: int) -> RowConvolver | TileConvolver:
        """The convolver for this many samples; cached while the workspace does not move."""
        key = samples, algorithm.rows, algorithm.columns
        if self._generation != self._workspace.generation or key not in self._convolvers:
            made = algorithm.convolver(self._workspace, samples, self.layer.in_channels, self.layer.out_channels)
            if self._generation != self._workspace.generation:
                self._convolvers.clear()
                self._generation = self._workspace.generation
            self._convolvers[key] = made
        return self._convolvers[key]

    def _output_buffer(self, samples: int, algorithm: RowFilter | TileFilter, like: Tensor) -> Tensor:
        high, wide = self.window
        shape = samples, self.layer.out_channels, algorithm.rows // high, algorithm.columns // wide
        if not self._reuse:
            return empty_images(shape, self.order, like)
        if self._output is None or self._output.shape != shape:
            self._output = empty_images(shape, self.order, like)
        return self._output


def algorithm_for(layer: nn.Conv2d, rows: int, columns: int) -> RowFilter | TileFilter:
    """The algorithm for a layer with this many rows and columns of output."""
    taps = layer.kernel_size[0]
    return _ALGORITHMS[taps].cheapest(taps, _padding(layer), rows, columns)


def find_winograd_layers(network: nn.Module, record: CallRecord, *, reuse: bool = False) -> list[WinogradConvolution]:
    """Replace the convolutions that get faster by it, except those that see the raw data (see ``first_layer_cache``).

    In a traced network they also do the max-pooling that follows, write their output in the memory order that suits the
    next layer, and with ``reuse`` in the same memory at all points.
    """
    calls = Counter(call.module for call in record.calls)
    owners = Counter(id(parameter) for module in network.modules() for parameter in module._parameters.values())
    workspace = Workspace()
    graph = network if isinstance(network, fx.GraphModule) else None
    found = [
        WinogradConvolution(call.module, workspace, *call.output[2:], reuse=reuse and graph is not None)
        for call in record.calls
        if not call.raw
        and calls[call.module] == 1
        and type(call.module) is nn.Conv2d
        and _is_supported(call.module)
        and owners[id(call.module.weight)] == 1
        and _is_faster(call.module, *call.output[2:])
    ]
    transformed = sum(
        convolution.weight.nbytes * len(convolution.algorithm.kernel_transform) // convolution.algorithm.taps**2
        for convolution in found
    )
    for convolution in found:
        convolution.share_weights = transformed > _MOST_TRANSFORMED
    if graph is not None:
        for convolution in found:
            convolution.window = remove_pooling(graph, convolution.layer) or (1, 1)
            convolution.order = best_order_after(graph, convolution.layer)
    return found


def best_order_after(graph: fx.GraphModule, layer: nn.Module) -> Order:
    """The memory order that suits the operation after a layer."""
    after = only_consumer(graph, layer)
    if after is None:
        return CHANNELS_LAST
    convolution = getattr(module_of(graph, after), "forward", None)
    if isinstance(convolution, WinogradConvolution):
        return convolution.algorithm.order
    own = layer.forward
    return (
        own.algorithm.order
        if isinstance(own, WinogradConvolution) and after.target is flatten_samples
        else CHANNELS_LAST
    )


def _is_faster(layer: nn.Conv2d, rows: int, columns: int) -> bool:
    algorithm = algorithm_for(layer, rows, columns)
    return algorithm.gain(layer.in_channels, layer.out_channels) >= algorithm.minimum_gain


def _is_supported(layer: nn.Conv2d) -> bool:
    """Whether a layer is a plain float32 convolution on the CPU with a square kernel and stride 1."""
    return (
        "weight" in layer._parameters
        and layer.weight.dtype is torch.float32
        and layer.weight.device.type == "cpu"
        and not is_altered(layer)
        and layer.kernel_size in [(taps, taps) for taps in _ALGORITHMS]
        and layer.stride == layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and layer.padding in ("same", "valid", (0, 0), *((side, side) for side in range(1, layer.kernel_size[0])))
    )


def _padding(layer: nn.Conv2d) -> int:
    if isinstance(layer.padding, str):
        return layer.kernel_size[0] // 2 if layer.padding == "same" else 0
    return int(layer.padding[0])
