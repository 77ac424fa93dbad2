"""Values of a traced network, with the entries of their axes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, fx, nn

from valleyscope.landscape.alignment.units import Axis, Entry, Units


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor in a traced network for an example, and the entries of its axes."""

    tensor: Tensor
    axes: list[Axis]

    @property
    def dims(self) -> int:
        return self.tensor.dim()


@dataclass(frozen=True, eq=False)
class Read:
    """The first argument of a node, and the axis over which the node sums it: what activation matching looks at."""

    node: fx.Node
    axis: int
    entries: Axis


class Unknown(Exception):
    """An operation that is not known here; the message says why, in a few words."""


@dataclass(frozen=True, eq=False)
class Call:
    """One operation of the network: its name, arguments (tensors are `Value`), and result for the example."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    result: Any
    node: fx.Node
    module: nn.Module | None = None

    def argument(self, index: int, name: str, default: Any = None) -> Any:
        """An argument by its place or name."""
        return self.arguments[index] if index < len(self.arguments) else self.options.get(name, default)

    @property
    def x(self) -> Value:
        """The first argument."""
        found = self.argument(0, "input")
        if not isinstance(found, Value):
            raise Unknown(f"{self.name} of something other than a tensor")
        return found

    def tensors(self) -> list[Value]:
        return list(values_in((self.arguments, dict(self.options))))


@dataclass(eq=False)
class Bookkeeping:
    """What the rules share: the units, the axes of parameters, and the choices where a split has several."""

    units: Units
    parameters: dict[int, list[Axis]] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    recorded: dict[int, list[Entry]] = field(default_factory=dict)
    marks: dict[int, list[Entry]] = field(default_factory=dict)
    choices: Mapping[tuple[int, ...], int] = field(default_factory=dict)
    options: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    def of_parameter(self, tensor: Tensor) -> list[Axis]:
        """The axes of a parameter or statistic: new units when it is first met."""
        axes = self.parameters.get(id(tensor))
        if axes is None:
            axes = [self.units.fresh(size) if size > 1 else None for size in tensor.shape]
            self.parameters[id(tensor)] = axes
            self.record(axes)
        return axes

    def join_parameter(self, tensor: Tensor | None, axis: Axis) -> None:
        """The only axis of a parameter, such as a bias, goes with this axis."""
        if tensor is not None:
            (own,) = self.of_parameter(tensor)
            self.units.join_axes(own, axis)

    def fix_parameters(self, module: nn.Module) -> None:
        """Parameters and buffers of a module that is not understood keep their order."""
        for tensor in (*module.parameters(), *module.buffers()):
            for axis in self.of_parameter(tensor):
                self.units.fix_axis(axis)

    def record(self, axes: list[Axis]) -> None:
        """Units are exchangeable only if they occur in the same axes of all values."""
        for axis in axes:
            if axis is not None:
                self.recorded[id(axis)] = axis

    def mark(self, axis: list[Entry], blocks: int) -> None:
        """Units of different blocks of this axis are not exchangeable."""
        size = len(axis) // blocks
        for start in range(0, len(axis), size):
            block = axis[start : start + size]
            self.marks[id(block)] = block

    def read(self, call: Call, axis: int) -> None:
        self.reads.append(Read(call.node, axis, call.x.axes[axis]))


def values_in(nested: Any) -> Iterator[Value]:
    """All values in nested arguments."""
    found: list[Value] = []
    fx.node.map_aggregate(nested, lambda item: found.append(item) if isinstance(item, Value) else None)
    yield from found


def raw(nested: Any) -> Any:
    """Nested arguments with plain tensors."""
    return fx.node.map_aggregate(nested, lambda item: item.tensor if isinstance(item, Value) else item)


def wrapped(result: Any, axes: Any) -> Any:
    """A result with its axes: a list of axes for a tensor, a list of such lists for a tuple of tensors."""
    if isinstance(result, Tensor):
        return Value(result, [None] * result.dim() if axes is None else axes)
    if isinstance(result, tuple | list) and any(isinstance(part, Tensor) for part in result):
        parts = [None] * len(result) if axes is None else axes
        return tuple(wrapped(part, own) for part, own in zip(result, parts, strict=True))
    if isinstance(result, Mapping) and any(isinstance(part, Tensor) for part in result.values()):
        return {key: wrapped(part, None) for key, part in result.items()}
    return result


def function_of(graph: fx.GraphModule, node: fx.Node) -> Callable[..., Any]:
    """What a node of the graph calls."""
    if node.op == "call_module":
        return graph.get_submodule(str(node.target))
    if node.op == "call_method":
        return lambda value, *arguments, **options: getattr(value, str(node.target))(*arguments, **options)
    if node.op == "get_attr":
        return lambda: operator.attrgetter(str(node.target))(graph)
    assert callable(node.target)
    return node.target
