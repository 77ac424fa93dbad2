"""A forecast of the accumulated threshold of a run, to warn about a c that prunes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from valleyscope.training.parameter_groups import ParameterGroup, group_norms, prunable
from valleyscope.training.settings import Training


@dataclass(frozen=True)
class Forecast:
    """The final G of the schedule, and the initial norms of the groups."""

    c: float
    reach: float
    smallest: float
    median: float

    @property
    def prunes(self) -> bool:
        return self.reach >= self.smallest

    def __str__(self) -> str:
        text = (
            f"G will reach {self.reach:.4g} (c = {self.c:.4g}); "
            f"initial group norms: smallest {self.smallest:.4g}, median {self.median:.4g}"
        )
        if not self.prunes:
            text += (
                ". Warning: G stays below the smallest norm, so probably nothing will be pruned; "
                f"raise c, or set target to about the median, {self.median:.3g}"
            )
        return text


def forecast(groups: Sequence[ParameterGroup], settings: Training, steps: int) -> Forecast | None:
    """The forecast of a run with `steps` steps an epoch; None for SGD or if nothing is prunable."""
    layers = list(prunable(groups))
    if settings.optimizer == "sgd" or not layers:
        return None
    norms = torch.cat([group_norms(group).double() for group in layers])
    return Forecast(
        c=settings.scale(steps),
        reach=settings.reach(steps),
        smallest=float(norms.min()),
        median=float(norms.median()),
    )
