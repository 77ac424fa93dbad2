"""Custom networks that misbehave, for tests."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any


def lethal(**_: Any) -> Any:
    """Kills its process, as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def slow(input_shape: tuple[int, ...], classes: int, seconds: float = 0.02) -> Any:
    """A small network that sleeps at each batch."""
    import time

    from torch import nn

    class Slow(nn.Sequential):
        def forward(self, x: Any) -> Any:
            time.sleep(seconds)
            return super().forward(x)

    return Slow(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def held(input_shape: tuple[int, ...], classes: int, marker: str, seconds: float = 0.2) -> Any:
    """A small network that sleeps at each batch while the file `marker` exists."""
    import time

    from torch import nn

    class Held(nn.Sequential):
        def forward(self, x: Any) -> Any:
            if Path(marker).exists():
                time.sleep(seconds)
            return super().forward(x)

    return Held(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def choosy(input_shape: tuple[int, ...], classes: int) -> Any:
    """A network that depends on its input values, so it can neither be traced nor run on the meta device."""
    from torch import nn

    class Choosy(nn.Sequential):
        def forward(self, x: Any) -> Any:
            return super().forward(x if float(x.sum()) > 0 else -x)

    return Choosy(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def unlucky(input_shape: tuple[int, ...], classes: int, marker: str, once: bool = True) -> Any:
    """Breaks the device of its process, like a sticky CUDA error: everything after it fails, too.

    With `once` this happens only in the first process; `marker` is a file with the ids of all such processes.
    """
    import torch
    from torch import nn

    message = "CUDA error: device-side assert triggered"

    def broken(*_: Any, **__: Any) -> Any:
        raise torch.AcceleratorError(message)

    class Unlucky(nn.Sequential):
        def forward(self, x: Any) -> Any:
            broken_processes = Path(marker).read_text(encoding="ascii").split() if Path(marker).exists() else []
            if x.device.type != "meta" and not (once and broken_processes):
                with Path(marker).open("a", encoding="ascii") as file:
                    file.write(f"{os.getpid()}\n")
                nn.functional.linear = broken
            return super().forward(x)

    return Unlucky(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))


def worrying(input_shape: tuple[int, ...], classes: int) -> Any:
    """A small network that emits a warning."""
    import warnings

    from torch import nn

    warnings.warn("this network worries", stacklevel=1)
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), classes))
