"""Convolution by minimal filtering along the rows of an image: for kernels of 5 x 5.

Inputs d are rows of the image and taps g the rows of a kernel; each product is a matrix product over the columns of the
kernel and the channels. Samples are last in memory: they fill the vector lanes even with few filters, and the columns
under a kernel are contiguous, so they need no copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from valleyscope.landscape.convolution.memory_order import SAMPLES_LAST, as_images, in_order
from valleyscope.landscape.convolution.toom_cook import matrices, outputs_at_once, products
from valleyscope.landscape.convolution.workspace import Workspace, zero_border


@dataclass(frozen=True)
class RowFilter:
    """A convolution with kernels of ``taps`` x ``taps`` and ``padding`` zeros around the image."""

    taps: int
    padding: int
    rows: int
    columns: int
    """Of the output."""
    outputs: int
    """Rows of the output from one set of products."""

    order = SAMPLES_LAST
    # Multiplications saved per value moved in memory from which it is faster: measured on networks of two layers with 3
    # to 50 filters.
    minimum_gain = 8.0

    @classmethod
    def cheapest(cls, taps: int, padding: int, rows: int, columns: int) -> RowFilter:
        """With the number of outputs at once that needs the fewest products."""
        return cls(taps, padding, rows, columns, outputs_at_once(rows, taps))

    @property
    def kernel_transform(self) -> Tensor:
        """The matrix that transforms the result of ``weight_matrix``."""
        return matrices(self.outputs, self.taps)[1]

    def gain(self, channels: int, filters: int) -> float:
        """Multiplications saved per value moved in memory, for a column of the output."""
        needed = products(self.rows, self.outputs, self.taps)
        saved = channels * filters * self.taps * (self.rows * self.taps - needed)
        moved = 2 * needed * (channels + filters) + self.rows * filters
        return saved / moved

    def weight_matrix(self, weight: Tensor) -> Tensor:
        """A weight (filters, channels, r, r) with a row for each row of the kernels."""
        return weight.permute(2, 0, 3, 1).flatten(1).contiguous()

    def samples_per_group(self, channels: int, weights: int) -> int:  # noqa: ARG002
        """Samples convolved at once: enough for long matrices."""
        return 128

    def convolver(self, workspace: Workspace, samples: int, channels: int, filters: int) -> RowConvolver:
        return RowConvolver(self, workspace, samples, channels, filters)


class RowConvolver:
    """Convolves groups of a fixed number of samples in a workspace."""

    def __init__(self, algorithm: RowFilter, workspace: Workspace, samples: int, channels: int, filters: int) -> None:
        outputs, taps, padding = algorithm.outputs, algorithm.taps, algorithm.padding
        count = outputs + taps - 1
        bands = -(-algorithm.rows // outputs)  # of ``outputs`` rows each; the last may reach beyond the image
        after, _, before = matrices(outputs, taps)
        self._after, self._before = after.float(), before.float()
        height, width = algorithm.rows + taps - 1 - 2 * padding, algorithm.columns + taps - 1 - 2 * padding
        padded = width + 2 * padding
        # The padded image; rows combined for each product; products; outputs.
        self._padded, combined, products, sums = workspace.cut(
            (bands * outputs + taps - 1, padded, channels, samples),
            (count, bands, padded, channels, samples),
            (count, bands, algorithm.columns, filters, samples),
            (bands, outputs, algorithm.columns, filters, samples),
        )
        self._inside = slice(padding, padding + height), slice(padding, padding + width)
        self._bands = [
            (self._padded[start : start + count].flatten(1), combined[:, band].flatten(1))
            for band, start in enumerate(range(0, bands * outputs, outputs))
        ]
        self._windows = [
            [
                (
                    line.as_strided((algorithm.columns, taps * channels, samples), (channels * samples, samples, 1)),
                    product,
                )
                for line, product in zip(lines, targets, strict=True)
            ]
            for lines, targets in zip(combined, products, strict=True)
        ]
        self._bands_back = [(products[:, band].flatten(1), sums[band].flatten(1)) for band in range(bands)]
        self._output = as_images(sums.flatten(0, 1)[: algorithm.rows], SAMPLES_LAST)
        self._weights = algorithm.columns, filters, taps * channels

    def convolve(self, images: Tensor, weights: Tensor) -> Tensor:
        """The convolution of images, without bias, as a view of the workspace."""
        zero_border(self._padded, *self._inside).copy_(in_order(images, SAMPLES_LAST))
        for lines, target in self._bands:
            torch.mm(self._before, lines, out=target)
        for weight, pairs in zip(weights, self._windows, strict=True):
            factor = weight.view(self._weights[1:]).expand(self._weights)
            for windows, target in pairs:
                torch.bmm(factor, windows, out=target)
        for lines, target in self._bands_back:
            torch.mm(self._after, lines, out=target)
        return self._output
