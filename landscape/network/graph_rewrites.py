"""Rewrites of a traced network that save memory traffic and change no values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from valleyscope.landscape.network.fx_graph import is_altered, module_of

_RELUS = (F.relu, torch.relu)
_POOLS = (F.max_pool2d, torch.max_pool2d)
_ADDITIONS = (operator.add, torch.add)
# Modules whose output is new memory, not a view of their input.
_FRESH = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.MaxPool2d)

Window = tuple[int, int]


def rewrite_graph(graph: fx.GraphModule) -> None:
    """Make ReLU in-place where nothing else uses its input, max-pool without indices, and flatten without copies."""
    for node in graph.graph.nodes:
        window = _pooling_window(graph, node)
        if window is not None:
            _replace(node, window_maximum, (node.all_input_nodes[0], window))
        elif _is_flattening(graph, node):
            _replace(node, flatten_samples, (node.all_input_nodes[0],))
        elif _is_relu(graph, node) and is_temporary(graph, node.all_input_nodes[0]):
            _replace(node, torch.relu_, (node.all_input_nodes[0],))
    graph.recompile()


def remove_pooling(graph: fx.GraphModule, layer: nn.Module) -> Window | None:
    """Remove the max-pooling after a layer, also after a ReLU, and return its window; None if there is none.

    ReLU and maximum commute, so the caller may pool before ReLU.
    """
    node = _node_of(graph, layer)
    return None if node is None else remove_pooling_after(graph, node)


def remove_pooling_after(graph: fx.GraphModule, node: fx.Node) -> Window | None:
    """The same for a node."""
    after = _only_user(node)
    if after is not None and _is_relu(graph, after):
        after = _only_user(after)
    if after is None or after.target is not window_maximum:
        return None
    values, window = after.args
    assert isinstance(values, fx.Node)
    after.replace_all_uses_with(values)
    graph.graph.erase_node(after)
    graph.recompile()
    return cast("Window", window)


def only_consumer(graph: fx.GraphModule, layer: nn.Module) -> fx.Node | None:
    """The only user of a layer's output after ReLU and max-pooling, which work in any memory order."""
    node = _node_of(graph, layer)
    after = None if node is None else _only_user(node)
    while after is not None and (after.target is window_maximum or _is_relu(graph, after)):
        after = _only_user(after)
    return after


def flatten_samples(values: Tensor) -> Tensor:
    """Flatten each sample, without a copy if samples are last in memory."""
    if values.dim() != 4 or values.stride(0) != 1:
        return values.flatten(1)
    return values.movedim(0, -1).flatten(0, 2).t()


def pooled_in_place(images: Tensor, window: Window) -> Tensor:
    """Max-pooling over non-overlapping windows, in the memory of the images, in any memory order."""
    for axis, side in zip((2, 3), window, strict=True):
        if side > 1:
            length = images.shape[axis] // side
            first, *others = (images[_strided(axis, start, side, length)] for start in range(side))
            for other in others:
                torch.maximum(first, other, out=first)
            images = first
    return images


def window_maximum(images: Tensor, window: Window) -> Tensor:
    """Max-pooling over non-overlapping windows; remainders at the edges are dropped.

    In channels-last order, pixels of a window are compared as contiguous memory.
    """
    if window != (2, 2) or images.dim() != 4 or not images.is_contiguous(memory_format=torch.channels_last):
        return F.max_pool2d(images, window)
    samples, channels, height, width = images.shape
    rows, columns = height // 2, width // 2
    pixels = images.movedim(1, -1)[:, : 2 * rows, : 2 * columns].unflatten(1, (rows, 2))  # type: ignore[no-untyped-call]
    lines = torch.maximum(pixels[:, :, 0], pixels[:, :, 1]).reshape(samples, rows, columns, 2, channels)
    return torch.maximum(lines[:, :, :, 0], lines[:, :, :, 1]).movedim(-1, 1)


def _replace(node: fx.Node, function: Callable[..., Tensor], arguments: tuple[Any, ...]) -> None:
    with node.graph.inserting_before(node):
        node.replace_all_uses_with(node.graph.call_function(function, arguments))
    node.graph.erase_node(node)


def _strided(axis: int, start: int, step: int, length: int) -> tuple[slice, ...]:
    """The index of every ``step``-th place on an axis."""
    return (slice(None),) * axis + (slice(start, start + step * length, step),)


def _node_of(graph: fx.GraphModule, layer: nn.Module) -> fx.Node | None:
    """The first node that calls a layer."""
    return next((node for node in graph.graph.nodes if module_of(graph, node) is layer), None)


def _only_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _is_relu(graph: fx.GraphModule, node: fx.Node) -> bool:
    module = module_of(graph, node)
    if type(module) is nn.ReLU:
        return not is_altered(module)
    called = node.op == "call_function" and node.target in (*_RELUS, torch.relu_)
    return called or (node.op == "call_method" and node.target == "relu")


def _is_flattening(graph: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node flattens all axes but the first."""
    module = module_of(graph, node)
    if type(module) is nn.Flatten:
        return (module.start_dim, module.end_dim) == (1, -1) and not is_altered(module)
    called = (node.op == "call_function" and node.target is torch.flatten) or (
        node.op == "call_method" and node.target == "flatten"
    )
    return called and node.args[1:] in ((1,), (1, -1)) and not node.kwargs


def is_temporary(graph: fx.GraphModule, node: fx.Node) -> bool:
    """Whether the value of a node is new memory and used once."""
    module = module_of(graph, node)
    fresh = module is not None and type(module) in _FRESH and not is_altered(module)
    if node.op == "call_function":
        fresh = node.target is window_maximum or node.target in _ADDITIONS
    return fresh and len(node.users) == 1


def _pooling_window(graph: fx.GraphModule, node: fx.Node) -> Window | None:
    """The window of a max-pooling without overlap, padding, dilation or rounding up; else None."""
    module = module_of(graph, node)
    if type(module) is nn.MaxPool2d and not is_altered(module):
        pooling = module
    elif node.op == "call_function" and node.target in _POOLS and len(node.args) <= 5:
        options: dict[str, Any] = {key: value for key, value in node.kwargs.items() if key != "input"}
        sizes: tuple[Any, ...] = node.args[1:]
        pooling = nn.MaxPool2d(*sizes, **options)
    else:
        return None
    window, stride = _pair(pooling.kernel_size), _pair(pooling.stride)
    plain = not pooling.ceil_mode and not pooling.return_indices and all(isinstance(side, int) for side in window)
    if plain and window == stride and _pair(pooling.padding) == (0, 0) and _pair(pooling.dilation) == (1, 1):
        return window
    return None


def _pair(value: int | tuple[int, ...]) -> Window:
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    return pair[0], pair[-1]
