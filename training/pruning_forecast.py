"""A forecast of the accumulated threshold of a run, to warn about a c that prunes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from valleyscope.training.altsdp import AltSDP
from valleyscope.training.parameter_groups import ParameterGroup, group_norms, prunable
from valleyscope.training.settings import Training
from valleyscope.training.thresholds import accumulated_threshold


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


def forecast_loop(
    optimizer: AltSDP,
    batches: int,
    *,
    accumulation: int = 1,
    scheduler: Callable[[Optimizer], LRScheduler] | None = None,
) -> Forecast:
    """The forecast of a training loop of your own: the G that AltSDP will reach from here on.

    ``batches`` counts those of the whole run, ``accumulation`` those that share one step of the optimiser.
    ``scheduler`` makes the scheduler that you step after each of them, such as
    ``lambda optimizer: OneCycleLR(optimizer, 0.1, total_steps=1000)``: learning rates and cycled momentum count.
    """
    if accumulation < 1 or batches < accumulation:
        raise ValueError(f"batches={batches} and accumulation={accumulation}: give 1 or more, and at least one step")
    group = next(iter(prunable(optimizer.param_groups)), None)
    if group is None:
        raise ValueError("the optimizer has no prunable group: give it partition(model)")
    probe = SGD([torch.zeros(1, requires_grad=True)], lr=float(group["lr"]), momentum=group["momentum"])
    schedule = None if scheduler is None else scheduler(probe)
    rates, momenta = [], []
    for _ in range(-(-batches // accumulation)):
        rates.append(float(probe.param_groups[0]["lr"]))
        momenta.append(float(probe.param_groups[0]["momentum"]))
        probe.step()
        if schedule is not None:
            schedule.step()
    reach = accumulated_threshold(rates, group["c"], group["mu"], mode=group["mode"], momentum=momenta)
    norms = torch.cat([group_norms(layer).double() for layer in prunable(optimizer.param_groups)])
    return Forecast(group["c"], reach, float(norms.min()), float(norms.median()))


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
