"""AltSDP as a method: the optimiser `AltSDP`, with a wish for its share of zero groups or multiply-adds.

    prox:        u = w - γ_n d;  w_i = (1 - g/||u_i||)_+ u_i,  g = c √γ (nγ)^μ
    dual:        v = v - γ_n d;  T += c γ^(μ+½) (n^μ - (n-1)^μ);  w_i = (1 - T/||v_i||)_+ v_i
    cumulative:  v = v - γ_n d;  G += g;  w_i = (1 - G/||v_i||)_+ v_i

Without a wish this is the paper's method to its end. With one the threshold ends where the wish is fulfilled: groups
that are zero stay so, the rest goes on by SGD. c is guessed from the norms and the schedule, and grows if the
wish takes too long (`thresholds.c_for_sparsity`, `thresholds.grown`). Of the last step only as many groups stay zero as
the wish needs, and what is missing half-way through the run is cut by norm, so every run lands on its wish and has time
to recover. `grda` is mode `dual` on single weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer

from valleyscope.training.altsdp import AltSDP
from valleyscope.training.methods.method import Method, RunContext, set_to_zero
from valleyscope.training.methods.scores import norm_scores
from valleyscope.training.methods.selection import select
from valleyscope.training.parameter_groups import group_norms
from valleyscope.training.pruning_forecast import forecast
from valleyscope.training.thresholds import LATEST_PART, grown
from valleyscope.training.zero_groups import ZeroGroups

# Multiply-adds are counted again when this share of the groups more is zero: counting takes longer than a small step.
COUNT_EVERY = 0.002


class Thresholding(Method):
    """A run whose optimiser is AltSDP or one of its family; records when the threshold ended."""

    strength = "c"

    def __init__(self, context: RunContext) -> None:
        super().__init__(context)
        self._counted = 0.0

    def optimizer(self) -> Optimizer:
        self._optimizer = self._build()
        self._optimizer.lands_exactly = self.context.settings.macs is not None
        return self._optimizer

    def _build(self) -> AltSDP:
        settings = self.context.settings
        expected = forecast(self.context.groups, settings, self.context.steps)
        return AltSDP(
            self.context.groups,
            c=0.0 if expected is None else expected.c,
            mu=settings.mu,
            mode=settings.mode,
            **self._shared_options(),
        )

    def _shared_options(self) -> dict[str, Any]:
        """What all optimisers of the family take from the settings."""
        settings = self.context.settings
        fields = ("lr", "momentum", "weight_decay", "floor", "sparsity")
        return {field: getattr(settings, field) for field in fields}

    def start_after(self, steps: int) -> None:
        """n counts from the first step of the trunk: the threshold is as high as it would be there by now."""
        for group in self._optimizer.param_groups:
            group["step"] = steps

    def after_step(self, step: int) -> None:
        first = self._optimizer.param_groups[0]
        if self.context.settings.macs is not None and not first["ended"] and self._operations_have_fallen():
            self._optimizer.end_threshold(self._few_enough_operations)
        if first["ended"] and "threshold_ended" not in self.facts:
            self._record_end(step)

    def _operations_have_fallen(self) -> bool:
        """Whether the wish is fulfilled; asked only where more groups are zero than at the last count."""
        share = self._zero_share()
        if share < self._counted + COUNT_EVERY:
            return False
        self._counted = share
        return self._few_enough_operations()

    def _zero_share(self) -> float:
        return ZeroGroups(self._optimizer.param_groups).share

    def _few_enough_operations(self) -> bool:
        wanted = self.context.settings.macs
        return wanted is not None and self.context.operations.share() <= wanted

    def after_epoch(self, epoch: int) -> None:
        settings = self.context.settings
        if settings.wish is None or self._optimizer.param_groups[0]["ended"]:
            return
        passed, whole = (number - settings.first_epoch for number in (epoch, settings.epochs))
        if passed >= LATEST_PART * whole:
            self._cut_the_rest(epoch)
            return
        for group in self._optimizer.param_groups:
            group[self.strength] = grown(group[self.strength], passed, whole)

    def _cut_the_rest(self, epoch: int) -> None:
        """Fulfil the wish by a cut of the lowest norms, and go on by SGD."""
        removed = select(self.context, norm_scores(self.context))
        before = self._zero_count()
        for layer in self.context.layers:
            set_to_zero(layer, removed[layer["name"]])
        self._optimizer.end_threshold()
        self._record_end(epoch * self.context.steps)
        self.facts["threshold_ended"]["cut_groups"] = self._zero_count() - before

    def _zero_count(self) -> int:
        return sum(int((group_norms(layer) == 0).sum()) for layer in self.context.layers)

    def _record_end(self, step: int) -> None:
        self.facts["threshold_ended"] = {
            "step": step,
            "epoch": -(-step // self.context.steps),
            "threshold": max(group["threshold"] for group in self._optimizer.param_groups),
        }

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"counted": self._counted}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._counted = state.get("counted", 0.0)


def median_norm(context: RunContext) -> float:
    """The median of the norms of all prunable groups, now."""
    return float(torch.cat([group_norms(layer).double() for layer in context.layers]).median())
