"""How a fit of a curve goes: reported while it runs, and kept beside the curve."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import Tensor

from valleyscope.landscape.fitting.fit_curve import FittedEpoch, FittingProgress
from valleyscope.landscape.storage.records import Floats

_FIT = "fit."  # before the names of the columns in the file of a curve
_REPORT_SECONDS = 0.2


class FitWatch:
    """Passes on a few steps of a fit a second, since there are thousands, and every complete epoch."""

    def __init__(self, report: Callable[[float, dict[str, Any]], None]) -> None:
        self._report = report
        self._reported_at = float("-inf")
        self._history: tuple[FittedEpoch, ...] = ()
        self._reported_epochs = 0

    def report(self, step: FittingProgress) -> None:
        self._history = step.history
        fresh = step.history[self._reported_epochs :]
        if not fresh and time.monotonic() - self._reported_at < _REPORT_SECONDS:
            return
        self._reported_at = time.monotonic()
        self._reported_epochs = len(step.history)
        details = {"epoch": step.epoch, "epochs": step.epochs, "loss": step.loss}
        self._report(step.share, details | {"records": [asdict(epoch) for epoch in fresh]})

    def columns(self) -> dict[str, Tensor]:
        """All epochs so far, one tensor a column, for the file of the curve."""
        if not self._history:
            return {}
        columns: dict[str, list[float]] = {
            "epoch": [float(epoch.epoch) for epoch in self._history],
            "loss": [epoch.loss for epoch in self._history],
            "learning_rate": [epoch.learning_rate for epoch in self._history],
        }
        for index in range(len(self._history[0].bends)):
            columns[f"bend{index + 1}"] = [epoch.bends[index] for epoch in self._history]
        return {_FIT + name: torch.tensor(values, dtype=torch.float64) for name, values in columns.items()}


def read_fit(path: Path) -> dict[str, Floats]:
    """The columns that a fit left in the file of its curve; none in files of earlier versions."""
    found = {name.removeprefix(_FIT): values for name, values in load_file(path).items() if name.startswith(_FIT)}
    first = [name for name in ("epoch", "loss", "learning_rate") if name in found]
    bends = sorted((name for name in found if name not in first), key=lambda name: int(name.removeprefix("bend")))
    return {name: found[name].astype(np.float64) for name in (*first, *bends)}
