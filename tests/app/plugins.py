"""Networks of an operator's own that misbehave, for tests."""

from __future__ import annotations

import math
import os
import signal
from typing import Any


def lethal(**_: Any) -> Any:
    """Takes its process with it, as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def slow(input_shape: tuple[int, ...], classes: int, seconds: float = 0.02) -> Any:
    """A small network that takes its time for each batch."""
    import time

    from torch import nn

    class Slow(nn.Sequential):
        def forward(self, x: Any) -> Any:
            time.sleep(seconds)
            return super().forward(x)

    return Slow(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def choosy(input_shape: tuple[int, ...], classes: int) -> Any:
    """A network whose way depends on what it sees, so that it can neither be traced nor run without values."""
    from torch import nn

    class Choosy(nn.Sequential):
        def forward(self, x: Any) -> Any:
            return super().forward(x if float(x.sum()) > 0 else -x)

    return Choosy(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))
