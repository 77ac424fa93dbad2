"""Scratch memory shared by several layers, so that it is allocated once."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Workspace:
    """Float32 memory that grows to the largest request; its content is undefined.

    ``generation`` counts the reallocations: earlier tensors are then in other memory.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._memory = torch.empty(0, dtype=torch.float32)
        self._weights = torch.empty(0, dtype=torch.float32)

    def weights(self, rows: int, columns: int) -> Tensor:
        """Memory for the transformed weights of one layer, until the next layer asks for it."""
        if rows * columns > len(self._weights):
            self._weights = torch.empty(rows * columns, dtype=torch.float32)
        return self._weights[: rows * columns].view(rows, columns)

    def cut(self, *shapes: tuple[int, ...]) -> list[Tensor]:
        """Tensors of these shapes, one after the other from the start of the memory."""
        sizes = [math.prod(shape) for shape in shapes]
        if sum(sizes) > len(self._memory):
            self._memory = torch.empty(sum(sizes), dtype=torch.float32)
            self.generation += 1
        parts = torch.split(self._memory[: sum(sizes)], sizes)
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def zero_border(padded: Tensor, rows: slice, columns: slice) -> Tensor:
    """Write zeros around an image whose rows and columns are the first two axes; returns the inner part."""
    padded[: rows.start] = padded[rows.stop :] = 0.0
    padded[rows, : columns.start] = padded[rows, columns.stop :] = 0.0
    return padded[rows, columns]
