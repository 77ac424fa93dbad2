"""A network of an operator's own that takes its time without taking the processor's."""

from __future__ import annotations

import math
import time
from typing import Any


def unhurried(input_shape: tuple[int, ...], classes: int, seconds: float = 0.01) -> Any:
    """A network with one hidden layer that sleeps for each batch."""
    from torch import nn

    class Unhurried(nn.Sequential):
        def forward(self, x: Any) -> Any:
            time.sleep(seconds)
            return super().forward(x)

    inputs = math.prod(input_shape)
    return Unhurried(nn.Flatten(), nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, classes))
