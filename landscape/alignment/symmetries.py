"""The permutation symmetries of a network: groups of units that can change places without changing what it computes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from valleyscope.landscape.alignment.axis_trace import AxisTrace, trace_axes
from valleyscope.landscape.alignment.units import Place
from valleyscope.landscape.geometry.parameter_choice import Parameters, frozen_parameters
from valleyscope.landscape.network.copying import copied
from valleyscope.landscape.network.fx_graph import traced

TOLERANCE = 1e-5
"""How much the outputs may change, in units of the largest output (or of 1, if that is larger)."""
_PROOF = 2
"""Samples on which symmetries are tried."""


@dataclass(frozen=True, eq=False)
class TensorAxis:
    """Where the units of a group are in a tensor: row i of `positions` has the indices of unit i on this axis."""

    tensor: str
    axis: int
    positions: Tensor


@dataclass(frozen=True, eq=False)
class Observed:
    """Where the units of a group are in the first argument of a node."""

    node: str
    axis: int
    positions: Tensor


@dataclass(frozen=True, eq=False)
class UnitGroup:
    """Units that can change places with each other, such as the channels that one layer writes."""

    name: str
    units: int
    places: tuple[TensorAxis, ...]
    observed: tuple[Observed, ...]


@dataclass(frozen=True, eq=False)
class Symmetries:
    """The groups of exchangeable units of a network, in the order of its layers, and what is left alone and why."""

    groups: tuple[UnitGroup, ...]
    left_alone: tuple[str, ...]
    graph: fx.GraphModule

    @property
    def orders(self) -> float:
        """The logarithm to base 10 of the number of orders of the units."""
        return sum(math.lgamma(group.units + 1) for group in self.groups) / math.log(10)

    def permuted(self, state: Mapping[str, Any], orders: Mapping[str, Tensor]) -> dict[str, Any]:
        """The state with unit i of each group replaced by unit `orders[group][i]`."""
        moved = dict(state)
        for group in self.groups:
            if group.name in orders:
                for place in group.places:
                    moved[place.tensor] = permute_axis(moved[place.tensor], place, orders[group.name])
        return moved


def permute_axis(tensor: Tensor, place: TensorAxis, order: Tensor) -> Tensor:
    index = torch.arange(tensor.shape[place.axis])
    index[place.positions.flatten()] = place.positions[order].flatten()
    return tensor.index_select(place.axis, index.to(tensor.device))


def symmetries(model: nn.Module, example: Sequence[Any], *, parameters: Parameters = None) -> Symmetries:
    """The symmetries of a network by tracing it on an example of its inputs.

    Every group is tried: at random weights, a random order of its units must not change the outputs. Parameters that
    do not move keep their order. A network that cannot be traced is refused.
    """
    network = copied(model).eval()
    graph = traced(network, example)
    names = {id(tensor): name for name, tensor in reversed(_tensors(network))}
    frozen = set(frozen_parameters(model, parameters))
    fixed = [tensor for name, tensor in network.named_parameters(remove_duplicate=False) if name in frozen]
    best = _groups(trace := trace_axes(graph, example, {}, fixed), names)
    choices: dict[tuple[int, ...], int] = {}
    for key, options in list(trace.book.options.items()):
        for option in options[1:]:
            tried = {**choices, key: option}
            other = _groups(again := trace_axes(graph, example, tried, fixed), names)
            if _orders(other) > _orders(best):
                best, trace, choices = other, again, tried
    sound, failed = _proven(network, example, best, names)
    refused = [f"{group.name}: a random order of its units changes the outputs" for group in failed]
    return Symmetries(tuple(sound), (*trace.unknown, *refused), graph)


def _tensors(network: nn.Module) -> list[tuple[str, Tensor]]:
    return [*network.named_parameters(remove_duplicate=False), *network.named_buffers(remove_duplicate=False)]


def _orders(groups: Sequence[UnitGroup]) -> float:
    return sum(math.lgamma(group.units + 1) for group in groups)


def _groups(trace: AxisTrace, names: Mapping[int, str]) -> list[UnitGroup]:
    """Units that occur on the same axes of all values, at the same places, and are not fixed."""
    book, units = trace.book, trace.book.units
    signatures: dict[int, list[tuple[int, tuple[Place, ...]]]] = defaultdict(list)
    for number, axis in enumerate([*book.recorded.values(), *book.marks.values()]):
        found: dict[int, list[Place]] = defaultdict(list)
        for entry in axis:
            unit, place = units.resolve(entry)
            found[unit].append(place)
        for unit, own_places in found.items():
            signatures[unit].append((number, tuple(sorted(own_places))))
    classes: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for unit, signature in signatures.items():
        if not units.is_fixed(unit):
            classes[tuple(signature)].append(unit)
    ranks = {
        unit: (number, rank)
        for number, members in enumerate(members for members in classes.values() if len(members) > 1)
        for rank, unit in enumerate(members)
    }
    places: dict[int, list[TensorAxis]] = defaultdict(list)
    for key, axes in book.parameters.items():
        for axis_number, entries in enumerate(axes):
            for group, positions in _positions(entries, ranks, units.resolve).items():
                places[group].append(TensorAxis(names[key], axis_number, positions))
    observed: dict[int, list[Observed]] = defaultdict(list)
    for read in book.reads:
        for group, positions in _positions(read.entries, ranks, units.resolve).items():
            observed[group].append(Observed(read.node.name, read.axis, positions))
    named: dict[str, UnitGroup] = {}
    for group, own in sorted(places.items()):
        name = own[0].tensor.removesuffix(".weight")
        while name in named:
            name += "'"
        named[name] = UnitGroup(name, len(own[0].positions), tuple(own), tuple(observed[group]))
    return list(named.values())


def _positions(axis: Any, ranks: Mapping[int, tuple[int, int]], resolve: Callable[[Any], Any]) -> dict[int, Tensor]:
    """The positions of the units of each group on an axis, one row a unit, in the order of places within the unit."""
    found: dict[int, dict[int, list[tuple[Place, int]]]] = defaultdict(lambda: defaultdict(list))
    for position, entry in enumerate(axis or ()):
        unit, place = resolve(entry)
        if unit in ranks:
            group, rank = ranks[unit]
            found[group][rank].append((place, position))
    return {
        group: torch.tensor([[position for _, position in sorted(rows[rank])] for rank in range(len(rows))])
        for group, rows in found.items()
    }


def _proven(
    network: nn.Module, example: Sequence[Any], groups: list[UnitGroup], names: Mapping[int, str]
) -> tuple[list[UnitGroup], list[UnitGroup]]:
    """The groups of which a random order of the units changes no output at random weights, and the others."""
    generator = torch.Generator().manual_seed(0)
    double, inputs = in_double(network, [value[:_PROOF] if isinstance(value, Tensor) else value for value in example])
    wanted = set(names.values())
    state = {name: tensor for name, tensor in _tensors(double) if name in wanted and tensor.is_floating_point()}
    with torch.no_grad():
        for name, tensor in state.items():
            spread = float(tensor.abs().mean().clamp_min(0.05))
            tensor.mul_(torch.empty_like(tensor).uniform_(0.75, 1.25, generator=generator))
            if not name.endswith("running_var"):
                tensor.add_(torch.empty_like(tensor).uniform_(-spread, spread, generator=generator))
    before = {name: tensor.detach().clone() for name, tensor in state.items()}
    expected = outputs(double, inputs)
    whole = Symmetries(tuple(groups), (), fx.GraphModule({}, fx.Graph()))

    def is_sound(some: Sequence[UnitGroup]) -> bool:
        orders = {group.name: torch.randperm(group.units, generator=generator) for group in some}
        with torch.no_grad():
            for name, value in whole.permuted(before, orders).items():
                state[name].data.copy_(value)
        return largest_change(expected, outputs(double, inputs)) <= TOLERANCE

    if is_sound(groups):
        return groups, []
    sound = [group for group in groups if is_sound([group])]
    if not is_sound(sound):
        return [], groups
    return sound, [group for group in groups if group not in sound]


def in_double(network: nn.Module, inputs: Sequence[Any]) -> tuple[nn.Module, list[Any]]:
    """The network and its inputs in double precision, if it can compute in it, so that rounding hides no error."""
    double = copied(network).double().eval()
    doubled = [_doubled(value) for value in inputs]
    try:
        outputs(double, doubled)
    except RuntimeError:  # a network that converts to single precision within
        return copied(network).eval(), list(inputs)
    return double, doubled


def outputs(network: nn.Module, inputs: Sequence[Any]) -> list[Tensor]:
    """All tensors that the network returns, for inputs that it may change."""
    found: list[Tensor] = []
    with torch.no_grad():
        result = network(*(value.clone() if isinstance(value, Tensor) else value for value in inputs))
    result = getattr(result, "logits", result)
    fx.node.map_aggregate(result, lambda item: found.append(item.detach()) if isinstance(item, Tensor) else None)
    return found


def largest_change(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """The largest difference of two outputs, in units of the largest value, or of 1 if that is larger."""
    scale = max([1.0, *(float(value.abs().max()) for value in before if value.numel())])
    worst = 0.0
    for one, other in zip(before, after, strict=True):
        if one.shape != other.shape:
            return math.inf
        difference = (one.double() - other.double()).abs()
        worst = max(worst, float(difference.max()) if difference.numel() else 0.0)
        if not torch.isfinite(difference).all():
            return math.inf
    return worst / scale


def _doubled(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
