"""AltSDP: stochastic gradient descent that thresholds groups of weights, so that whole filters become zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import torch
from torch.optim import Optimizer

from valleyscope.training._blocks import Block, Rule, plan
from valleyscope.training.landing import LastValues
from valleyscope.training.settings import STRUCTURES
from valleyscope.training.thresholds import MODES, Mode, dual_increment, effective_rate, threshold
from valleyscope.training.zero_groups import ZeroGroups


class AltSDP(Optimizer):
    """SGD with the group thresholds of structured directional pruning, in three modes.

    With the descent direction d (gradient, weight decay and momentum as in torch.optim.SGD), the learning rate γ_n of
    step n, γ = γ_n/(1-momentum) and g = c √γ (nγ)^μ, every group i of weights becomes

    - `prox`:        u = w - γ_n d;  w_i = (1 - g/||u_i||)_+ u_i
    - `dual`:        v = v - γ_n d;  T += c γ^(μ+½) (n^μ - (n-1)^μ);  w_i = (1 - T/||v_i||)_+ v_i
    - `cumulative`:  v = v - γ_n d;  G += g;  w_i = (1 - G/||v_i||)_+ v_i

    with v = w at the start. n counts steps from 1 and is never reset. c = 0 is SGD, bit for bit.

    `params` is a partition (see `partition`), or anything torch's optimisers accept: then the groups are the rows of
    each tensor of two or more dimensions, and other tensors are not thresholded. `floor` is the share of each layer's
    groups that is always kept: if the threshold would leave fewer, it is lowered for that layer.

    With `sparsity` the threshold ends at the step after which that share of all groups is zero: those groups stay
    zero, and the others go on by SGD, so that the loss falls back to that of a network trained without threshold. If
    that step took more groups than needed, the largest of them get back their values before it.

    Each parameter group has its `step`, its accumulated `threshold` (G, or T in `dual`), and `ended`, the step after
    which the threshold ended (0 while it acts).
    """

    lands_exactly = False
    """Whether steps are remembered also without `sparsity`, for `end_threshold`."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.1,
        c: float = 1e-6,
        mu: float = 0.51,
        mode: Mode = "prox",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        floor: float = 0.0,
        foreach: bool | None = None,
        sparsity: float | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "c": c,
            "mu": mu,
            "mode": mode,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "floor": floor,
            "foreach": foreach,
            "structure": "rows",
            "step": 0,
            "threshold": 0.0,
            "sparsity": sparsity,
            "ended": 0,
        }
        self._blocks: list[Block] = []
        self._layout: tuple[list[Any], ...] = ()
        self._frozen: ZeroGroups | None = None
        self._last: LastValues | None = None
        _check(defaults)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        _check(self.param_groups[-1])
        self._layout = ()
        self._frozen = self._last = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("sparsity", None)
            group.setdefault("ended", 0)
        self._layout = ()
        self._frozen = self._last = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step; the gradients are those of the last backward pass, or of `closure`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._freeze_zero_groups()
        self._remember()
        rules = [self._advance(group) for group in self.param_groups]
        layout = (
            [rule.layout for rule in rules],
            [before == rule for before, rule in pairwise(rules)],
            [(p.data_ptr(), p.grad is not None) for group in self.param_groups for p in group["params"]],
        )
        if layout != self._layout:
            self._blocks = plan(self.param_groups, rules, self.state)
            self._layout = layout
        # All directions are prepared first, to keep Python out of the loop over cached weights.
        directions = [block.directions(rules[block.rule]) for block in self._blocks]
        for block, prepared in zip(self._blocks, directions, strict=True):
            block.step(rules[block.rule], prepared)
        self._end_threshold_when_sparse()
        return loss

    def _freeze_zero_groups(self) -> None:
        """Once the threshold has ended, remove the gradients of zero groups."""
        if not self.param_groups[0]["ended"]:
            return
        if self._frozen is None:
            self._frozen = ZeroGroups(self.param_groups)
        self._frozen.clear([parameter.grad for parameter in self._frozen.parameters])

    def _remember(self) -> None:
        """Keep the weights before the step, while a step may take more groups than wished."""
        wished = self.lands_exactly or self.param_groups[0]["sparsity"] is not None
        if not wished or self.param_groups[0]["ended"]:
            self._last = None
            return
        if self._last is None:
            self._last = LastValues(self.param_groups)
        self._last.remember()

    def _end_threshold_when_sparse(self) -> None:
        wanted = self.param_groups[0]["sparsity"]
        if wanted is None or self.param_groups[0]["ended"]:
            return
        if ZeroGroups(self.param_groups).share >= wanted:
            self.end_threshold(lambda: ZeroGroups(self.param_groups).share >= wanted)

    def end_threshold(self, enough: Callable[[], bool] | None = None) -> None:
        """End the threshold now: groups that are zero stay zero, the others go on by SGD.

        With `enough`, which says whether the groups that are zero suffice, no more of those stay zero that the last
        step took.
        """
        if self.param_groups[0]["ended"]:
            return
        if enough is not None and self._last is not None:
            self._last.keep_fewest(enough)
        self._last = None
        self._end_threshold(ZeroGroups(self.param_groups))

    def _end_threshold(self, zero: ZeroGroups) -> None:
        for group in self.param_groups:
            group["ended"] = group["step"]
        for state in self.state.values():
            state.pop("v", None)
        zero.clear([self.state[parameter].get("momentum_buffer") for parameter in zero.parameters])
        self._frozen, self._layout = zero, ()

    def _advance(self, group: dict[str, Any]) -> Rule:
        """Count the step, accumulate the threshold, and return the rule: with g in `prox`, else with the sum so far."""
        group["step"] += 1
        lr, momentum = float(group["lr"]), group["momentum"]
        if group["ended"]:
            return Rule(lr, momentum, group["weight_decay"], threshold=0.0, floor=0.0, dual=False)
        dual = group["mode"] != "prox"
        increment = self._increment(group, effective_rate(lr, momentum))
        group["threshold"] += increment
        now = group["threshold"] if dual else increment
        return Rule(lr, momentum, group["weight_decay"], now, group["floor"], dual)

    def _increment(self, group: dict[str, Any], rate: float) -> float:
        """What the step adds to the threshold at the effective rate γ."""
        grow = dual_increment if group["mode"] == "dual" else threshold
        return grow(group["step"], rate, group["c"], group["mu"])


def _check(group: dict[str, Any]) -> None:
    """Raise a ValueError for settings out of range."""
    ranges = {
        "lr": (0.0, math.inf, "zero or more"),
        "c": (0.0, math.inf, "zero or more (zero is plain SGD)"),
        "mu": (0.0, math.inf, "zero or more (the paper uses 0.4 to 0.6)"),
        "momentum": (0.0, math.nextafter(1.0, 0.0), "from 0 to below 1"),
        "weight_decay": (0.0, math.inf, "zero or more"),
        "floor": (0.0, 1.0, "a share from 0 to 1"),
    }
    for field, (low, high, remedy) in ranges.items():
        value = float(group[field])
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(f"{field}={group[field]}: must be a finite number, {remedy}")
    if group["sparsity"] is not None and not 0 < group["sparsity"] < 1:
        raise ValueError(f"sparsity={group['sparsity']}: must be a share of the groups, above 0 and below 1")
    if group["sparsity"] is not None and group["sparsity"] > 1 - group["floor"]:
        raise ValueError(
            f"sparsity={group['sparsity']} cannot be reached: floor={group['floor']} keeps that share of each layer"
        )
    if group["mode"] not in MODES:
        raise ValueError(f"mode={group['mode']!r} is unknown: use one of {', '.join(MODES)}")
    if group["structure"] not in (*STRUCTURES, "rows", None):
        raise ValueError(f"structure={group['structure']!r} is unknown: use one of {', '.join(STRUCTURES)}")
