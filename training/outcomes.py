"""What comes of a training run: its progress, the trained network, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from valleyscope.training.epochs import Epoch
from valleyscope.training.pruning_forecast import Forecast
from valleyscope.training.settings import Training


class Cancelled(Exception):
    """The run was cancelled; its state is saved if it has a directory."""


class Diverged(ArithmeticError):
    """The loss is no longer finite."""


class AllZero(Diverged):
    """Every prunable group is zero: the network computes a constant."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run; `record` is set when an epoch is complete, `forecast` at the start."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    learning_rate: float
    record: Epoch | None = None
    forecast: Forecast | None = None

    @property
    def share(self) -> float:
        return (self.epoch + self.step / self.steps) / self.epochs if self.epochs else 1.0


@dataclass(frozen=True)
class Trained:
    """A trained network with the metrics of every epoch.

    `pruning` says what the pruning method did: when its threshold ended, what the cut cost, the multiply-adds left.
    """

    model: nn.Module
    settings: Training
    epochs: tuple[Epoch, ...]
    forecast: Forecast | None
    pruning: dict[str, Any] = field(default_factory=dict)

    @property
    def final(self) -> Epoch:
        return self.epochs[-1]
