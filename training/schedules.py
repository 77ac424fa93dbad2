"""Learning-rate schedules: the factor on the base rate at each epoch, counted from 0."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

_STRICT = ConfigDict(extra="forbid", frozen=True)


class Constant(BaseModel):
    """The base rate throughout."""

    model_config = _STRICT
    kind: Literal["constant"] = "constant"

    def factor(self, epoch: int, epochs: int) -> float:  # noqa: ARG002
        return 1.0


class Halving(BaseModel):
    """Half the rate every `every` epochs (the paper's MNIST experiments: 30)."""

    model_config = _STRICT
    kind: Literal["halving"] = "halving"
    every: int = Field(30, ge=1, le=100_000, description="epochs between two halvings")

    def factor(self, epoch: int, epochs: int) -> float:  # noqa: ARG002
        return float(0.5 ** (epoch // self.every))


class Milestones(BaseModel):
    """Multiplies the rate by a factor at each milestone (the paper's "[60, 160]@[0.2, 0.2]")."""

    model_config = _STRICT
    kind: Literal["milestones"] = "milestones"
    at: tuple[int, ...] = Field(description="epochs at which it changes, ascending", min_length=1, max_length=1000)
    factors: tuple[float, ...] = Field(description="factor at each milestone, one for each", max_length=1000)

    @model_validator(mode="after")
    def _paired(self) -> Milestones:
        if len(self.at) != len(self.factors):
            raise ValueError(
                f"milestones need one factor each: at={list(self.at)} has {len(self.at)} entries, "
                f"factors={list(self.factors)} has {len(self.factors)}"
            )
        if any(epoch < 1 for epoch in self.at) or any(b <= a for a, b in zip(self.at, self.at[1:], strict=False)):
            raise ValueError(f"at={list(self.at)}: milestones must be ascending epochs, 1 or later")
        if any(not (0 < factor < float("inf")) for factor in self.factors):
            raise ValueError(f"factors={list(self.factors)}: each must be a finite number above 0")
        return self

    def factor(self, epoch: int, epochs: int) -> float:  # noqa: ARG002
        product = 1.0
        for milestone, factor in zip(self.at, self.factors, strict=True):
            if epoch >= milestone:
                product *= factor
        return product


class Piecewise(BaseModel):
    """Constant, then linear down to `final`, then constant (Garipov et al.'s connectivity experiments)."""

    model_config = _STRICT
    kind: Literal["piecewise"] = "piecewise"
    hold: float = Field(0.5, ge=0, lt=1, description="share of the epochs at the full rate")
    until: float = Field(0.9, gt=0, le=1, description="share of the epochs at which the final rate is reached")
    final: float = Field(0.01, gt=0, le=1, description="last rate as a share of the base rate")

    @model_validator(mode="after")
    def _ordered(self) -> Piecewise:
        if self.until <= self.hold:
            raise ValueError(f"until={self.until} must be above hold={self.hold}")
        return self

    def factor(self, epoch: int, epochs: int) -> float:
        progress = epoch / epochs
        if progress <= self.hold:
            return 1.0
        if progress <= self.until:
            return 1.0 - (progress - self.hold) / (self.until - self.hold) * (1.0 - self.final)
        return self.final


Schedule = Annotated[Constant | Halving | Milestones | Piecewise, Field(discriminator="kind")]


def step_rates(schedule: Schedule, lr: float, epochs: int, steps: int) -> npt.NDArray[np.float64]:
    """The learning rate of every step of a run with `steps` steps an epoch."""
    factors = [schedule.factor(epoch, epochs) for epoch in range(epochs)]
    return np.repeat(lr * np.asarray(factors, dtype=np.float64), steps)
