"""Convolution by minimal filtering along rows and columns at once: for kernels of 3 x 3.

An image is cut into tiles of m x m outputs, each from n x n inputs. With the transform along both axes a product is a
matrix product over the channels alone: 36 of them for 16 outputs, where the plain sum has 144.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from valleyscope.landscape.convolution.memory_order import PIXELS_FIRST, as_images, in_order
from valleyscope.landscape.convolution.toom_cook import matrices, outputs_at_once, products
from valleyscope.landscape.convolution.workspace import Workspace, zero_border

_WORKING_SET = 16_000_000  # bytes; a group of samples fits in the cache, or is as large as the weights


@dataclass(frozen=True)
class TileFilter:
    """A convolution with kernels of ``taps`` x ``taps`` and ``padding`` zeros around the image."""

    taps: int
    padding: int
    rows: int
    columns: int
    """Of the output."""
    outputs: tuple[int, int]
    """Rows and columns of a tile of the output."""

    order = PIXELS_FIRST
    # Multiplications saved per value moved in memory from which it is faster: measured on the layers of VGG16: one
    # at 41 is a little faster and one at 53 much.
    minimum_gain = 40.0

    @classmethod
    def cheapest(cls, taps: int, padding: int, rows: int, columns: int) -> TileFilter:
        """With the tile size that needs the fewest products."""
        return cls(taps, padding, rows, columns, (outputs_at_once(rows, taps), outputs_at_once(columns, taps)))

    @property
    def inputs(self) -> tuple[int, int]:
        """Rows and columns of the inputs of a tile, and so of its products."""
        high, wide = self.outputs
        return high + self.taps - 1, wide + self.taps - 1

    @property
    def tiles(self) -> tuple[int, int]:
        """Tiles below and beside each other; the last may reach beyond the image."""
        high, wide = self.outputs
        return -(-self.rows // high), -(-self.columns // wide)

    @property
    def kernel_transform(self) -> Tensor:
        """The matrix that transforms the result of ``weight_matrix``."""
        return torch.kron(*(matrices(outputs, self.taps)[1] for outputs in self.outputs))

    def gain(self, channels: int, filters: int) -> float:
        """Multiplications saved per value moved in memory."""
        (high, wide), (down, across) = self.outputs, self.inputs
        below, beside = self.tiles
        saved = channels * filters * (self.rows * self.columns * self.taps**2 - below * beside * down * across)
        passed = down * across + down * wide  # of the two transforms on either side of the products
        moved = below * beside * (channels * (passed + high * wide) + filters * (passed + 2 * high * wide))
        return saved / moved

    def weight_matrix(self, weight: Tensor) -> Tensor:
        """A weight (filters, channels, r, r) with a row for each tap of the kernels."""
        return weight.permute(2, 3, 1, 0).flatten(2).flatten(0, 1).contiguous()

    def samples_per_group(self, channels: int, weights: int) -> int:
        """Samples convolved at once, with weights of this many bytes."""
        down, across = (products(n, m, self.taps) for n, m in zip((self.rows, self.columns), self.outputs, strict=True))
        return max(1, max(_WORKING_SET, weights) // (down * across * channels * 4))

    def convolver(self, workspace: Workspace, samples: int, channels: int, filters: int) -> TileConvolver:
        return TileConvolver(self, workspace, samples, channels, filters)


class TileConvolver:
    """Convolves groups of a fixed number of samples in a workspace."""

    def __init__(self, algorithm: TileFilter, workspace: Workspace, samples: int, channels: int, filters: int) -> None:
        (high, wide), (down, across), (below, beside) = algorithm.outputs, algorithm.inputs, algorithm.tiles
        (after_rows, _, before_rows), (after_columns, _, before_columns) = (
            matrices(m, algorithm.taps) for m in algorithm.outputs
        )
        self._after = after_rows.float(), after_columns.float()
        self._before = before_rows.float(), before_columns.float()
        # Positions first, samples and channels last, so that a transform along an axis is a matrix product. The
        # padded image; its rows transformed; and its columns; products; columns of output; rows of output.
        self._padded, lines, factors, products, columns, sums = workspace.cut(
            (below * high + algorithm.taps - 1, beside * wide + algorithm.taps - 1, samples, channels),
            (down, below, beside * wide + algorithm.taps - 1, samples * channels),
            (down, across, below, beside, samples * channels),
            (down, across, below, beside, samples * filters),
            (down, below, beside * wide, samples * filters),
            (below * high, beside * wide, samples, filters),
        )
        height, width = (n + algorithm.taps - 1 - 2 * algorithm.padding for n in (algorithm.rows, algorithm.columns))
        self._inside = [slice(algorithm.padding, algorithm.padding + length) for length in (height, width)]
        self._output = as_images(sums[: algorithm.rows, : algorithm.columns], PIXELS_FIRST)
        self._factors = factors.view(down * across, -1, channels)
        self._products = products.view(down * across, -1, filters)
        # Inputs and outputs of each transform.
        places = [(line, row, column) for line in range(down) for row in range(below) for column in range(beside)]
        self._rows = [(self._padded[row * high :][:down].flatten(1), lines[:, row].flatten(1)) for row in range(below)]
        self._columns = [
            (lines[line, row, column * wide :][:across], factors[line, :, row, column]) for line, row, column in places
        ]
        self._columns_back = [
            (products[line, :, row, column], columns[line, row, column * wide :][:wide]) for line, row, column in places
        ]
        self._rows_back = [(columns[:, row].flatten(1), sums[row * high :][:high].flatten(1)) for row in range(below)]

    def convolve(self, images: Tensor, weights: Tensor) -> Tensor:
        """The convolution of images, without bias, as a view of the workspace."""
        zero_border(self._padded, *self._inside).copy_(in_order(images, PIXELS_FIRST))
        _transform(self._before[0], self._rows)
        _transform(self._before[1], self._columns)
        weights = weights.view(len(weights), self._factors.shape[2], self._products.shape[2])
        torch.bmm(self._factors, weights, out=self._products)
        _transform(self._after[1], self._columns_back)
        _transform(self._after[0], self._rows_back)
        return self._output


def _transform(matrix: Tensor, pairs: list[tuple[Tensor, Tensor]]) -> None:
    for given, target in pairs:
        torch.mm(matrix, given, out=target)
