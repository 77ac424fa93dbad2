"""Max-pooling that follows a layer, taken out of a graph so that the layer can do it more cheaply."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import fx, nn

from landscape.graphs import module_of

_RELUS = (F.relu, torch.relu, torch.relu_, F.relu_)
_POOLS = (F.max_pool2d, torch.max_pool2d)


def take_pooling(graph: fx.GraphModule, layer: nn.Module) -> tuple[int, int] | None:
    """Remove the max-pooling that follows a layer, at once or after ReLU, and return its window; None if there is none.

    Only windows that do not overlap are taken, without padding. ReLU and maximum commute, bit for bit, so the one who
    takes the pooling over may do it before ReLU.
    """
    node = next((node for node in graph.graph.nodes if module_of(graph, node) is layer), None)
    if node is None:
        return None
    after = _only_user(node)
    if after is not None and _is_relu(graph, after):
        after = _only_user(after)
    window = None if after is None else _pooling_window(graph, after)
    if after is None or window is None:
        return None
    after.replace_all_uses_with(after.all_input_nodes[0])
    graph.graph.erase_node(after)
    graph.recompile()
    return window


def _only_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _is_relu(graph: fx.GraphModule, node: fx.Node) -> bool:
    called = node.op == "call_function" and node.target in _RELUS
    method = node.op == "call_method" and node.target in ("relu", "relu_")
    return called or method or type(module_of(graph, node)) is nn.ReLU


def _pooling_window(graph: fx.GraphModule, node: fx.Node) -> tuple[int, int] | None:
    """Height and width of the window of a max-pooling without overlap, padding, dilation or rounding up; else None."""
    module = module_of(graph, node)
    if type(module) is nn.MaxPool2d and not (module._forward_hooks or module._forward_pre_hooks):
        pooling = module
    elif node.op == "call_function" and node.target in _POOLS and len(node.args) <= 5:
        pooling = nn.MaxPool2d(*node.args[1:], **{key: value for key, value in node.kwargs.items() if key != "input"})
    else:
        return None
    window, stride = _pair(pooling.kernel_size), _pair(pooling.stride)
    plain = not pooling.ceil_mode and not pooling.return_indices and all(isinstance(side, int) for side in window)
    if plain and window == stride and _pair(pooling.padding) == (0, 0) and _pair(pooling.dilation) == (1, 1):
        return window
    return None


def _pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    return pair[0], pair[-1]
