"""Which operation a node of a traced network is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from valleyscope.training.compaction.operations import (
    Addition,
    Channelwise,
    Concatenation,
    Depthwise,
    Elementwise,
    Flatten,
    Layer,
    Norm,
    Operation,
    PerChannel,
    Product,
    Renumbered,
    Whole,
)

_ACTIVATIONS = frozenset(
    (
        *("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu"),
        *("mish", "sigmoid", "logsigmoid", "tanh", "hardtanh", "hardswish", "hardsigmoid", "softplus"),
        *("softsign", "hardshrink", "softshrink", "tanhshrink", "threshold", "dropout", "dropout1d", "dropout2d"),
        *("dropout3d", "alpha_dropout", "feature_alpha_dropout", "abs", "neg", "square", "sqrt", "exp"),
        *("clamp", "clone", "contiguous", "detach", "identity"),
    )
)
_ACTIVATION_MODULES = frozenset(name.replace("_", "") for name in _ACTIVATIONS)
_POOL_NAMES = (
    *("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool"),
    *("maxpool", "avgpool", "adaptiveavgpool", "adaptivemaxpool", "lppool"),
    *("zeropad", "constantpad", "reflectionpad", "replicationpad", "circularpad"),
)
_POOLS = frozenset(f"{name}{dims}d" for dims in (1, 2, 3) for name in _POOL_NAMES)
_REDUCTIONS = frozenset(("mean", "sum", "amax", "amin"))
_BINARY = {
    operator.add: Addition,
    torch.add: Addition,
    "add": Addition,
    operator.mul: Product,
    torch.mul: Product,
    "mul": Product,
    operator.sub: Elementwise,
    torch.sub: Elementwise,
    "sub": Elementwise,
    torch.maximum: Elementwise,
    torch.minimum: Elementwise,
}
_SCALAR = (*_BINARY, operator.truediv, torch.div, "div", operator.neg, operator.pow, torch.pow, "pow")
_FLATTENING = ("flatten", "view", "reshape")
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def classify(graph: fx.GraphModule, node: fx.Node, values: dict[fx.Node, Any]) -> Operation:
    """The operation of a node, from its target and the shapes of its inputs and output for the example."""
    if node.op == "get_attr":
        return Whole(node, "")
    inputs = [values[source] for source in node.all_input_nodes]
    output = values[node]
    plain = inputs and all(_has_channels(value) for value in (*inputs, output))
    if node.op == "call_module":
        module = graph.get_submodule(str(node.target))
        found = _module(node, module, inputs[0], output) if plain and len(inputs) == 1 else None
        return found or Whole(node, _reason_of_module(module), module)
    if (
        _name(node) in _FLATTENING
        and all(map(_has_channels, (inputs[0], output)))
        and _is_flattening(inputs[0], output)
    ):
        return Flatten(node)  # its other arguments may be sizes of values
    function = _callable(node)
    found = _function(node, function, inputs, output) if plain else None
    return found or Whole(node, "" if _is_shape(output) else f"{_name(node)} is not known to treat channels alike")


def _module(node: fx.Node, module: nn.Module, x: Tensor, output: Tensor) -> Operation | None:
    if module._forward_hooks or module._forward_pre_hooks or not type(module).__module__.startswith("torch.nn.modules"):
        return None
    kind, name = type(module), type(module).__name__.lower()
    if type(module) is nn.Linear:
        return Layer(node, module) if x.dim() == 2 else None
    if kind in _CONVOLUTIONS and x.dim() == _dims(kind.__name__) + 2:
        assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
        if module.groups == 1:
            return Layer(node, module)
        return Depthwise(node, module) if module.groups == module.in_channels == module.out_channels else None
    if kind in _NORMS and module.running_mean is not None:
        return Norm(node, module)
    if isinstance(module, nn.PReLU):
        return PerChannel(node, module)
    if name in _ACTIVATION_MODULES and not list(module.parameters()):
        return Channelwise(node, module)
    if name in _POOLS and x.dim() == output.dim() == _dims(name) + 2:
        return Channelwise(node, module)
    if kind is nn.Flatten and _is_flattening(x, output):
        return Flatten(node)
    return None


def _function(node: fx.Node, function: Callable[..., Any], inputs: list[Tensor], output: Tensor) -> Operation | None:
    name, key = _name(node), node.target
    x = inputs[0]
    if name == "cat" or name == "concat":
        return Concatenation(node) if _concatenates_channels(node, x.dim()) else None
    if key in _BINARY and len(inputs) == 2:
        alike = inputs[0].dim() == inputs[1].dim() and inputs[0].shape[1] == inputs[1].shape[1] == output.shape[1]
        operation = Elementwise if node.kwargs or inputs[0].shape != inputs[1].shape else _BINARY[key]
        operation = Product if _BINARY[key] is Product else operation
        return operation(node, function) if alike else None
    if len(inputs) != 1 or len(_tensor_arguments(node)) != 1:
        return Product(node, function) if key in _BINARY and _BINARY[key] is Product else None
    if key in _SCALAR or name in _ACTIVATIONS or (name in _POOLS and x.dim() == output.dim() == _dims(name) + 2):
        return Channelwise(node, function) if x.shape[1] == output.shape[1] and x.dim() == output.dim() else None
    if name == "interpolate" and x.dim() > 2:
        return Channelwise(node, function)
    if name in _REDUCTIONS and _reduces_pixels(node, x.dim()):
        return Channelwise(node, function)
    if key is F.pad:
        return _padding(node, function, x)
    if key is operator.getitem:
        return _slice(node, function, x)
    return None


def _padding(node: fx.Node, function: Callable[..., Any], x: Tensor) -> Operation | None:
    pads = node.args[1] if len(node.args) > 1 else node.kwargs.get("pad")
    assert isinstance(pads, list | tuple)
    if not all(isinstance(pad, int) for pad in pads):
        return None
    images, channels, samples = (
        pads[: 2 * (x.dim() - 2)],
        pads[2 * (x.dim() - 2) : 2 * (x.dim() - 1)],
        pads[2 * (x.dim() - 1) :],
    )
    if any(samples) or any(pad < 0 for pad in channels):
        return None
    if not any(channels):
        return Channelwise(node, function)
    mode = node.args[2] if len(node.args) > 2 else node.kwargs.get("mode", "constant")
    if mode != "constant" or any(images):
        return None
    return Renumbered(node, function, lambda _, value: value)


def _slice(node: fx.Node, function: Callable[..., Any], x: Tensor) -> Operation | None:
    index = node.args[1]
    if not isinstance(index, tuple) or len(index) < 2 or index[0] != slice(None):
        return None
    if len(index) > x.dim() or any(not isinstance(part, slice | int) for part in index[2:]):
        return None
    if any(
        isinstance(part, slice) and any(isinstance(end, fx.Node) for end in (part.start, part.stop, part.step))
        for part in index
    ):
        return None
    if index[1] == slice(None):
        return Channelwise(node, function)
    if not isinstance(index[1], slice):
        return None
    rest = (slice(None), slice(None), *index[2:])
    keeps = all(part == slice(None) for part in rest)
    return Renumbered(
        node, function, lambda graph, value: value if keeps else graph.call_function(operator.getitem, (value, rest))
    )


def _has_channels(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() >= 2 and value.is_floating_point()


def _is_flattening(x: Tensor, output: Tensor) -> bool:
    return output.dim() == 2 and output.shape[0] == x.shape[0] and output.numel() == x.numel()


def _reduces_pixels(node: fx.Node, dims: int) -> bool:
    axes = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    axes = (axes,) if isinstance(axes, int) else axes
    return isinstance(axes, list | tuple) and all(isinstance(axis, int) and axis % dims >= 2 for axis in axes)


def _concatenates_channels(node: fx.Node, dims: int) -> bool:
    axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    sources = node.args[0] if node.args else None
    return isinstance(axis, int) and axis % dims == 1 and isinstance(sources, list | tuple)


def _tensor_arguments(node: fx.Node) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), lambda source: found.append(source))
    return found


def _callable(node: fx.Node) -> Callable[..., Any]:
    if node.op == "call_method":
        return lambda value, *arguments, **options: getattr(value, str(node.target))(*arguments, **options)
    assert callable(node.target)
    return node.target


def _name(node: fx.Node) -> str:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    return "max_pool" + name[-2:] if name.startswith("boolean_dispatch") else name


def _dims(name: str) -> int:
    return int(name[-2])


def _is_shape(value: Any) -> bool:
    return isinstance(value, int | torch.Size | tuple | torch.device | torch.dtype)


def _reason_of_module(module: nn.Module) -> str:
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) and module.groups > 1:
        return f"grouped convolution ({module.groups} groups of {module.in_channels // module.groups} channels)"
    if isinstance(module, nn.Linear):
        return "Linear on the last of more than two axes"
    if module._forward_hooks or module._forward_pre_hooks:
        return f"{type(module).__name__} with hooks"
    if isinstance(module, _NORMS):
        return f"{type(module).__name__} without running statistics"
    return f"{type(module).__name__} is not known to treat channels alike"
