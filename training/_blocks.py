"""Blocks of weights that take AltSDP's step together: few operations per step, on memory that is still in cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from valleyscope.training.parameter_groups import group_dims

# Slabs of about this many weights are still in cache when their norms are computed. Several slabs are scaled at once, a
# compromise between cache hits and the number of calls.
SLAB_SIZE = 1 << 18
SLABS_SCALED_AT_ONCE = 4
_FUSED_DEVICES = ("cpu", "cuda")


class Rule(NamedTuple):
    """The settings of a step for a parameter group."""

    lr: float
    momentum: float
    weight_decay: float
    threshold: float
    floor: float
    dual: bool

    @property
    def layout(self) -> tuple[bool, ...]:
        """The part of the rule that decides the layout of a step."""
        return self.momentum > 0, self.floor > 0, self.dual


class Layer:
    """Tensors that share rows and are thresholded together; `dims` are inside a group, None without threshold.

    `offsets` are the groups of their first rows, all 0 except for tied filters.
    """

    def __init__(
        self, members: list[Tensor], structure: str | None, rule: Rule, state: Any, offsets: Sequence[int] | None = None
    ) -> None:
        self.members = members
        self.offsets = offsets or [0] * len(members)
        self.tied = any(self.offsets) or sum(member.dim() > 1 for member in members) > 1
        self.weights = [member.detach() for member in members]
        lead = self.weights[0]
        self.dims = None if structure is None else group_dims(lead, structure)
        self.rows = lead.shape[0] if lead.dim() > 0 else 1
        self.size = sum(weight.numel() for weight in self.weights)
        outside = [] if self.dims is None else [n for dim, n in enumerate(lead.shape) if dim not in (0, *self.dims)]
        self.groups_per_row = 0 if self.dims is None else math.prod(outside)
        self.kind = (lead.dtype, lead.device)
        self.buffers: list[Tensor] = []
        if rule.momentum:
            self.buffers = [_state_like(state[m], "momentum_buffer", m, torch.zeros_like(m)) for m in members]
        # what descends: v in the dual modes, else the weights themselves
        self.targets = self.weights
        if rule.dual and structure is not None:
            self.targets = [_state_like(state[m], "v", m, m.detach()) for m in members]


class Block:
    """Small layers as one slab, or a large layer as slabs of `slab_rows` rows; `rule` is the index of its rule."""

    def __init__(
        self,
        rule: int,
        layers: Sequence[Layer],
        slab_rows: int,
        shrunk_rows: int,
        scratch: tuple[Tensor, Tensor],
    ) -> None:
        self.rule = rule
        self.slab_rows = slab_rows
        self.rows = max(layer.rows for layer in layers)
        self.parameters = [member for layer in layers for member in layer.members]
        self.weights = [weight for layer in layers for weight in layer.weights]
        self.targets = [target for layer in layers for target in layer.targets]
        self.buffers = [buffer for layer in layers for buffer in layer.buffers]
        self.strides = [target.stride() for target in self.targets]
        self.orders = [_memory_order(target) for target in self.targets]
        self.fused = layers[0].kind[1].type in _FUSED_DEVICES and None not in self.orders
        self.slabs = [
            Slab(targets, buffers, weights)
            for targets, buffers, weights in zip(
                self._cut(self._in_memory_order(self.targets)),
                self._cut(self._in_memory_order(self.buffers)),
                self._cut(self._in_memory_order(self.weights)),
                strict=True,
            )
        ]
        for start in range(0, self.rows, max(shrunk_rows, 1)):
            shrinkage = Shrinkage(
                layers, slice(start, start + shrunk_rows) if shrunk_rows < self.rows else None, scratch
            )
            first = start // max(slab_rows, 1)
            group = self.slabs[first : first + -(-shrunk_rows // max(slab_rows, 1))]
            for index, slab in enumerate(group):
                cut = slice(index * slab_rows, (index + 1) * slab_rows) if len(group) > 1 else None
                slab.measured = shrinkage.lead_norms(cut)
            group[-1].shrinkage = shrinkage

    def directions(self, rule: Rule) -> list[list[Tensor]]:
        """The gradients for the fused kernel, by slab; none if the step needs torch's SGD arithmetic."""
        if rule.threshold == 0 or not self.fused:
            return []
        gradients: list[Tensor] = [parameter.grad for parameter in self.parameters]  # type: ignore[misc]
        if [gradient.stride() for gradient in gradients] != self.strides:
            gradients = [
                torch.empty_like(target).copy_(gradient)
                for target, gradient in zip(self.targets, gradients, strict=True)
            ]
        return self._cut(self._in_memory_order(gradients))

    def step(self, rule: Rule, directions: list[list[Tensor]]) -> None:
        """Descend along the prepared `directions`, and shrink."""
        if directions:
            for slab, gradients in zip(self.slabs, directions, strict=True):
                slab.descend(rule, gradients)
                slab.shrink(rule)
            return
        self._descend(rule)
        for slab in self.slabs:
            slab.shrink(rule)

    def _descend(self, rule: Rule) -> None:
        """One step of SGD in the exact arithmetic of torch.optim.SGD."""
        directions = [parameter.grad for parameter in self.parameters]
        if rule.weight_decay:
            directions = torch._foreach_add(directions, self.weights, alpha=rule.weight_decay)  # type: ignore[assignment,arg-type]
        if rule.momentum:
            torch._foreach_mul_(self.buffers, rule.momentum)
            torch._foreach_add_(self.buffers, directions)  # type: ignore[arg-type]
            directions = self.buffers  # type: ignore[assignment]
        torch._foreach_add_(self.targets, directions, alpha=-rule.lr)  # type: ignore[arg-type]

    def _cut(self, tensors: list[Tensor]) -> list[list[Tensor]]:
        """The tensors of each slab; small tensors beside a large weight go with the first slab."""
        if self.slab_rows >= self.rows:
            return [tensors]
        if not tensors:
            return [[] for _ in range(0, self.rows, self.slab_rows)]
        first, *others = tensors[0].split(self.slab_rows)  # type: ignore[no-untyped-call]
        return [[first, *tensors[1:]], *([other] for other in others)]

    def _in_memory_order(self, tensors: list[Tensor]) -> list[Tensor]:
        """Contiguous views: the fused kernel ignores strides or copies."""
        return [tensor.permute(order) if order else tensor for tensor, order in zip(tensors, self.orders, strict=False)]


class Slab:
    """Tensors that descend in one pass; their norms are computed in cache, the last slab of a group shrinks all."""

    measured: list[tuple[Tensor, tuple[int, ...], Tensor]]
    shrinkage: Shrinkage | None = None

    def __init__(self, targets: list[Tensor], buffers: list[Tensor], weights: list[Tensor]) -> None:
        self.targets = targets
        self.buffers = buffers
        self.weights = weights

    def descend(self, rule: Rule, gradients: list[Tensor]) -> None:
        if rule.weight_decay and rule.dual:  # the decay acts on w, but v descends
            gradients = torch._foreach_add(gradients, self.weights, alpha=rule.weight_decay)  # type: ignore[assignment]
        torch._fused_sgd_(
            self.targets,
            gradients,
            self.buffers,
            weight_decay=0.0 if rule.dual else rule.weight_decay,
            momentum=rule.momentum,
            lr=rule.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )

    def shrink(self, rule: Rule) -> None:
        for lead, dims, norms in self.measured:
            if dims:
                torch.linalg.vector_norm(lead, dim=dims, keepdim=True, out=norms)
            else:
                torch.abs(lead, out=norms)
        if self.shrinkage is not None:
            self.shrinkage.apply(rule)


class Shrinkage:
    """w_i = (1 - g/||u_i||)_+ u_i on some rows of a block's layers; companions (bias, γ, β) are broadcast."""

    def __init__(self, layers: Sequence[Layer], cut: slice | None, scratch: tuple[Tensor, Tensor]) -> None:
        self.weights: list[Tensor] = []
        self.targets: list[Tensor] = []
        self.scales_of_targets: list[Tensor] = []
        self.layers: list[tuple[Tensor, list[tuple[Tensor, Tensor]], tuple[int, ...], Tensor, Tensor]] = []
        count = 0
        for layer in layers:
            if layer.dims is None:
                continue
            weights, targets = (_with_broadcast_companions(_row_slices(x, cut)) for x in (layer.weights, layer.targets))
            shape = [1 if dim in layer.dims else size for dim, size in enumerate(weights[0].shape)]
            here = slice(count, count + math.prod(shape))
            norms, scales = (memory[here].view(shape) for memory in scratch)
            count = here.stop
            self.weights += weights
            self.targets += targets
            if layer.tied:
                places = [slice(first, first + len(x)) for first, x in zip(layer.offsets, targets, strict=True)]
                views = [
                    (_rows_like(norms[at], x), _rows_like(scales[at], x)) for at, x in zip(places, targets, strict=True)
                ]
            else:
                views = [(norms, scales)] * len(targets)
            self.scales_of_targets += [scale for _, scale in views]
            companions = [(target, norm) for target, (norm, _) in zip(targets[1:], views[1:], strict=True)]
            self.layers.append((targets[0], companions, layer.dims, norms, scales))
        self.norms, self.scales = (memory[:count] for memory in scratch)
        self.one = torch.ones((), dtype=self.norms.dtype, device=self.norms.device)

    def lead_norms(self, cut: slice | None) -> list[tuple[Tensor, tuple[int, ...], Tensor]]:
        """Weights of some of these rows, and the memory of their norms."""
        return [
            (_row_slices([lead], cut)[0], dims, _row_slices([norms], cut)[0]) for lead, _, dims, norms, _ in self.layers
        ]

    def apply(self, rule: Rule) -> None:
        """Shrink, given the norms of the weights alone; a group of norm 0 gets (1 - ∞)_+ = 0."""
        if not self.layers:
            return
        if rule.threshold == 0:
            if rule.dual:
                torch._foreach_copy_(self.weights, self.targets)
            return
        for _, companions, _, norms, scales in self.layers:
            for companion, own in companions:
                if companion.shape != own.shape:  # a tied filter
                    companion = torch.linalg.vector_norm(companion, dim=tuple(range(1, companion.dim())), keepdim=True)
                torch.hypot(own, companion, out=own)
            if rule.floor:
                scales.copy_(floored(norms, rule.threshold, rule.floor))
        if not rule.floor:
            torch.addcdiv(self.one, self.one, self.norms, value=-rule.threshold, out=self.scales).clamp_min_(0)
        if rule.dual:
            for target, scale, weight in zip(self.targets, self.scales_of_targets, self.weights, strict=True):
                torch.mul(target, scale, out=weight)
        else:
            torch._foreach_mul_(self.targets, self.scales_of_targets)


def plan(groups: Sequence[dict[str, Any]], rules: Sequence[Rule], state: Any) -> list[Block]:
    """Combine small layers with one rule into blocks, and split large ones into slabs of whole groups."""
    gathered: list[tuple[int, list[Layer]]] = []
    for index, (group, rule) in enumerate(zip(groups, rules, strict=True)):
        for members, structure in _layers(group):
            layer = Layer(members, structure, rule, state, group.get("offsets"))
            if not gathered or group["foreach"] is False or not _fits_block(layer, rule, gathered[-1], rules):
                gathered.append((index, []))
            gathered[-1][1].append(layer)
    # Slabs are processed in turn, so one pair of buffers, still in cache, serves all of them.
    scratch: dict[Any, tuple[Tensor, Tensor]] = {}
    blocks = []
    for index, layers in gathered:
        size, rows = sum(layer.size for layer in layers), max(layer.rows for layer in layers)
        tied = any(layer.tied for layer in layers)  # their rows do not line up
        slab_rows = rows if size <= SLAB_SIZE or tied else max(1, SLAB_SIZE * rows // size)
        # The floor needs all groups of a layer at once.
        shrunk_rows = rows if rules[index].floor else SLABS_SCALED_AT_ONCE * slab_rows
        needed = sum(min(shrunk_rows, layer.rows) * layer.groups_per_row for layer in layers)
        kind = layers[0].kind
        if kind not in scratch or len(scratch[kind][0]) < needed:
            dtype, device = kind
            scratch[kind] = (
                torch.empty(needed, dtype=dtype, device=device),
                torch.empty(needed, dtype=dtype, device=device),
            )
        blocks.append((index, layers, slab_rows, shrunk_rows))
    return [
        Block(index, layers, slab_rows, shrunk_rows, scratch[layers[0].kind])
        for index, layers, slab_rows, shrunk_rows in blocks
    ]


def _fits_block(layer: Layer, rule: Rule, block: tuple[int, list[Layer]], rules: Sequence[Rule]) -> bool:
    index, layers = block
    small = layer.size + sum(other.size for other in layers) <= SLAB_SIZE
    return small and rules[index] == rule and layers[0].kind == layer.kind


def _layers(group: Mapping[str, Any]) -> Iterator[tuple[list[Tensor], str | None]]:
    """The tensors of a parameter group that are thresholded together, without those that have no gradient."""
    parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
    if any(parameter.grad.is_sparse for parameter in parameters):
        raise ValueError("AltSDP does not support sparse gradients: build the embedding with sparse=False")
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


def _state_like(state: dict[str, Tensor], name: str, member: Tensor, initial: Tensor) -> Tensor:
    """State in the memory order of its weight, also after the network or a loaded state changed the order."""
    values = state.get(name, initial)
    if name not in state or values.stride() != member.stride():
        state[name] = torch.empty_like(member).copy_(values)
    return state[name]


def floored(norms: Tensor, threshold: float, floor: float) -> Tensor:
    """Scales of a layer that keeps at least the share `floor` of its groups.

    With k groups to keep, the threshold is at most the largest norm below the k-th largest one, so those k survive it.
    """
    keep = math.ceil(floor * norms.numel())
    least = torch.topk(norms.flatten(), keep).values[-1]
    lowered = torch.where(norms < least, norms, 0).amax().clamp_max(threshold)
    return (norms - lowered).clamp_min_(0).div_(norms.clamp_min(torch.finfo(norms.dtype).tiny))


def _row_slices(tensors: Sequence[Tensor], cut: slice | None) -> list[Tensor]:
    return list(tensors) if cut is None else [tensor[cut] for tensor in tensors]


def _with_broadcast_companions(tensors: list[Tensor]) -> list[Tensor]:
    ones = (1,) * (tensors[0].dim() - 1)
    return tensors[:1] + [tensor.view(-1, *ones) if tensor.dim() == 1 else tensor for tensor in tensors[1:]]


def _rows_like(column: Tensor, tensor: Tensor) -> Tensor:
    """One value for each row, in a shape that broadcasts over a tensor."""
    return column.view(-1, *(1,) * (tensor.dim() - 1))


def _memory_order(tensor: Tensor) -> tuple[int, ...] | None:
    """The permutation of dimensions that makes a tensor contiguous, () if it is so already, None if there is none."""
    if tensor.is_contiguous():
        return ()
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return (0, 2, 3, 1)
    return None
