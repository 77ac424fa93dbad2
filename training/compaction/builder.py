"""The graph of the compact network while it is built."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from valleyscope.training.compaction.channels import Channels, one_pixel


@dataclass(frozen=True)
class Part:
    """A value of the compact network: a node of its graph, and which channels of the old value it holds, in order.

    `node` is None where all channels are constant.
    """

    node: fx.Node | None
    present: tuple[int, ...]


class Builder:
    """Adds nodes and modules to the new graph, and remembers which part of each old value they compute."""

    def __init__(self, old: fx.GraphModule, channels: dict[fx.Node, Channels | None], dtype: torch.dtype) -> None:
        self.old = old
        self.graph = fx.Graph()
        self.root = nn.Module()
        self.channels = channels
        self.dtype = dtype
        self.parts: dict[fx.Node, Part] = {}
        self.values: dict[fx.Node, fx.Node] = {}  # values without channels
        self.input: fx.Node | None = None
        self.fixed_size: list[str] = []  # layers with a map of constants, which fits images of one size only
        self._modules: dict[tuple[Any, ...], str] = {}

    def call(self, function: Any, *arguments: Any, **options: Any) -> fx.Node:
        return self.graph.call_function(function, arguments, options)

    def method(self, name: str, *arguments: Any) -> fx.Node:
        return self.graph.call_method(name, arguments)

    def module(self, name: str, key: tuple[Any, ...], make: Any, value: fx.Node) -> fx.Node:
        """Call the layer that `make` returns; calls of one old layer share the new one if they have the same key."""
        if (name, *key) not in self._modules:
            taken = {known for (owner, *_), known in self._modules.items() if owner == name}
            target = name if not taken else f"{name}_call{len(taken) + 1}"
            self._modules[name, *key] = target
            self._add(target, make())
        return self.graph.call_module(self._modules[name, *key], (value,))

    def keep_module(self, name: str, module: nn.Module) -> None:
        """Take a layer over as it is."""
        if (name,) not in self._modules:
            self._modules[(name,)] = name
            self._add(name, module)

    def attribute(self, name: str) -> fx.Node:
        """A parameter or buffer that the old network reads directly, as it is."""
        value = operator.attrgetter(name)(self.old)
        copied = value.detach().clone()
        unique = self._unique(name)
        if isinstance(value, nn.Parameter):
            self.root.register_parameter(unique, nn.Parameter(copied))
        else:
            self.root.register_buffer(unique, copied)
        return self.graph.get_attr(unique)

    def buffer(self, name: str, value: Tensor) -> fx.Node:
        """A constant of the network, saved with its weights."""
        unique = self._unique(name)
        self.root.register_buffer(unique, value.to(self.dtype) if value.is_floating_point() else value)
        return self.graph.get_attr(unique)

    def index(self, name: str, channels: Sequence[int]) -> fx.Node:
        return self.buffer(f"{name}_index", torch.tensor(channels, dtype=torch.int64))

    def constants(self, old: fx.Node, channels: Sequence[int]) -> Tensor:
        """The values of constant channels, (1, channels, ...)."""
        known = self.channels[old]
        assert known is not None
        return known.constants[:, list(channels)]

    def aligned(self, old: fx.Node, wanted: Sequence[int]) -> fx.Node:
        """A node that holds exactly these channels of an old value, constants included."""
        part = self.parts[old]
        wanted = tuple(wanted)
        if part.present == wanted and part.node is not None:
            return part.node
        missing = [channel for channel in wanted if channel not in set(part.present)]
        if missing:
            filled = self._repeated(old, self.constants(old, missing))
            node = filled if part.node is None else self.call(torch.cat, [part.node, filled], dim=1)
        else:
            assert part.node is not None
            node = part.node
        order = {channel: position for position, channel in enumerate((*part.present, *missing))}
        positions = [order[channel] for channel in wanted]
        if positions == list(range(len(order))):
            return node
        return self.call(torch.index_select, node, 1, self.index(old.name, positions))

    def whole(self, old: fx.Node) -> fx.Node:
        """A node that holds all of an old value."""
        channels = self.channels[old]
        return self.values[old] if channels is None else self.aligned(old, range(channels.count))

    def _unique(self, name: str) -> str:
        base = name.replace(".", "_")
        taken = {str(node.target) for node in self.old.graph.nodes if node.op == "call_module"}
        unique, count = base, 1
        while hasattr(self.root, unique) or unique in taken:
            count += 1
            unique = f"{base}_{count}"
        return unique

    def _repeated(self, old: fx.Node, constants: Tensor) -> fx.Node:
        """Constants for every sample, in the shape that they have in the old network."""
        assert self.input is not None
        samples = self.method("size", self.input, 0)
        if constants.dim() > 2:
            self.fixed_size.append(old.name)
        buffer = self.buffer(f"{old.name}_constant", one_pixel(constants))
        return self.method("expand", buffer, samples, *constants.shape[1:])

    def _add(self, target: str, module: nn.Module) -> None:
        *parents, name = target.split(".")
        owner = self.root
        for parent in parents:
            if not hasattr(owner, parent):
                owner.add_module(parent, nn.Module())
            owner = getattr(owner, parent)
        owner.add_module(name, module)
