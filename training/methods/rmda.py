"""RMDA, regularised modernised dual averaging (Huang and Lee 2022).

    s_t = γ √t;  V += s_t d;  a += s_t λ;  w~_i = S(w0_i - V_i/√t, √size_i a/√t);  w = (1 - β) w + β w~

with S(u, τ) = (1 - τ/||u||)_+ u, w0 the weights at the start, size_i the number of weights in a group, and
γ = lr/(1 - momentum): β does what momentum does, so there is no other. The average of a float32 weight with zero never
is zero; a group whose w~ is zero is set to zero when its norm is below float32's precision of its norm at the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from valleyscope.training._blocks import floored
from valleyscope.training.altsdp import AltSDP
from valleyscope.training.methods.group_lasso import GroupLassoMethod
from valleyscope.training.parameter_groups import ParameterGroup, group_dims
from valleyscope.training.thresholds import PENALTY_LIMIT, PRUNING_PART, effective_rate

# A λ that should fulfil a wish in time, but rather too late than before the network has learned; it grows later.
_CAUTION = 0.6


class RMDA(AltSDP):
    """The optimiser; a partition gives its groups. `ended`, `sparsity` and `threshold` are those of AltSDP."""

    def __init__(self, params: Any, lr: float, penalty: float, averaging: float = 0.1, **rest: Any) -> None:
        super().__init__(params, lr=lr, c=penalty, **rest)
        self._masks: dict[int, Tensor] = {}
        for group in self.param_groups:
            group["averaging"] = averaging
            group["regularisation"] = 0.0

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        if self.param_groups[0]["ended"]:  # AltSDP without threshold: SGD that keeps zeros
            return super().step(closure)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            group["step"] += 1
            root = math.sqrt(group["step"])
            scale = effective_rate(float(group["lr"]), group["momentum"]) * root
            group["regularisation"] += scale * group["c"]
            group["threshold"] = group["regularisation"] / root
            self._descend(group, scale, root)
        wanted = self.param_groups[0]["sparsity"]
        if wanted is not None and self.share_of_zero_points >= wanted:
            self.end_threshold()
        return loss

    @property
    def share_of_zero_points(self) -> float:
        """The share of groups whose w~ is zero: the average w follows, and is zero some 150 steps later."""
        masks = self.zero_points.values()
        total = sum(mask.numel() for mask in masks)
        return sum(int(mask.sum()) for mask in masks) / total if total else 0.0

    def end_threshold(self, enough: Callable[[], bool] | None = None) -> None:  # noqa: ARG002
        """Set to zero the groups whose w~ is zero, keep them so, and go on by SGD from the average.

        With `sparsity` only as many as it needs: of those whose average is not zero yet, the smallest.
        """
        if (wanted := self.param_groups[0]["sparsity"]) is not None:
            self._leave_out_superfluous(wanted)
        for group in self.param_groups:
            if id(group) in self._masks:
                self._set_to_zero(group["params"], self._masks[id(group)])
        super().end_threshold()
        for state in self.state.values():
            state.pop("sum", None)
            state.pop("start", None)

    def forget_zero_points(self) -> None:
        """Let the end of the threshold set no more groups to zero than are so already."""
        self._masks.clear()

    def _leave_out_superfluous(self, wanted: float) -> None:
        """Take from the masks the largest groups beyond the wanted share."""
        if not self._masks:
            return
        masked = [(group, self._masks[id(group)]) for group in self.param_groups if id(group) in self._masks]
        norms = [_norms([p.detach() for p in group["params"]], group["structure"])[0] for group, _ in masked]
        sizes = torch.cat([torch.where(mask, norm, 0).flatten() for (_, mask), norm in zip(masked, norms, strict=True)])
        count = sum(int(mask.sum()) for _, mask in masked)
        superfluous = min(count - math.ceil(wanted * len(sizes) - 1e-9), int((sizes > 0).sum()))
        if superfluous <= 0:
            return
        back = torch.zeros(len(sizes), dtype=torch.bool, device=sizes.device)
        back[sizes.argsort(descending=True, stable=True)[:superfluous]] = True
        parts = torch.split(back, [mask.numel() for _, mask in masked])
        for (_, mask), part in zip(masked, parts, strict=True):
            mask &= ~part.view(mask.shape)

    def _descend(self, group: ParameterGroup, scale: float, root: float) -> None:
        members = [parameter for parameter in group["params"] if parameter.grad is not None]
        new = []
        for parameter in members:
            state = self.state[parameter]
            if "start" not in state:
                state["start"] = parameter.detach().clone()
                state["sum"] = torch.zeros_like(parameter)
            state["sum"].add_(parameter.grad.add(parameter, alpha=group["weight_decay"]), alpha=scale)
            new.append(torch.sub(state["start"], state["sum"], alpha=1 / root))
        beta = group["averaging"]
        if group["structure"] in (None, "rows") or not members:
            for parameter, point in zip(members, new, strict=True):
                parameter.lerp_(point, beta)
            return
        norms, size = _norms(new, group["structure"])
        shrinkage = _shrinkage(norms, group["threshold"] * math.sqrt(size), group["floor"])
        for parameter, point in zip(members, new, strict=True):
            parameter.lerp_(point * _shaped(shrinkage, parameter), beta)
        starts, _ = _norms([self.state[parameter]["start"] for parameter in members], group["structure"])
        left, _ = _norms([parameter.detach() for parameter in members], group["structure"])
        self._masks[id(group)] = shrinkage == 0
        self._set_to_zero(members, (shrinkage == 0) & (left <= torch.finfo(left.dtype).eps * starts))

    @property
    def zero_points(self) -> dict[str, Tensor]:
        """Which groups of each layer have a w~ of zero, after the last step."""
        return {
            group.get("name", str(index)): self._masks[id(group)].flatten()
            for index, group in enumerate(self.param_groups)
            if id(group) in self._masks
        }

    @staticmethod
    def _set_to_zero(members: list[Tensor], gone: Tensor) -> None:
        for parameter in members:
            parameter.detach().masked_fill_(_shaped(gone, parameter), 0.0)


def _norms(members: list[Tensor], structure: str) -> tuple[Tensor, int]:
    """Norms of the groups of one layer, shaped to broadcast over its weight, and the weights in a group."""
    lead, *companions = members
    dims = group_dims(lead, structure)
    norms = torch.linalg.vector_norm(lead, dim=dims, keepdim=True) if dims else lead.abs()
    for companion in companions:
        norms = torch.hypot(norms, companion.view(norms.shape))
    return norms, lead.numel() // norms.numel() + len(companions)


def _shrinkage(norms: Tensor, threshold: float, floor: float) -> Tensor:
    """(1 - threshold/norm)_+, where the share `floor` of the groups keeps more than nothing."""
    if floor:
        return floored(norms, threshold, floor)
    return (1 - threshold / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_min_(0)


def _shaped(values: Tensor, parameter: Tensor) -> Tensor:
    return values.view(-1) if parameter.dim() == 1 and values.dim() > 1 else values


class RMDAMethod(GroupLassoMethod):
    """A run by RMDA."""

    def _build(self) -> AltSDP:
        averaging = self.context.settings.option("averaging")
        return RMDA(self.context.groups, penalty=self._penalty(), averaging=averaging, **self._shared_options())

    def start_after(self, steps: int) -> None:
        """t counts the averaged gradients, of which a fork has none yet."""

    def _zero_share(self) -> float:
        return self._rmda.share_of_zero_points

    def _few_enough_operations(self) -> bool:
        wanted = self.context.settings.macs
        return wanted is not None and self.context.operations.share(self._rmda.zero_points) <= wanted

    @property
    def _rmda(self) -> RMDA:
        assert isinstance(self._optimizer, RMDA)
        return self._optimizer

    def _cut_the_rest(self, epoch: int) -> None:
        self._rmda.forget_zero_points()
        super()._cut_the_rest(epoch)

    def _penalty(self) -> float:
        """λ as given; with a wish alone the λ with which a/√t √size reaches the norms' median in time."""
        settings = self.context.settings
        share = settings.expected_share
        if settings.penalty is not None or share is None:
            return float(settings.option("penalty"))
        relative, largest = [], 1
        for layer in self.context.layers:
            norms, size = _norms([parameter.detach() for parameter in layer["params"]], layer["structure"])
            largest = max(largest, size)
            relative.append(norms.flatten().double() / math.sqrt(size))
        rates = settings.rates(self.context.steps)
        count = max(1, int(PRUNING_PART * len(rates)))
        roots = torch.arange(1, count + 1, dtype=torch.float64).sqrt()
        reach = float((torch.as_tensor(rates[:count]) * roots).sum() / roots[-1]) / (1 - settings.momentum)
        wanted = _CAUTION * float(torch.cat(relative).median()) * (1 + share) / reach
        return min(PENALTY_LIMIT / math.sqrt(largest), wanted)
