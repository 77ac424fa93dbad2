"""Convolutions with fewer multiplications, by Winograd's minimal filtering, at many points of weight space.

Processor libraries do not offer this for float32. For wide layers it takes half of the time of a plain convolution, at
an error of some 1e-6 of the output where a plain sum has 2e-7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from landscape.combination import Combination
from landscape.graphs import is_hooked
from landscape.rowfilter import RowFilter
from landscape.tilefilter import TileFilter
from landscape.trial import Trial
from landscape.workspace import Workspace

_WAYS: dict[int, type[RowFilter | TileFilter]] = {3: TileFilter, 5: RowFilter}
"""By taps: along both axes 5 x 5 kernels would lose more digits than they may."""


class WinogradConvolution:
    """Stands in for the forward pass of a convolution at points of weight space.

    The weights of a point are combined first and transformed then: transformed ones are four times as many.
    """

    def __init__(self, layer: nn.Conv2d, workspace: Workspace, rows: int, columns: int) -> None:
        self.layer = layer
        self._workspace = workspace
        self._way = way_of(layer, rows, columns)
        self._kernel = self._way.kernel.float()
        self._weights: Combination | None = None
        self._plain: Tensor | None = None
        self._point: Tensor | None = None
        self._forward = layer.forward
        layer.forward = self  # type: ignore[method-assign, assignment]

    @property
    def weight(self) -> nn.Parameter:
        """The parameter that this object has in its place."""
        return cast("nn.Parameter", self.layer.weight)

    def span(self, basis: Sequence[dict[str, Tensor]]) -> None:
        """Take the layer's parameters in every basis vector."""
        self.rest()
        self._weights = Combination([self._way.arranged(part["weight"]) for part in basis])

    def move(self, coefficients: Sequence[float]) -> None:
        """Go to a point."""
        assert self._weights is not None
        self._plain = self._weights.at(coefficients, out=self._plain)
        if self._point is None:
            self._point = self._plain.new_empty(len(self._kernel), self._plain.shape[1])
        torch.mm(self._kernel, self._plain, out=self._point)

    def rest(self) -> None:
        """Let go of the basis."""
        self._weights = self._plain = self._point = None

    def __call__(self, x: Tensor) -> Tensor:
        if self._point is None:
            return self._forward(x)  # a trial, before anybody has gone to a point
        samples, channels = x.shape[:2]
        filters = self.layer.out_channels
        bias = x.new_zeros(filters) if self.layer.bias is None else self.layer.bias
        y = x.new_empty(samples, self._way.rows, self._way.columns, filters)
        group = min(samples, self._way.group(channels, self._point.nbytes))
        for start in range(0, samples, group):
            part = slice(start, min(samples, start + group))
            if start == 0 or part.stop - start < group:
                passes = self._way.passes(self._workspace, part.stop - start, channels, filters)
            passes.convolve(x[part], self._point, bias, y[part])
        return y.movedim(-1, 1)


def way_of(layer: nn.Conv2d, rows: int, columns: int) -> RowFilter | TileFilter:
    """How a layer whose output has so many rows and columns is done."""
    taps = layer.kernel_size[0]
    return _WAYS[taps](taps, _padding(layer), rows, columns)


def find_winograd_layers(network: nn.Module, trial: Trial) -> list[WinogradConvolution]:
    """Replace the convolutions of a network that gain by it; those that see the raw data are left to others."""
    calls = Counter(call.module for call in trial.calls)
    holders = Counter(id(parameter) for module in network.modules() for parameter in module._parameters.values())
    workspace = Workspace()
    return [
        WinogradConvolution(call.module, workspace, *call.output[2:])
        for call in trial.calls
        if not call.raw
        and calls[call.module] == 1
        and type(call.module) is nn.Conv2d
        and _is_plain(call.module)
        and holders[id(call.module.weight)] == 1
        and _gains(call.module, *call.output[2:])
    ]


def _gains(layer: nn.Conv2d, rows: int, columns: int) -> bool:
    way = way_of(layer, rows, columns)
    return way.gain(layer.in_channels, layer.out_channels) >= way.least_gain


def _is_plain(layer: nn.Conv2d) -> bool:
    """Whether a layer is a convolution in float32 on a processor, with square kernel and step 1, and nothing else."""
    return (
        "weight" in layer._parameters
        and layer.weight.dtype is torch.float32
        and layer.weight.device.type == "cpu"
        and not is_hooked(layer)
        and layer.kernel_size in [(taps, taps) for taps in _WAYS]
        and layer.stride == layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and layer.padding in ("same", "valid", (0, 0), *((side, side) for side in range(1, layer.kernel_size[0])))
    )


def _padding(layer: nn.Conv2d) -> int:
    if isinstance(layer.padding, str):
        return layer.kernel_size[0] // 2 if layer.padding == "same" else 0
    return int(layer.padding[0])
