"""AltSDP: stochastic gradient descent that thresholds groups of weights, so that whole filters become zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softshrink
from torch.optim import Optimizer

from training.groups import group_dims
from training.settings import STRUCTURES
from training.thresholds import MODES, Mode, dual_increment, effective_rate, threshold

# Slabs of about this many weights stay in a core's cache between the operations of a step.
_SLAB = 1 << 20
# Stands for the norm of a zero group, so that nothing is divided by zero.
_TINY = 1e-30


class AltSDP(Optimizer):
    """SGD with the group thresholds of structured directional pruning, in three modes.

    With the descent direction d (gradient, weight decay and momentum as in torch.optim.SGD), the learning rate γ_n of
    step n, γ = γ_n/(1-momentum) and g = c √γ (nγ)^μ, every group i of weights becomes

    - `prox`:        u = w - γ_n d;  w_i = (1 - g/||u_i||)_+ u_i
    - `dual`:        v = v - γ_n d;  T += c γ^(μ+½) (n^μ - (n-1)^μ);  w_i = (1 - T/||v_i||)_+ v_i
    - `cumulative`:  v = v - γ_n d;  G += g;  w_i = (1 - G/||v_i||)_+ v_i

    with v = w at the start. n counts steps from 1 and is never reset. c = 0 is SGD, bit for bit.

    `params` is a partition (see `partition`), or anything torch's optimisers take: then the groups are the rows of each
    tensor of two or more dimensions, and tensors of fewer are not thresholded. `floor` is the share of each layer's
    groups that is always kept: where the threshold would leave fewer, it is lowered for that layer.

    Each parameter group carries its `step` and accumulated `threshold` (G, or T in `dual`).
    """

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
        }
        self._blocks: list[_Block] = []
        self._signature: tuple[Any, ...] = ()
        _check(defaults)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        _check(self.param_groups[-1])
        self._signature = ()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._signature = ()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step; the gradients are those of the last backward pass, or of `closure`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rules = [_advance(group) for group in self.param_groups]
        signature = (
            [rule == before for before, rule in pairwise(rules)],
            [(p.data_ptr(), p.grad is not None) for group in self.param_groups for p in group["params"]],
        )
        if signature != self._signature:
            self._blocks = list(self._plan(rules))
            self._signature = signature
        for block in self._blocks:
            rule = rules[block.rule]
            _descend(block, rule)
            if rule.threshold > 0:
                _shrink(block, rule)
        return loss

    def _plan(self, rules: list[_Rule]) -> Iterator[_Block]:
        """Cut the layers into slabs of whole groups, and gather small slabs under one rule into blocks."""
        block: _Block | None = None
        for index, group in enumerate(self.param_groups):
            for members, structure in _layers(group):
                for slab in self._slabs(group, members, structure):
                    if block is not None and (
                        rules[block.rule] != rules[index] or block.size + slab.size > _SLAB or group["foreach"] is False
                    ):
                        yield block
                        block = None
                    block = block or _Block(rule=index, slabs=[])
                    block.slabs.append(slab)
        if block is not None:
            yield block

    def _slabs(self, group: dict[str, Any], members: list[Tensor], structure: str | None) -> Iterator[_Slab]:
        dual = structure is not None and group["mode"] != "prox"
        for parameter in members:
            state = self.state[parameter]
            if group["momentum"] > 0 and "momentum_buffer" not in state:
                state["momentum_buffer"] = torch.zeros_like(parameter)
            if dual and "v" not in state:
                state["v"] = parameter.detach().clone()
        lead = members[0]
        rows = lead.shape[0] if lead.dim() > 0 else 1
        total = sum(member.numel() for member in members)
        # The floor looks at all groups of a layer at once, so such a layer is one slab.
        each = rows if group["floor"] > 0 else max(1, _SLAB * rows // max(total, 1))
        for start in range(0, rows, max(each, 1)):
            cut = slice(start, start + each) if each < rows else None
            weights = [_piece(member.detach(), cut) for member in members]
            yield _Slab(
                parameters=members,
                cut=cut,
                weights=weights,
                buffers=[_piece(self.state[p]["momentum_buffer"], cut) for p in members] if group["momentum"] else [],
                targets=[_piece(self.state[p]["v"], cut) for p in members] if dual else weights,
                dims=None if structure is None else group_dims(lead, structure),
            )


class _Rule(NamedTuple):
    """What a step does to a parameter group."""

    lr: float
    momentum: float
    weight_decay: float
    threshold: float
    floor: float
    dual: bool


@dataclass
class _Slab:
    """Some rows of the tensors of one layer, as views; `dims` lie inside a group, None where nothing is thresholded."""

    parameters: list[Tensor]
    cut: slice | None
    weights: list[Tensor]
    buffers: list[Tensor]
    targets: list[Tensor]  # what descends: v in the dual modes, else the weights themselves
    dims: tuple[int, ...] | None

    def __post_init__(self) -> None:
        self.size = sum(weight.numel() for weight in self.weights)


class _Block:
    """Slabs that take their step together; its lists run over all their tensors."""

    def __init__(self, rule: int, slabs: list[_Slab]) -> None:
        self.rule = rule
        self.slabs = slabs

    @property
    def size(self) -> int:
        return sum(slab.size for slab in self.slabs)

    @cached_property
    def targets(self) -> list[Tensor]:
        return [target for slab in self.slabs for target in slab.targets]

    @cached_property
    def buffers(self) -> list[Tensor]:
        return [buffer for slab in self.slabs for buffer in slab.buffers]

    @cached_property
    def memory_targets(self) -> list[Tensor]:
        return [_in_memory_order(target) for target in self.targets]

    @cached_property
    def memory_buffers(self) -> list[Tensor]:
        return [_in_memory_order(buffer) for buffer in self.buffers]

    @cached_property
    def weights(self) -> list[Tensor]:
        return [weight for slab in self.slabs for weight in slab.weights]

    @cached_property
    def thresholded(self) -> list[_Shape]:
        return [_Shape(slab) for slab in self.slabs if slab.dims is not None]

    def gradients(self) -> list[Tensor]:
        return [_piece(p.grad, slab.cut) for slab in self.slabs for p in slab.parameters if p.grad is not None]


class _Shape:
    """A thresholded slab with its companions (bias, γ, β) shaped to broadcast against the norms of the groups."""

    def __init__(self, slab: _Slab) -> None:
        self.lead = slab.targets[0]
        self.dims = slab.dims
        ones = (1,) * (self.lead.dim() - 1)
        self.companions = [target.view(-1, *ones) for target in slab.targets[1:]]
        self.weights = [slab.weights[0]] + [weight.view(-1, *ones) for weight in slab.weights[1:]]
        self.targets = [self.lead, *self.companions]

    def norms(self) -> Tensor:
        if not self.dims:
            return self.lead.abs()
        norms: Tensor = torch.linalg.vector_norm(self.lead, dim=self.dims, keepdim=True)
        for companion in self.companions:
            torch.hypot(norms, companion, out=norms)
        return norms


def _advance(group: dict[str, Any]) -> _Rule:
    """Count the step, accumulate, and say which threshold applies: g in `prox`, the sum so far otherwise."""
    group["step"] += 1
    lr, momentum = float(group["lr"]), group["momentum"]
    dual = group["mode"] != "prox"
    grow = dual_increment if group["mode"] == "dual" else threshold
    increment = grow(group["step"], effective_rate(lr, momentum), group["c"], group["mu"])
    group["threshold"] += increment
    now = group["threshold"] if dual else increment
    return _Rule(lr, momentum, group["weight_decay"], now, group["floor"], dual)


def _descend(block: _Block, rule: _Rule) -> None:
    """One step of SGD: by torch's fused kernel, or, without a threshold, in the very arithmetic of torch.optim.SGD."""
    directions: list[Tensor] | tuple[Tensor, ...] = block.gradients()
    # the fused kernel goes by memory, so it needs every gradient to lie as its weight does
    even = all(
        direction.stride() == target.stride() for direction, target in zip(directions, block.targets, strict=True)
    )
    if rule.threshold == 0 or not even:
        if rule.weight_decay:
            directions = torch._foreach_add(directions, block.weights, alpha=rule.weight_decay)
        if rule.momentum:
            torch._foreach_mul_(block.buffers, rule.momentum)
            torch._foreach_add_(block.buffers, directions)
            directions = block.buffers
        torch._foreach_add_(block.targets, directions, alpha=-rule.lr)
        return
    if rule.weight_decay and rule.dual:  # the decay pulls at w, but v descends
        directions = torch._foreach_add(directions, block.weights, alpha=rule.weight_decay)
    torch._fused_sgd_(
        block.memory_targets,
        [_in_memory_order(direction) for direction in directions],
        block.memory_buffers,
        weight_decay=0.0 if rule.dual else rule.weight_decay,
        momentum=rule.momentum,
        lr=rule.lr,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )


def _shrink(block: _Block, rule: _Rule) -> None:
    """w_i = (1 - g/||u_i||)_+ u_i for all groups of a block, as (||u_i|| - g)_+ / ||u_i||."""
    for shape in block.thresholded:
        norms = shape.norms().clamp_min_(_TINY)
        scale = _floored(norms, rule) if rule.floor else softshrink(norms, rule.threshold).div_(norms)
        if rule.dual:
            for weight, target in zip(shape.weights, shape.targets, strict=True):
                torch.mul(target, scale, out=weight)
        else:
            for target in shape.targets:
                target.mul_(scale)


def _floored(norms: Tensor, rule: _Rule) -> Tensor:
    """Scales of a layer that keeps at least the share `floor` of its groups.

    With k groups to keep, the threshold is at most the (k+1)-th largest norm, so the k largest survive it.
    """
    keep = math.ceil(rule.floor * norms.numel())
    if keep >= norms.numel():
        return torch.ones_like(norms)
    limit = torch.topk(norms.flatten(), keep + 1).values[keep]
    threshold_here = limit.clamp_max(rule.threshold)
    return (norms - threshold_here).clamp_min_(0).div_(norms)


def _piece(tensor: Tensor, cut: slice | None) -> Tensor:
    return tensor if cut is None else tensor[cut]


def _in_memory_order(tensor: Tensor) -> Tensor:
    """A contiguous view of a channels-last tensor: the fused kernel would copy it there and back."""
    return tensor if tensor.is_contiguous() or tensor.dim() != 4 else tensor.permute(0, 2, 3, 1)


def _layers(group: dict[str, Any]) -> Iterator[tuple[list[Tensor], str | None]]:
    """The tensors of a parameter group that are thresholded together; those without a gradient are left out."""
    parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
    if any(parameter.grad.is_sparse for parameter in parameters):
        raise ValueError("AltSDP takes no sparse gradients: build the embedding with sparse=False")
    if group["structure"] is None:
        yield from (([parameter], None) for parameter in parameters)
    elif group["structure"] == "rows":
        yield from (([parameter], "filter" if parameter.dim() > 1 else None) for parameter in parameters)
    elif parameters:
        if len(parameters) != len(group["params"]):
            raise ValueError(
                f"layer {group.get('name')!r}: some of its parameters have a gradient and some have none; "
                "train or freeze all of them, or use partition(..., bias=False)"
            )
        yield parameters, group["structure"]


def _check(group: dict[str, Any]) -> None:
    """Refuse settings out of range, by name and value."""
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
    if group["mode"] not in MODES:
        raise ValueError(f"mode={group['mode']!r} is unknown: use one of {', '.join(MODES)}")
    if group["structure"] not in (*STRUCTURES, "rows", None):
        raise ValueError(f"structure={group['structure']!r} is unknown: use one of {', '.join(STRUCTURES)}")
