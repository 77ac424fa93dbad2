"""Convolution by minimal filtering along the rows of an image: for kernels of 5 x 5.

Inputs d are rows of the image and taps g the rows of a kernel; each product is a matrix product over the columns of the
kernel and the channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from landscape.toomcook import matrices, outputs_at_once, products
from landscape.workspace import Workspace, clear_frame

_WORKING_SET = 2_400_000  # bytes; samples pass in groups whose values fit in the cache, or outweigh the weights


@dataclass(frozen=True)
class RowFilter:
    """How a convolution with kernels of so many taps and so many columns of zeros around the image is done."""

    taps: int
    padding: int
    rows: int
    columns: int
    """Of the output."""

    # Multiplications saved for each value that is moved about in memory, from which on it is worth it: measured on
    # LeNet, where it is.
    least_gain = 20.0

    @property
    def outputs(self) -> int:
        return outputs_at_once(self.rows, self.taps)

    @property
    def kernel(self) -> Tensor:
        """The matrix that makes weights of products from arranged ones."""
        return matrices(self.outputs, self.taps)[1]

    def gain(self, channels: int, filters: int) -> float:
        """Multiplications saved, for a column of the output, for each value moved between the passes."""
        needed = products(self.rows, self.outputs, self.taps)
        saved = channels * filters * self.taps * (self.rows * self.taps - needed)
        moved = needed * (channels * (1 + 2 * self.taps) + 2 * filters) + 2 * self.rows * filters
        return saved / moved

    def arranged(self, weight: Tensor) -> Tensor:
        """A weight (filters, channels, r, r) with a row for each row of the kernels."""
        return weight.permute(2, 3, 1, 0).flatten(1).contiguous()

    def group(self, channels: int, weights: int) -> int:
        """Samples that pass at a time, beside weights of so many bytes."""
        needed = (self.rows + 3) * self.columns * self.taps * channels * 4
        return max(1, max(_WORKING_SET, weights) // needed)

    def passes(self, workspace: Workspace, samples: int, channels: int, filters: int) -> RowPasses:
        return RowPasses(self, workspace, samples, channels, filters)


class RowPasses:
    """The passes of a group of so many samples through a workspace."""

    def __init__(self, way: RowFilter, workspace: Workspace, samples: int, channels: int, filters: int) -> None:
        self._filters = filters
        outputs, taps, padding = way.outputs, way.taps, way.padding
        count = outputs + taps - 1
        bands = -(-way.rows // outputs)  # of so many rows of output each; the last may reach beyond the image
        after, _, before = matrices(outputs, taps)
        self._after, self._before = after.float(), before.float()
        self._rows = way.rows
        height, width = way.rows + taps - 1 - 2 * padding, way.columns + taps - 1 - 2 * padding
        padded = width + 2 * padding
        # The image row by row, in a frame of zeros; rows combined for each product; their columns side by side with the
        # r - 1 to the right; products; outputs.
        framed, self._combined, self._factors, self._products, self._sums = workspace.cut(
            (bands * outputs + taps - 1, samples, padded, channels),
            (count, bands, samples * padded * channels),
            (count, bands * samples * way.columns, taps * channels),
            (count, bands * samples * way.columns, filters),
            (outputs, bands * samples * way.columns * filters),
        )
        self._inside = clear_frame(
            framed.transpose(1, 2), slice(padding, padding + height), slice(padding, padding + width)
        )
        lines = framed.flatten(1)
        self._bands = [lines[start : start + count] for start in range(0, bands * outputs, outputs)]
        step = padded * channels
        self._windows = self._combined.as_strided(
            (count, bands * samples, way.columns, taps * channels),
            (bands * samples * step, step, channels, 1),
            self._combined.storage_offset(),
        )
        self._ordered = self._sums.view(outputs, bands, samples, way.columns, filters).permute(2, 1, 0, 3, 4)

    def convolve(self, images: Tensor, weights: Tensor, bias: Tensor, out: Tensor) -> None:
        """Convolve images (samples, channels, height, width) into ``out`` (samples, rows, columns, filters)."""
        self._inside.copy_(images.permute(2, 3, 0, 1))
        for band, lines in enumerate(self._bands):
            torch.mm(self._before, lines, out=self._combined[:, band])
        self._factors.view(self._windows.shape).copy_(self._windows)
        torch.bmm(self._factors, weights.view(len(weights), -1, self._filters), out=self._products)
        torch.mm(self._after, self._products.flatten(1), out=self._sums)
        torch.add(self._ordered.reshape(len(out), -1, *out.shape[2:])[:, : self._rows], bias, out=out)
