"""Convolutions with fewer multiplications: Winograd's minimal filtering along the rows of an image.

m outputs of a filter with r taps need m r products. Toom and Cook multiply polynomials through their values at
n = m + r - 1 points; transposed, this gives the m outputs from n products (Winograd 1980; Lavin and Gray 2016),

    y = A^T ((G g) * (B^T d)),

with d the n inputs, g the taps, and * element by element. Here d are rows of an image and g the rows of a kernel: each
product is a matrix product over columns and channels. Processor libraries do not offer this for float32; for wide
layers it saves up to half of the time, at an error of some 4e-7 of the output where the plain sum has 2e-7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import cast

import torch
from torch import Tensor, nn

from landscape.combination import Combination
from landscape.graphs import is_hooked
from landscape.trial import Trial

# Points that keep the numbers in the matrices small; the point at infinity is always added to them.
_POINTS = (Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), Fraction(1, 2), Fraction(-1, 2))
_OUTPUTS = (2, 4)  # rows at once; more would cost accuracy
_TAPS = (3, 5)
# Multiplications saved for each value that is moved about in memory, from which on it is worth it: measured on LeNet,
# VGG16 and ResNet-56, where layers at 19 and below are no faster and layers at 20 and above are.
_LEAST_GAIN = 20.0
_WORKING_SET = 2_400_000  # bytes; samples pass in groups whose values fit in the cache, or outweigh the weights


class WinogradConvolution:
    """Stands in for the forward pass of a convolution at points of weight space.

    The transform is linear, so the transformed weights of a point are a combination of those of the basis vectors.
    """

    def __init__(self, layer: nn.Conv2d, rows: int) -> None:
        self.layer = layer
        self.taps = layer.kernel_size[0]
        self.outputs = rows_at_once(rows, self.taps)
        self.padding = _padding(layer)
        self._weights: Combination | None = None
        self._point: Tensor | None = None
        layer.forward = self  # type: ignore[method-assign, assignment]

    @property
    def weight(self) -> nn.Parameter:
        """The parameter that this object has in its place."""
        return cast("nn.Parameter", self.layer.weight)

    def span(self, basis: Sequence[dict[str, Tensor]]) -> None:
        """Take the layer's parameters in every basis vector."""
        self._weights = Combination([self._transformed(part["weight"]) for part in basis])
        self._point = None

    def move(self, coefficients: Sequence[float]) -> None:
        """Go to a point."""
        assert self._weights is not None
        self._point = self._weights.at(coefficients, out=self._point)

    def rest(self) -> None:
        """Let go of the basis."""
        self._weights = self._point = None

    def __call__(self, x: Tensor) -> Tensor:
        assert self._point is not None
        samples, channels, height, width = x.shape
        rows, columns = height + 2 * self.padding - self.taps + 1, width + 2 * self.padding - self.taps + 1
        y = x.new_empty(samples, rows, columns, self.layer.out_channels)
        needed = (rows + 3) * columns * self.taps * channels * x.element_size()
        group = max(1, max(_WORKING_SET, self._point.nbytes) // needed)
        scratch: _Scratch | None = None
        for part in range(0, samples, group):
            images = x[part : part + group].permute(2, 0, 3, 1)
            if scratch is None or scratch.samples != images.shape[1]:
                scratch = _Scratch(self, images, rows, columns)
            scratch.convolve(images, self._point, y[part : part + group])
        return y.movedim(-1, 1)

    def _transformed(self, weight: Tensor) -> Tensor:
        """A weight (outputs, channels, r, r) as n matrices of r * channels rows, one for each product."""
        _, kernel, _ = matrices(self.outputs, self.taps)
        return torch.einsum("fk,ockl->flco", kernel.to(weight), weight).flatten(1, 2).contiguous()


class _Scratch:
    """Memory for groups of so many samples, used again for every group, and the passes through it."""

    def __init__(self, convolution: WinogradConvolution, images: Tensor, rows: int, columns: int) -> None:
        height, self.samples, width, channels = images.shape
        outputs, taps, padding = convolution.outputs, convolution.taps, convolution.padding
        products = outputs + taps - 1
        bands = -(-rows // outputs)  # of so many rows of output each; the last may reach beyond the image
        padded = width + 2 * padding
        filters = convolution.layer.out_channels
        after, _, before = matrices(outputs, taps)
        self._after, self._before = after.to(images), before.to(images)
        self._bias = convolution.layer.bias
        self._rows = rows
        # The image row by row, in a frame of zeros.
        framed = images.new_zeros(bands * outputs + taps - 1, self.samples, padded, channels)
        self._inside = framed[padding : padding + height, :, padding : padding + width]
        lines = framed.flatten(1)
        self._bands = [lines[start : start + products] for start in range(0, bands * outputs, outputs)]
        # Rows combined for each product; their columns side by side with the r - 1 to the right; products; outputs.
        self._combined = images.new_empty(products, bands, lines.shape[1])
        step = padded * channels
        self._windows = self._combined.as_strided(
            (products, bands * self.samples, columns, taps * channels),
            (bands * self.samples * step, step, channels, 1),
        )
        self._factors = images.new_empty(products, bands * self.samples * columns, taps * channels)
        self._products = images.new_empty(products, bands * self.samples * columns, filters)
        self._sums = images.new_empty(outputs, bands * self.samples * columns * filters)
        self._ordered = self._sums.view(outputs, bands, self.samples, columns, filters).permute(2, 1, 0, 3, 4)

    def convolve(self, images: Tensor, weights: Tensor, out: Tensor) -> None:
        """Convolve images (rows, samples, columns, channels) into ``out`` (samples, rows, columns, filters)."""
        self._inside.copy_(images)
        for band, lines in enumerate(self._bands):
            torch.mm(self._before, lines, out=self._combined[:, band])
        self._factors.view(self._windows.shape).copy_(self._windows)
        torch.bmm(self._factors, weights, out=self._products)
        torch.mm(self._after, self._products.flatten(1), out=self._sums)
        found = self._ordered.reshape(self.samples, -1, *out.shape[2:])[:, : self._rows]
        if self._bias is None:
            out.copy_(found)
        else:
            torch.add(found, self._bias, out=out)


def find_winograd_layers(network: nn.Module, trial: Trial) -> list[WinogradConvolution]:
    """Replace the convolutions of a network that gain by it; those that see the raw data are left to others."""
    calls = Counter(call.module for call in trial.calls)
    holders = Counter(id(parameter) for module in network.modules() for parameter in module._parameters.values())
    return [
        WinogradConvolution(call.module, rows=call.output[2])
        for call in trial.calls
        if not call.raw
        and calls[call.module] == 1
        and type(call.module) is nn.Conv2d
        and _is_plain(call.module)
        and holders[id(call.module.weight)] == 1
        and gain(call.module, rows=call.output[2]) >= _LEAST_GAIN
    ]


def gain(layer: nn.Conv2d, rows: int) -> float:
    """Multiplications saved, for a column of so many rows, for each value moved between the passes."""
    taps, channels, filters = layer.kernel_size[0], layer.in_channels, layer.out_channels
    products = _products(rows, rows_at_once(rows, taps), taps)
    saved = channels * filters * taps * (rows * taps - products)
    moved = products * (channels * (1 + 2 * taps) + 2 * filters) + 2 * rows * filters
    return saved / moved


def rows_at_once(rows: int, taps: int) -> int:
    """The number of outputs m that needs the fewest products for so many rows."""
    return min(_OUTPUTS, key=lambda outputs: (_products(rows, outputs, taps), outputs))


@cache
def matrices(outputs: int, taps: int) -> tuple[Tensor, Tensor, Tensor]:
    """A^T, G and B^T in float64, from exact fractions.

    >>> after, kernel, before = matrices(2, 3)
    >>> d, g = torch.tensor([1.0, 2.0, 3.0, 4.0]).double(), torch.tensor([5.0, 6.0, 7.0]).double()
    >>> after @ ((kernel @ g) * (before @ d))
    tensor([38., 56.], dtype=torch.float64)
    """
    count = outputs + taps - 1
    after = list(zip(*_powers(count, outputs), strict=True))
    before = list(zip(*_inverse(_powers(count, count)), strict=True))
    after_matrix, kernel_matrix, before_matrix = (
        torch.tensor([[float(value) for value in row] for row in matrix], dtype=torch.float64)
        for matrix in (after, _powers(count, taps), before)
    )
    return after_matrix, kernel_matrix, before_matrix


def _powers(count: int, columns: int) -> list[list[Fraction]]:
    """1, p, p^2, ... for all points but one; the last is infinity, where only the highest power counts."""
    finite = [[point**power for power in range(columns)] for point in _POINTS[: count - 1]]
    return [*finite, [Fraction(0)] * (columns - 1) + [Fraction(1)]]


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """The inverse by Gauss and Jordan, exactly."""
    size = len(matrix)
    rows = [row + [Fraction(int(column == place)) for column in range(size)] for place, row in enumerate(matrix)]
    for column in range(size):
        pivot = next(place for place in range(column, size) if rows[place][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for place in range(size):
            if place != column:
                factor = rows[place][column]
                rows[place] = [value - factor * other for value, other in zip(rows[place], rows[column], strict=True)]
    return [row[size:] for row in rows]


def _products(rows: int, outputs: int, taps: int) -> int:
    return -(-rows // outputs) * (outputs + taps - 1)


def _is_plain(layer: nn.Conv2d) -> bool:
    """Whether a layer is a convolution in float32 on a processor, with square kernel and step 1, and nothing else."""
    return (
        "weight" in layer._parameters
        and layer.weight.dtype is torch.float32
        and layer.weight.device.type == "cpu"
        and not is_hooked(layer)
        and layer.kernel_size in [(taps, taps) for taps in _TAPS]
        and layer.stride == layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and layer.padding in ("same", "valid", (0, 0), *((side, side) for side in range(1, layer.kernel_size[0])))
    )


def _padding(layer: nn.Conv2d) -> int:
    if isinstance(layer.padding, str):
        return layer.kernel_size[0] // 2 if layer.padding == "same" else 0
    return int(layer.padding[0])
