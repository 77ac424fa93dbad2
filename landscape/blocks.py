"""How many samples pass through a network at a time."""

from __future__ import annotations

from torch import Tensor

from landscape.trial import Trial


def block_size(trial: Trial, weights: Tensor) -> int:
    """Samples in a block."""
    return 128
