"""What is known of each channel of a value before any input: constant, or varying with the input; read, or not.

A channel is an index of the second axis of a value in the graph, after the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Channels:
    """Which channels of a value vary with the input, and the values of the others.

    `constants` has shape (1, channels, ...) and is in double precision; it is zero where a channel varies. A channel
    is `read` if some live channel, or the output, depends on it.
    """

    varying: Tensor
    constants: Tensor
    read: Tensor

    @classmethod
    def of(cls, varying: Tensor, constants: Tensor) -> Channels:
        mask = varying.view(1, -1, *(1,) * (constants.dim() - 2))
        return cls(varying, constants.masked_fill(mask, 0.0), torch.zeros_like(varying))

    @classmethod
    def unknown(cls, value: Any) -> Channels | None:
        """All channels of a value vary; None for a value without channels, such as a number or a tuple."""
        if not isinstance(value, Tensor) or value.dim() < 2 or not value.is_floating_point():
            return None
        return cls.of(
            torch.ones(value.shape[1], dtype=torch.bool), torch.zeros(1, *value.shape[1:], dtype=torch.float64)
        )

    @property
    def live(self) -> Tensor:
        """The channels that must be computed."""
        return self.varying & self.read

    @property
    def count(self) -> int:
        return len(self.varying)


def is_uniform(constants: Tensor) -> bool:
    """Whether each channel has one value for all pixels, up to rounding in double precision."""
    if constants.dim() <= 2:
        return True
    pixels = constants.flatten(2)
    spread = pixels.amax(dim=2) - pixels.amin(dim=2)
    return bool((spread <= 1e-12 * pixels.abs().amax().clamp_min(1e-300)).all())


def one_pixel(constants: Tensor) -> Tensor:
    """Constants that broadcast over images: a single pixel if all have the same value."""
    if constants.dim() <= 2 or not is_uniform(constants):
        return constants
    return constants.flatten(2)[:, :, :1].view(*constants.shape[:2], *(1,) * (constants.dim() - 2))
