"""Networks as torch.fx graphs, for networks that can be traced."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.modules import module as modules
from torch.nn.modules.batchnorm import _BatchNorm

from valleyscope.landscape.network.channels_last import copying_method

_Step = tuple[fx.Node, Callable[..., Any], tuple[fx.Node, ...]]
"""A node, its function, and the values that are not needed after it."""


class NotTraceable(ValueError):
    """A network that is not one fixed sequence of operations; the message says why."""


def trace_network(network: nn.Module, x: Tensor) -> fx.GraphModule | None:
    """The network as a graph over its own modules; None if it cannot be traced.

    The graph must give the same as the network on the input ``x`` at changed weights: values that the network computed
    from parameters unseen by the tracer are constants in the graph. Views become copies if necessary: in the graph,
    values may be in another memory order.
    """
    try:
        return _traced(network, (x,), None)
    except NotTraceable:
        return None


def traced(network: nn.Module, example: Sequence[Any]) -> fx.GraphModule:
    """The same for any number of inputs; arguments beyond the example keep their defaults."""
    arguments = list(inspect.signature(network.forward).parameters.values())[len(example) :]
    defaults = {given.name: given.default for given in arguments if given.default is not inspect.Parameter.empty}
    return _traced(network, example, defaults or None)


def _traced(network: nn.Module, example: Sequence[Any], defaults: dict[str, Any] | None) -> fx.GraphModule:
    def copies() -> list[Any]:
        return [value.clone() if isinstance(value, Tensor) else value for value in example]

    try:
        tracer = _Tracer()
        graph = fx.GraphModule(network, tracer.trace(network, concrete_args=defaults))
        _replace_views(graph)
        with _changed_weights(network):
            found, expected = graph(*copies(), *(defaults or {}).values()), network(*copies())
            same = _equal(found, expected)
    except Exception as error:  # tracing runs custom code on symbols, which may raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NotTraceable(f"{type(network).__name__} cannot be traced: {reason}") from error
    if not same:
        raise NotTraceable(
            f"{type(network).__name__} cannot be traced: its outputs depend on more than its inputs and modules, such "
            "as weights that are computed outside of the forward pass"
        )
    return graph


def _equal(one: Any, other: Any) -> bool:
    """Whether two results, of the same structure, have the same values."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.equal(one.nan_to_num(), other.nan_to_num())
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and all(_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


class _Tracer(fx.Tracer):
    """Keeps BatchNorm layers whole, also custom ones, to replace their statistics."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, _BatchNorm) or super().is_leaf_module(m, module_qualified_name)


def _replace_views(graph: fx.GraphModule) -> None:
    for node in graph.graph.nodes:
        if node.op == "call_method":
            node.target = copying_method(str(node.target), node.args[1:], node.kwargs) or node.target
    graph.recompile()


@contextmanager
def _changed_weights(network: nn.Module) -> Iterator[None]:
    """Run the block with changed weights of about the same size, without gradients."""
    parameters = list(network.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        try:
            for parameter in parameters:
                parameter.mul_(0.75).add_(parameter.abs().mean(), alpha=0.01)
            yield
        finally:
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)


def module_of(graph: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """The module that a node calls; None for other nodes."""
    return graph.get_submodule(str(node.target)) if node.op == "call_module" else None


def batch_norm_nodes(network: nn.Module) -> dict[fx.Node, _BatchNorm]:
    """The nodes of a traced network that call BatchNorm layers, in order."""
    if not isinstance(network, fx.GraphModule):
        return {}
    called = ((node, module_of(network, node)) for node in network.graph.nodes)
    return {node: module for node, module in called if isinstance(module, _BatchNorm)}


def is_altered(module: nn.Module) -> bool:
    """Whether a module may differ from its class: by hooks (also global) or a replaced forward pass (except ours)."""
    hooks = (
        module._forward_hooks,
        module._forward_pre_hooks,
        modules._global_forward_hooks,
        modules._global_forward_pre_hooks,
    )
    forward = vars(module).get("forward")
    return any(hooks) or (forward is not None and not getattr(forward, "is_replacement", False))


def is_read_by_modules_only(parameter: nn.Parameter, network: nn.Module) -> bool:
    """Whether only the modules that hold a parameter can read it; False for networks that are not traced.

    Functions may get the parameter as an argument; hooks and custom modules can read any.
    """
    if not isinstance(network, fx.GraphModule):
        return False
    for node in network.graph.nodes:
        module = module_of(network, node)
        if module is not None and (is_altered(module) or not type(module).__module__.startswith("torch.nn.modules.")):
            return False
        if node.op == "get_attr" and operator.attrgetter(str(node.target))(network) is parameter:
            return False
    return True


class PausableGraph:
    """A graph whose forward passes pause before some nodes, and resume with a given result of the node.

    >>> graph = fx.symbolic_trace(nn.Sequential(nn.ReLU(), nn.Hardtanh()))
    >>> run = PausableGraph(graph, [node for node in graph.graph.nodes if node.target == "1"]).start(torch.ones(2))
    >>> run.resume(), run.input
    (True, tensor([1., 1.]))
    >>> run.resume(torch.tensor([5.0, 6.0])), run.output
    (False, tensor([5., 6.]))
    """

    def __init__(self, graph: fx.GraphModule, stops: Iterable[fx.Node]) -> None:
        last_use = {used: node for node in graph.graph.nodes for used in node.all_input_nodes}
        unused_after: dict[fx.Node, list[fx.Node]] = {}
        for used, node in last_use.items():
            unused_after.setdefault(node, []).append(used)
        self.steps: list[_Step] = [
            (node, _function(graph, node), tuple(unused_after.get(node, ()))) for node in graph.graph.nodes
        ]
        self.stops = frozenset(stops)

    def start(self, x: Tensor) -> ForwardPass:
        return ForwardPass(self, x)


class ForwardPass:
    """One forward pass of a pausable graph; values are dropped after their last use."""

    def __init__(self, graph: PausableGraph, x: Tensor) -> None:
        self.output: Any = None
        self._steps = iter(graph.steps)
        self._stops = graph.stops
        self._inputs = [x]
        self._values: dict[fx.Node, Any] = {}
        self._paused: _Step | None = None

    def resume(self, value: Any = None) -> bool:
        """Continue, with ``value`` as the result of the paused node, to the next pause.

        Returns False at the end, when ``output`` is set.
        """
        if self._paused is not None:
            node, _, unused_after = self._paused
            self._store(node, unused_after, value)
        for step in self._steps:
            node, function, unused_after = step
            if node in self._stops:
                self._paused = step
                return True
            self._store(node, unused_after, self._result(node, function))
        return False

    @property
    def input(self) -> Tensor:
        """The argument of the paused node."""
        assert self._paused is not None
        found: Tensor = self._values[self._paused[0].all_input_nodes[0]]
        return found

    @input.setter
    def input(self, value: Tensor) -> None:
        assert self._paused is not None
        self._values[self._paused[0].all_input_nodes[0]] = value

    def result(self) -> Any:
        """The paused node's own result."""
        assert self._paused is not None
        return self._result(self._paused[0], self._paused[1])

    def live_bytes(self) -> int:
        """Memory of the stored values without parameters."""
        tensors = (value for value in self._values.values() if isinstance(value, Tensor))
        storages = (value.untyped_storage() for value in tensors if not isinstance(value, nn.Parameter))
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    def _store(self, node: fx.Node, unused_after: tuple[fx.Node, ...], value: Any) -> None:
        self._values[node] = value
        for used in unused_after:
            del self._values[used]

    def _result(self, node: fx.Node, function: Callable[..., Any]) -> Any:
        if node.op == "placeholder":
            return self._argument(str(node.target), node.args)
        arguments = fx.node.map_arg(node.args, self._values.__getitem__)
        if node.op == "output":
            self.output = arguments[0]
            return None
        return function(*arguments, **fx.node.map_arg(node.kwargs, self._values.__getitem__))

    def _argument(self, name: str, default: tuple[Any, ...]) -> Any:
        """An argument of the network: the input for the first, empty or the default for others."""
        if name.startswith("**"):
            return {}
        if name.startswith("*"):
            return tuple(self._inputs)
        return self._inputs.pop() if self._inputs else default[0]


def _function(graph: fx.GraphModule, node: fx.Node) -> Callable[..., Any]:
    match node.op:
        case "call_module":
            return graph.get_submodule(str(node.target))
        case "call_method":
            return lambda value, *arguments, **options: getattr(value, str(node.target))(*arguments, **options)
        case "get_attr":
            return lambda: operator.attrgetter(str(node.target))(graph)
        case "call_function" if callable(node.target):
            return node.target
        case _:
            return lambda: None
