"""Networks of an operator's own that misbehave, for tests."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
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


def held(input_shape: tuple[int, ...], classes: int, marker: str, seconds: float = 0.2) -> Any:
    """A small network that takes its time for each batch for as long as the file `marker` is there."""
    import time

    from torch import nn

    class Held(nn.Sequential):
        def forward(self, x: Any) -> Any:
            if Path(marker).exists():
                time.sleep(seconds)
            return super().forward(x)

    return Held(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def choosy(input_shape: tuple[int, ...], classes: int) -> Any:
    """A network whose way depends on what it sees, so that it can neither be traced nor run without values."""
    from torch import nn

    class Choosy(nn.Sequential):
        def forward(self, x: Any) -> Any:
            return super().forward(x if float(x.sum()) > 0 else -x)

    return Choosy(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def unlucky(input_shape: tuple[int, ...], classes: int, marker: str, once: bool = True) -> Any:
    """Breaks the device of its process, as a sticky error of CUDA does: whatever comes after it fails there, too.

    With `once` that happens to the first process only; `marker` is the file in which each one that it befell is noted.
    """
    import torch
    from torch import nn

    message = "CUDA error: device-side assert triggered"

    def broken(*_: Any, **__: Any) -> Any:
        raise torch.AcceleratorError(message)

    class Unlucky(nn.Sequential):
        def forward(self, x: Any) -> Any:
            befallen = Path(marker).read_text(encoding="ascii").split() if Path(marker).exists() else []
            if x.device.type != "meta" and not (once and befallen):
                with Path(marker).open("a", encoding="ascii") as file:
                    file.write(f"{os.getpid()}\n")
                nn.functional.linear = broken
            return super().forward(x)

    return Unlucky(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def worrying(input_shape: tuple[int, ...], classes: int) -> Any:
    """A small network that warns of something."""
    import warnings

    from torch import nn

    warnings.warn("this network worries", stacklevel=1)
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))
