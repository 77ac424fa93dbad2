"""A forecast of the accumulated threshold of a run, to warn about a c that prunes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from valleyscope.training.parameter_groups import ParameterGroup, group_norms, prunable
from valleyscope.training.settings import Training


@dataclass(frozen=True)
class Forecast:
    """The final G of the schedule (as if it did not end at `sparsity`), and the initial norms of the groups."""

    c: float
    reach: float
    smallest: float
    median: float
    sparsity: float | None = None
    macs: float | None = None

    @property
    def prunes(self) -> bool:
        return self.reach >= self.smallest

    def __str__(self) -> str:
        norms = f"initial group norms: smallest {self.smallest:.4g}, median {self.median:.4g}"
        if self.sparsity is not None or self.macs is not None:
            share = (
                f"{self.sparsity:.0%} of the groups are zero"
                if self.macs is None
                else f"{self.macs:.0%} of the multiply-adds are left"
            )
            return f"the threshold ends when {share} (c = {self.c:.4g} at first); {norms}"
        text = f"G will reach {self.reach:.4g} (c = {self.c:.4g}); {norms}"
        if not self.prunes:
            text += (
                ". Warning: G stays below the smallest norm, so probably nothing will be pruned; "
                f"raise c, or set target to about the median, {self.median:.3g}"
            )
        return text


def forecast(groups: Sequence[ParameterGroup], settings: Training, steps: int) -> Forecast | None:
    """The forecast of a run with `steps` steps an epoch; None without AltSDP or if nothing is prunable."""
    layers = list(prunable(groups))
    if settings.optimizer != "altsdp" or not layers:
        return None
    norms = torch.cat([group_norms(group).double() for group in layers])
    median = float(norms.median())
    return Forecast(
        settings.scale(steps, median),
        settings.reach(steps, median),
        float(norms.min()),
        median,
        settings.sparsity,
        settings.macs,
    )
