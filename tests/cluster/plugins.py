"""A network of an operator's own that takes its time without taking the processor's."""

from __future__ import annotations

import math
import time
from typing import Any


def unhurried(input_shape: tuple[int, ...], classes: int, seconds: float = 0.01) -> Any:
    """A network with one hidden layer that sleeps for each batch.

    It refuses to be traced: surfaces are computed from a trace where there is one, and that has no sleep in it.
    """
    from torch import Tensor, nn

    class Unhurried(nn.Sequential):
        def forward(self, x: Any) -> Any:
            if not isinstance(x, Tensor):
                raise TypeError("only for tensors")
            time.sleep(seconds)
            return super().forward(x)

    inputs = math.prod(input_shape)
    return Unhurried(nn.Flatten(), nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, classes))
