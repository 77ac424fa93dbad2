"""Blocks of weights that take AltSDP's step together: few operations a step, on memory that is still in cache."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from training.groups import group_dims

# Slabs of about this many weights stay in cache between descent, norms and scaling.
SLAB = 1 << 18
_FUSED_DEVICES = ("cpu", "cuda")


class Rule(NamedTuple):
    """What a step does to a parameter group."""

    lr: float
    momentum: float
    weight_decay: float
    threshold: float
    floor: float
    dual: bool

    @property
    def layout(self) -> tuple[bool, ...]:
        """What of the rule decides how a step is laid out."""
        return self.momentum > 0, self.floor > 0, self.dual


class Slab:
    """Some rows of the tensors of one layer, as views; `dims` lie inside a group, None where nothing is thresholded."""

    def __init__(
        self, members: Sequence[Tensor], cut: slice | None, dims: tuple[int, ...] | None, state: Any, rule: Rule
    ) -> None:
        self.sources = [(member, cut) for member in members]
        self.dims = dims
        self.weights = [_piece(member.detach(), cut) for member in members]
        self.buffers = [_piece(state[member]["momentum_buffer"], cut) for member in members] if rule.momentum else []
        # what descends: v in the dual modes, else the weights themselves
        self.targets = [_piece(state[m]["v"], cut) for m in members] if rule.dual and dims is not None else self.weights
        self.size = sum(weight.numel() for weight in self.weights)
        lead = self.weights[0]
        self.norm_shape = [1 if dim in (dims or ()) else size for dim, size in enumerate(lead.shape)]
        self.kind = (lead.dtype, lead.device)

    @property
    def groups(self) -> int:
        return 0 if self.dims is None else math.prod(self.norm_shape)


class Block:
    """Slabs that take their step together, under the rule of parameter group `rule`."""

    def __init__(self, rule: int, slabs: Sequence[Slab], scratch: tuple[Tensor, Tensor]) -> None:
        self.rule = rule
        self.sources = [source for slab in slabs for source in slab.sources]
        self.weights = [weight for slab in slabs for weight in slab.weights]
        self.targets = [target for slab in slabs for target in slab.targets]
        self.buffers = [buffer for slab in slabs for buffer in slab.buffers]
        self.strides = [target.stride() for target in self.targets]
        self.orders = [_memory_order(target) for target in self.targets]
        self.fused = slabs[0].kind[1].type in _FUSED_DEVICES and None not in self.orders
        self.fused_targets, self.fused_buffers = (self._in_memory_order(x) for x in (self.targets, self.buffers))
        groups = sum(slab.groups for slab in slabs)
        self.norms, self.scales = (memory[:groups] for memory in scratch)
        self.one = torch.ones((), dtype=self.norms.dtype, device=self.norms.device)
        self.layers: list[_Layer] = []
        start = 0
        for slab in slabs:
            if slab.groups:
                here = slice(start, start + slab.groups)
                self.layers.append(_Layer(slab, self.norms[here], self.scales[here]))
                start += slab.groups
        self.scaled_targets = [target for layer in self.layers for target in layer.targets]
        self.scaled_weights = [weight for layer in self.layers for weight in layer.weights]
        self.their_scales = [layer.scales for layer in self.layers for _ in layer.targets]

    def step(self, rule: Rule) -> None:
        if rule.threshold == 0:
            self._descend_as_torch(rule)
            if rule.dual and self.layers:
                torch._foreach_copy_(self.scaled_weights, self.scaled_targets)
            return
        if self.fused:
            self._descend_fused(rule)
        else:
            self._descend_as_torch(rule)
        if self.layers:
            self._shrink(rule)

    def _in_memory_order(self, tensors: list[Tensor]) -> list[Tensor]:
        """Contiguous views of them: the fused kernel takes memory as it lies, or copies it there and back."""
        return [tensor.permute(o) if o else tensor for tensor, o in zip(tensors, self.orders, strict=False)]

    def _gradients(self) -> list[Tensor]:
        return [_piece(parameter.grad, cut) for parameter, cut in self.sources]  # type: ignore[arg-type]

    def _descend_as_torch(self, rule: Rule) -> None:
        """One step of SGD in the very arithmetic of torch.optim.SGD."""
        directions = self._gradients()
        if rule.weight_decay:
            directions = torch._foreach_add(directions, self.weights, alpha=rule.weight_decay)  # type: ignore[assignment]
        if rule.momentum:
            torch._foreach_mul_(self.buffers, rule.momentum)
            torch._foreach_add_(self.buffers, directions)
            directions = self.buffers
        torch._foreach_add_(self.targets, directions, alpha=-rule.lr)

    def _descend_fused(self, rule: Rule) -> None:
        """The same up to rounding, in one pass through memory."""
        directions = self._gradients()
        for i, (direction, stride) in enumerate(zip(directions, self.strides, strict=True)):
            if direction.stride() != stride:
                directions[i] = torch.empty_like(self.targets[i]).copy_(direction)
        if rule.weight_decay and rule.dual:  # the decay pulls at w, but v descends
            directions = torch._foreach_add(directions, self.weights, alpha=rule.weight_decay)  # type: ignore[assignment]
        torch._fused_sgd_(
            self.fused_targets,
            self._in_memory_order(directions),
            self.fused_buffers,
            weight_decay=0.0 if rule.dual else rule.weight_decay,
            momentum=rule.momentum,
            lr=rule.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )

    def _shrink(self, rule: Rule) -> None:
        """w_i = (1 - g/||u_i||)_+ u_i for all groups; a group of norm 0 gets (1 - ∞)_+ = 0."""
        for layer in self.layers:
            layer.measure()
        if rule.floor:
            for layer in self.layers:
                layer.scales.copy_(_floored(layer.norms, rule))
        else:
            torch.addcdiv(self.one, self.one, self.norms, value=-rule.threshold, out=self.scales).clamp_min_(0)
        if rule.dual:
            for target, scale, weight in zip(
                self.scaled_targets, self.their_scales, self.scaled_weights, strict=True
            ):
                torch.mul(target, scale, out=weight)
        else:
            torch._foreach_mul_(self.scaled_targets, self.their_scales)


class _Layer:
    """A thresholded slab, its norms and scales, and its companions (bias, γ, β) shaped to broadcast against them."""

    def __init__(self, slab: Slab, norms: Tensor, scales: Tensor) -> None:
        ones = (1,) * (slab.weights[0].dim() - 1)
        self.dims = slab.dims
        self.norms = norms.view(slab.norm_shape)
        self.scales = scales.view(slab.norm_shape)
        self.targets = slab.targets[:1] + [target.view(-1, *ones) for target in slab.targets[1:]]
        self.weights = slab.weights[:1] + [weight.view(-1, *ones) for weight in slab.weights[1:]]

    def measure(self) -> None:
        if not self.dims:
            torch.abs(self.targets[0], out=self.norms)
            return
        torch.linalg.vector_norm(self.targets[0], dim=self.dims, keepdim=True, out=self.norms)
        for companion in self.targets[1:]:
            torch.hypot(self.norms, companion, out=self.norms)


def plan(groups: Sequence[dict[str, Any]], rules: Sequence[Rule], state: Any) -> list[Block]:
    """Cut the layers into slabs of whole groups, and gather small slabs under one rule into blocks."""
    gathered: list[tuple[int, list[Slab]]] = []
    for index, (group, rule) in enumerate(zip(groups, rules, strict=True)):
        for members, structure in _layers(group):
            for slab in _slabs(members, structure, rule, state):
                if not gathered or group["foreach"] is False or not _fits(slab, rule, gathered[-1], rules):
                    gathered.append((index, []))
                gathered[-1][1].append(slab)
    # Blocks follow each other, so one pair of buffers, still in cache, serves all of them.
    needed: dict[Any, int] = defaultdict(int)
    for _, slabs in gathered:
        needed[slabs[0].kind] = max(needed[slabs[0].kind], sum(slab.groups for slab in slabs))
    scratch = {
        (dtype, device): (torch.empty(size, dtype=dtype, device=device), torch.empty(size, dtype=dtype, device=device))
        for (dtype, device), size in needed.items()
    }
    return [Block(index, slabs, scratch[slabs[0].kind]) for index, slabs in gathered]


def _fits(slab: Slab, rule: Rule, block: tuple[int, list[Slab]], rules: Sequence[Rule]) -> bool:
    index, slabs = block
    small = slab.size + sum(other.size for other in slabs) <= SLAB
    return small and rules[index] == rule and slabs[0].kind == slab.kind


def _layers(group: Mapping[str, Any]) -> Iterator[tuple[list[Tensor], str | None]]:
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


def _slabs(members: list[Tensor], structure: str | None, rule: Rule, state: Any) -> Iterator[Slab]:
    for member in members:
        if rule.momentum:
            _keep(state[member], "momentum_buffer", member, torch.zeros_like(member))
        if rule.dual and structure is not None:
            _keep(state[member], "v", member, member.detach())
    lead = members[0]
    rows = lead.shape[0] if lead.dim() > 0 else 1
    total = sum(member.numel() for member in members)
    dims = None if structure is None else group_dims(lead, structure)
    # The floor looks at all groups of a layer at once, so such a layer is one slab.
    each = rows if rule.floor else max(1, SLAB * rows // max(total, 1))
    for start in range(0, rows, max(each, 1)):
        yield Slab(members, slice(start, start + each) if each < rows else None, dims, state, rule)


def _keep(state: dict[str, Tensor], name: str, member: Tensor, initial: Tensor) -> None:
    """State lies in memory as its weight does, also after the network or a loaded state has changed its order."""
    values = state.get(name, initial)
    if name not in state or values.stride() != member.stride():
        state[name] = torch.empty_like(member).copy_(values)


def _floored(norms: Tensor, rule: Rule) -> Tensor:
    """Scales of a layer that keeps at least the share `floor` of its groups.

    With k groups to keep, the threshold is at most the largest norm below the k-th largest one, so those k survive it.
    """
    keep = math.ceil(rule.floor * norms.numel())
    least = torch.topk(norms.flatten(), keep).values[-1]
    threshold = torch.where(norms < least, norms, 0).amax().clamp_max(rule.threshold)
    return (norms - threshold).clamp_min_(0).div_(norms.clamp_min(torch.finfo(norms.dtype).tiny))


def _piece(tensor: Tensor, cut: slice | None) -> Tensor:
    return tensor if cut is None else tensor[cut]


def _memory_order(tensor: Tensor) -> tuple[int, ...] | None:
    """The permutation of its dimensions that makes a tensor contiguous, () where it is so already, None if there is none."""
    if tensor.is_contiguous():
        return ()
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return (0, 2, 3, 1)
    return None
