"""The threshold G that an AltSDP run accumulates, beside the initial norms of its groups."""

from __future__ import annotations

import math
from dataclasses import dataclass

from valleyscope.app.experiments.model_info import ModelInfo
from valleyscope.training.settings import Training

_EXACT_TERMS = 64  # of a power sum, added one by one


@dataclass(frozen=True)
class ThresholdReach:
    """G for a minimum's c and schedule; the norms are None where the network was not inspected."""

    c: float
    reach: float
    smallest: float | None = None
    median: float | None = None

    @property
    def prunes(self) -> bool | None:
        """Whether G exceeds the smallest norm; below it nothing becomes zero."""
        return None if self.smallest is None else self.reach >= self.smallest


def threshold_reach(minimum: Training, steps: int, model_info: ModelInfo | None) -> ThresholdReach:
    """The reach of a run with `steps` gradient steps per epoch."""
    unit = accumulated(minimum, steps)
    if minimum.target is not None:
        c, reach = minimum.target / unit if unit else 0.0, minimum.target
    else:
        c = 1e-6 if minimum.c is None else minimum.c
        reach = c * unit
    norms = None if model_info is None else model_info.norms.get((minimum.structure, minimum.bias))
    return ThresholdReach(c, reach) if norms is None else ThresholdReach(c, reach, *norms)


def accumulated(settings: Training, steps: int) -> float:
    """G for c = 1 as ``Training.reach`` gives it, in the time and memory of the epochs instead of the steps.

    Within an epoch the rate γ is constant, so G = c Σ_e γ_e^(μ+1/2) (S(n_e) - S(n_(e-1))) with S(n) = Σ_(k<=n) k^μ,
    or S(n) = n^μ in the `dual` mode.
    """
    total = before = 0.0
    try:
        if first := settings.first_epoch * steps:  # n goes on from the trunk
            before = float(first) ** settings.mu if settings.mode == "dual" else _power_sum(first, settings.mu)
        for epoch in range(settings.first_epoch, settings.epochs):
            rate = settings.lr * settings.schedule.factor(epoch, settings.epochs) / (1.0 - settings.momentum)
            n = (epoch + 1) * steps
            after = float(n) ** settings.mu if settings.mode == "dual" else _power_sum(n, settings.mu)
            total += rate ** (settings.mu + 0.5) * (after - before)
            before = after
    except OverflowError:
        return math.inf
    return total


def _power_sum(n: int, mu: float) -> float:
    """Σ_(k=1..n) k^μ: the first terms one by one, the rest by the Euler-Maclaurin formula."""
    first = min(n, _EXACT_TERMS)
    total = math.fsum(k**mu for k in range(1, first + 1))
    if n == first:
        return total

    def tail(x: float) -> float:
        third = mu * (mu - 1) * (mu - 2) * x ** (mu - 3) / 720
        return float(x ** (mu + 1) / (mu + 1) + x**mu / 2 + mu * x ** (mu - 1) / 12 - third)

    return total + tail(float(n)) - tail(float(first))
