"""Follow the axes of all values through a traced network, for an example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from valleyscope.landscape.alignment import elementwise_rules, layer_rules, shape_rules
from valleyscope.landscape.alignment.elementwise_rules import Rule
from valleyscope.landscape.alignment.units import Units
from valleyscope.landscape.alignment.values import (
    Bookkeeping,
    Call,
    Unknown,
    Value,
    function_of,
    raw,
    values_in,
    wrapped,
)
from valleyscope.landscape.network.fx_graph import is_altered, module_of

_FUNCTIONS: dict[str, Rule] = {**elementwise_rules.RULES, **shape_rules.RULES, **layer_rules.FUNCTIONS}


@dataclass(frozen=True, eq=False)
class AxisTrace:
    """The units of a network, where they occur, and why some of them keep their place."""

    book: Bookkeeping
    values: dict[fx.Node, Any]
    unknown: tuple[str, ...]


def trace_axes(
    graph: fx.GraphModule, example: Sequence[Any], choices: Mapping[tuple[int, ...], int], fixed: Sequence[Tensor]
) -> AxisTrace:
    """Run the graph on the example, and join the axes that must have the same order.

    ``choices`` says which part of an axis that is split becomes its blocks; parameters ``fixed`` keep their order.
    """
    book = Bookkeeping(Units(), choices=choices)
    for parameter in fixed:
        for axis in book.of_parameter(parameter):
            book.units.fix_axis(axis)
    values: dict[fx.Node, Any] = {}
    unknown: list[str] = []
    inputs = list(example)
    for node in graph.graph.nodes:
        arguments, options = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        if node.op == "placeholder":
            given = inputs.pop(0) if inputs else (node.args[0] if node.args else None)
            values[node] = wrapped(given, None)
        elif node.op == "output":
            for value in values_in(arguments):
                _fix(book, value)
        elif node.op == "get_attr":
            values[node] = _attribute(book, graph, function_of(graph, node)())
        else:
            values[node] = _called(book, graph, node, arguments, options, unknown)
        for value in values_in((values.get(node),)):
            book.record(value.axes)
    return AxisTrace(book, values, tuple(dict.fromkeys(unknown)))


def _attribute(book: Bookkeeping, graph: fx.GraphModule, found: Any) -> Any:
    if isinstance(found, nn.Parameter):
        return Value(found, book.of_parameter(found))
    if isinstance(found, Tensor) and any(found is buffer for buffer in graph.buffers()):
        for axis in book.of_parameter(found):  # a table or mask has an order of its own
            book.units.fix_axis(axis)
    return wrapped(found, None)


def _called(
    book: Bookkeeping, graph: fx.GraphModule, node: fx.Node, arguments: Any, options: Any, unknown: list[str]
) -> Any:
    module = module_of(graph, node)
    name = _name(node, module)
    if name == "getitem" and isinstance(arguments[0], tuple) and isinstance(arguments[1], int | slice):
        return arguments[0][arguments[1]]
    with torch.no_grad():
        result = function_of(graph, node)(*raw(arguments), **raw(options))
    if not any(True for _ in values_in((arguments, options))):
        return wrapped(result, None)
    try:
        axes = _rule(name, module, result)(book, Call(name, tuple(arguments), options, result, node, module))
        found = wrapped(result, axes)
    except Unknown as error:
        where = str(node.target) if module is not None else _place(node)
        unknown.append(f"{where}: {error}")
        for value in values_in((arguments, options)):
            _fix(book, value)
        if module is not None:
            book.fix_parameters(module)
        found = wrapped(result, None)
    for value in values_in((found,)):
        assert len(value.axes) == value.dims, f"{node}: {len(value.axes)} axes of {value.dims}"
    return found


def _rule(name: str, module: nn.Module | None, result: Any) -> Rule:
    if module is not None:
        if is_altered(module):
            raise Unknown(f"{type(module).__name__} with hooks or a replaced forward pass")
        rule = layer_rules.rule_of_module(module)
        if rule is None:
            raise Unknown(f"{type(module).__name__} is not known to treat channels alike")
        return rule
    if not isinstance(result, Tensor | tuple | list) or isinstance(result, torch.Size):
        return lambda *_: None  # a size or data type
    if name not in _FUNCTIONS:
        raise Unknown(f"{name} is not known to treat channels alike")
    return _FUNCTIONS[name]


def _name(node: fx.Node, module: nn.Module | None) -> str:
    """The name of an operation, without underscores that say "private" or "in place"; of a module, its class's."""
    if module is not None:
        return type(module).__name__.lower()
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    return "max_pool2d" if name.startswith("boolean_dispatch") else name.strip("_")


def _place(node: fx.Node) -> str:
    """The module in whose code an operation is."""
    stack = node.meta.get("nn_module_stack") or {}
    last = next(reversed(stack.values()), None)
    path = last[0] if isinstance(last, tuple) else last
    return str(path) if path else str(node.name)


def _fix(book: Bookkeeping, value: Value) -> None:
    for axis in value.axes:
        book.units.fix_axis(axis)
