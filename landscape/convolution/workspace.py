"""Memory that several users take in turns, so that none of them asks the system for it again and again."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Workspace:
    """A stretch of float32 that grows to the largest wish. What a user finds in it is what the last one left.

    ``moves`` counts how often it grew: what was cut before lies elsewhere.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._memory = torch.empty(0, dtype=torch.float32)

    def cut(self, *shapes: tuple[int, ...]) -> list[Tensor]:
        """Tensors of these shapes side by side, from the start: in the same place for everyone who asks."""
        sizes = [math.prod(shape) for shape in shapes]
        if sum(sizes) > len(self._memory):
            self._memory = torch.empty(sum(sizes), dtype=torch.float32)
            self.generation += 1
        parts = torch.split(self._memory[: sum(sizes)], sizes)
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def zero_border(padded: Tensor, rows: slice, columns: slice) -> Tensor:
    """Zeros around an image whose rows and columns are on the first two axes; returns the part inside."""
    padded[: rows.start] = padded[rows.stop :] = 0.0
    padded[rows, : columns.start] = padded[rows, columns.stop :] = 0.0
    return padded[rows, columns]
