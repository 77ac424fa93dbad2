"""Which layers write to the same channels, because their outputs are added to each other."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

_ADDITIONS = (operator.add, operator.iadd, torch.add, "add", "add_")
_ZEROS = -1
"""In place of a number: a channel of zeros that a shortcut adds."""


def residual_offsets(model: nn.Module, widths: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Layers that are joined by additions, each with the channel of the widest one that its first channel is added to.

    `widths` has the output channels of the layers in question. A network that cannot be traced is refused: its
    additions are unknown.
    """
    try:
        graph = fx.Tracer().trace(model)
    except Exception as error:  # tracing runs custom code on symbols, which may raise anything
        raise ValueError(
            f"tie_residual=True: {type(model).__name__} cannot be traced, so its additions are unknown ({error}); "
            "use tie_residual=False"
        ) from error
    numbers = _Numbers(widths)
    for node in graph.nodes:
        numbers.visit(node)
    yield from numbers.joined()


class _Numbers:
    """A number for every output channel of every layer; channels that are added to each other become equivalent."""

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = widths
        self.first: dict[str, int] = {}
        self.parent: list[int] = []
        self.known: dict[fx.Node, list[int] | None] = {}
        for name, width in widths.items():
            self.first[name] = len(self.parent)
            self.parent += range(len(self.parent), len(self.parent) + width)

    def visit(self, node: fx.Node) -> None:
        self.known[node] = self._channels(node)

    def _channels(self, node: fx.Node) -> list[int] | None:
        """The numbers of a value's channels; None if they are unknown."""
        if node.op == "call_module" and node.target in self.first:
            start = self.first[str(node.target)]
            return list(range(start, start + self.widths[str(node.target)]))
        sources = node.all_input_nodes
        if not sources:
            return None
        values = [self.known[source] for source in sources]
        if len(values) == 2 and node.target in _ADDITIONS:
            return self._added(*values)
        if node.op == "call_function" and node.target is F.pad:
            return self._padded(values[0], node.args[1])
        # Other operations on one value leave channels in place, or change their number: then no addition fits them.
        return values[0] if len(values) == 1 and not self._mixes(node) else None

    @staticmethod
    def _mixes(node: fx.Node) -> bool:
        return node.target in (
            torch.flatten,
            "flatten",
            "view",
            "reshape",
            "permute",
            "transpose",
            torch.chunk,
            "chunk",
        )

    def _added(self, a: list[int] | None, b: list[int] | None) -> list[int] | None:
        if a is None or b is None or len(a) != len(b):
            return None
        for one, other in zip(a, b, strict=True):
            if _ZEROS not in (one, other):
                self.parent[self._root(one)] = self._root(other)
        return [other if one == _ZEROS else one for one, other in zip(a, b, strict=True)]

    @staticmethod
    def _padded(channels: list[int] | None, pads: Any) -> list[int] | None:
        if channels is None or len(pads) < 6:
            return channels
        before, after = pads[4:6]
        return [_ZEROS] * before + channels + [_ZEROS] * after

    def _root(self, number: int) -> int:
        while self.parent[number] != number:
            self.parent[number] = self.parent[self.parent[number]]
            number = self.parent[number]
        return number

    def joined(self) -> Iterator[dict[str, int]]:
        """Sets of two or more layers that share channels, where the widest has all of them and in the same order."""
        roots = {
            name: [self._root(first + row) for row in range(self.widths[name])] for name, first in self.first.items()
        }
        left = sorted(roots, key=lambda name: -self.widths[name])
        while left:
            lead, *others = left
            places = {root: row for row, root in enumerate(roots[lead])}
            offsets = {lead: 0}
            for name in others:
                offset = places.get(roots[name][0], -1)
                if offset >= 0 and roots[lead][offset : offset + self.widths[name]] == roots[name]:
                    offsets[name] = offset
            left = [name for name in others if name not in offsets]
            if len(offsets) > 1 and len(places) == self.widths[lead]:
                yield {name: offsets[name] for name in self.widths if name in offsets}
