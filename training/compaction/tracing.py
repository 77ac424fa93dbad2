"""A network as a torch.fx graph without in-place operations, or a refusal that names the layer and line."""

from __future__ import annotations

import inspect
import operator
import traceback
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

_TORCH = str(torch.__file__).rsplit("/", 1)[0]


class NotCompactable(ValueError):
    """A network that `compact` cannot handle; the message names the layer that stops it."""


def trace(model: nn.Module, example: Sequence[Tensor]) -> fx.GraphModule:
    """The graph of a network in evaluation mode, over its own modules.

    Arguments beyond the example keep their defaults.
    """
    tracer = _Tracer()
    names = list(inspect.signature(model.forward).parameters.values())
    extra = {
        parameter.name: parameter.default
        for parameter in names[len(example) :]
        if parameter.default is not inspect.Parameter.empty
    }
    try:
        graph = fx.GraphModule(model, tracer.trace(model, concrete_args=extra or None))
    except Exception as error:  # tracing runs custom code on symbols, which may raise anything
        layer = tracer.path or type(model).__name__
        raise NotCompactable(
            f"{type(model).__name__} cannot be traced: layer {layer!r} ({_line(error)}) depends on values of its "
            f"input: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error
    _replace_in_place_operations(graph)
    return graph


def run_nodes(graph: fx.GraphModule, example: Sequence[Tensor]) -> dict[fx.Node, Any]:
    """The value of every node for an example."""
    recorder = _Recorder(graph)
    with torch.no_grad():
        recorder.run(*example)
    return recorder.values


class _Tracer(fx.Tracer):
    """Knows which layer it is in."""

    path = ""

    def call_module(self, m: nn.Module, forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before, self.path = self.path, self.path_of_module(m)
        result = super().call_module(m, forward, args, kwargs)
        self.path = before  # not after an error: then it names the layer that raised
        return result


class _Recorder(fx.Interpreter):
    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph, garbage_collect_values=False)
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.values[n] = super().run_node(n)
        return self.values[n]


def _line(error: Exception) -> str:
    """The last line outside torch that led to an error."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_TORCH)]
    frame = next((f for f in reversed(frames) if not f.filename.startswith("<")), frames[-1])
    return f"{frame.filename.rsplit('/', 1)[-1]}, line {frame.lineno}: {frame.line or 'source not available'}"


def _replace_in_place_operations(graph: fx.GraphModule) -> None:
    """Replace operations that change their input; later readers of that input read the result instead."""
    order = {node: index for index, node in enumerate(graph.graph.nodes)}
    for node in [node for node in graph.graph.nodes if _is_in_place(graph, node)]:
        changed = node.all_input_nodes[0]
        for user in list(changed.users):
            if order[user] > order[node]:
                user.replace_input_with(changed, node)
        _make_pure(graph, node)
    graph.recompile()


_IN_PLACE_OPERATORS: dict[Any, Any] = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
}


def _is_in_place(graph: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_module":
        return bool(getattr(graph.get_submodule(str(node.target)), "inplace", False))
    if node.op == "call_function":
        return node.target in _IN_PLACE_OPERATORS or bool(_option(node, "inplace")) or _pure_name(node) is not None
    return node.op == "call_method" and _pure_name(node) is not None


def _make_pure(graph: fx.GraphModule, node: fx.Node) -> None:
    """Replace an in-place operation by the one that returns a new tensor."""
    if node.op == "call_module":
        graph.get_submodule(str(node.target)).inplace = False  # type: ignore[assignment]
    elif node.target in _IN_PLACE_OPERATORS:
        node.target = _IN_PLACE_OPERATORS[node.target]
    elif (name := _pure_name(node)) is not None:
        node.target = name if node.op == "call_method" else getattr(torch, name)
    else:
        bound = inspect.signature(node.target).bind(*node.args, **node.kwargs)  # type: ignore[arg-type]
        bound.arguments.pop("inplace")
        node.args, node.kwargs = tuple(bound.arguments.values())[:1], dict(list(bound.arguments.items())[1:])


def _option(node: fx.Node, name: str) -> Any:
    """An argument of a Python function by its name, however it was given."""
    try:
        return inspect.signature(node.target).bind(*node.args, **node.kwargs).arguments.get(name)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # built-in functions have no signature
        return None


def _pure_name(node: fx.Node) -> str | None:
    """`relu` for the method or function `relu_`."""
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    assert isinstance(name, str)
    pure = name[:-1]
    owner = Tensor if node.op == "call_method" else torch
    return pure if name.endswith("_") and not name.endswith("__") and hasattr(owner, pure) else None
