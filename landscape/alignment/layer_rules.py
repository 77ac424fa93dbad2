"""Layers with weights: linear, convolution, normalisation, embedding, attention."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from valleyscope.landscape.alignment import elementwise_rules, shape_rules
from valleyscope.landscape.alignment.elementwise_rules import Rule
from valleyscope.landscape.alignment.units import Axis
from valleyscope.landscape.alignment.values import Bookkeeping, Call, Unknown, Value

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def linear(book: Bookkeeping, call: Call) -> list[Axis]:
    x, weight, bias = call.x, _parameter(call, 1, "weight"), _parameter(call, 2, "bias")
    assert weight is not None
    outputs, inputs = book.of_parameter(weight)
    book.read(call, x.dims - 1)
    book.units.join_axes(x.axes[-1], inputs)
    book.join_parameter(bias, outputs)
    return [*x.axes[:-1], outputs]


def convolution(book: Bookkeeping, call: Call) -> list[Axis]:
    x, weight, bias = call.x, _parameter(call, 1, "weight"), _parameter(call, 2, "bias")
    assert weight is not None
    if x.dims != weight.dim():
        raise Unknown("a convolution without an axis of samples")
    groups = call.module.groups if isinstance(call.module, _CONVOLUTIONS) else call.argument(6, "groups", 1)
    outputs, inputs, *kernel = book.of_parameter(weight)
    for axis in (*x.axes[2:], *kernel):
        book.units.fix_axis(axis)
    book.read(call, 1)
    if groups == 1:
        book.units.join_axes(x.axes[1], inputs)
    else:
        book.units.fix_axis(inputs)  # their order within a group is one for each group
        _join_groups(book, groups, x.axes[1], outputs)
    book.join_parameter(bias, outputs)
    return [x.axes[0], outputs, *[None] * (x.dims - 2)]


def _join_groups(book: Bookkeeping, groups: int, inputs: Axis, outputs: Axis) -> None:
    """Groups move as a whole, the inputs and outputs of each together."""
    if inputs is None or outputs is None:
        book.units.fix_axis(inputs)
        book.units.fix_axis(outputs)
        return
    blocks = book.units.fresh(groups)
    book.units.join_blocks(inputs, blocks)
    book.units.join_blocks(outputs, blocks)


def batch_norm(book: Bookkeeping, call: Call) -> list[Axis]:
    norm = call.module
    assert isinstance(norm, _BatchNorm | _InstanceNorm)
    if call.x.dims < 2:
        raise Unknown("a normalisation without an axis of samples")
    for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
        book.join_parameter(tensor, call.x.axes[1])
    return list(call.x.axes)


def layer_norm(book: Bookkeeping, call: Call) -> list[Axis]:
    x, shape = call.x, getattr(call.module, "normalized_shape", None) or call.argument(1, "normalized_shape")
    weight, bias = _parameter(call, 2, "weight"), _parameter(call, 3, "bias")
    for tensor in (weight, bias):
        if tensor is not None:
            for own, axis in zip(book.of_parameter(tensor), x.axes[-len(shape) :], strict=True):
                book.units.join_axes(own, axis)
    return list(x.axes)


def group_norm(book: Bookkeeping, call: Call) -> list[Axis]:
    """Channels of a group may change places, or whole groups: what allows for more orders."""
    norm, axis = call.module, call.x.axes[1]
    assert isinstance(norm, nn.GroupNorm)
    groups, size = norm.num_groups, norm.num_channels // norm.num_groups
    if axis is not None and groups > 1 and size > 1:
        if groups * math.lgamma(size + 1) >= math.lgamma(groups + 1):
            book.mark(axis, groups)
        else:
            book.units.join_blocks(axis, book.units.fresh(groups))
    for tensor in (norm.weight, norm.bias):
        book.join_parameter(tensor, axis)
    return list(call.x.axes)


def prelu(book: Bookkeeping, call: Call) -> list[Axis]:
    weight = _parameter(call, 1, "weight")
    if weight is not None and weight.numel() > 1:
        book.join_parameter(weight, call.x.axes[1])
    return list(call.x.axes)


def embedding(book: Bookkeeping, call: Call) -> list[Axis]:
    table = call.module.weight if isinstance(call.module, nn.Embedding) else None
    if not isinstance(table, Tensor):
        raise Unknown("a table of embeddings that is not a layer")
    rows, features = book.of_parameter(table)
    book.units.fix_axis(rows)
    for axis in call.x.axes:
        book.units.fix_axis(axis)
    return [*[None] * call.x.dims, features]


def multi_head_attention(book: Bookkeeping, call: Call) -> Any:
    """Heads move as a whole: their rows of the three inputs, and their columns of the output."""
    layer = call.module
    assert isinstance(layer, nn.MultiheadAttention)
    q, k, v = (call.argument(index, name) for index, name in enumerate(("query", "key", "value")))
    if not all(isinstance(value, Value) and value.dims == 3 for value in (q, k, v)):
        raise Unknown("attention without an axis of samples")
    if layer.bias_k is not None or layer.bias_v is not None:
        raise Unknown("attention with bias_k and bias_v")
    samples, positions = (0, 1) if layer.batch_first else (1, 0)
    masked = call.argument(3, "key_padding_mask") is not None or call.argument(5, "attn_mask") is not None
    for value in (q, k, v):
        book.units.fix_axis(value.axes[samples])
        if masked or call.argument(7, "is_causal", False):
            book.units.fix_axis(value.axes[positions])
    book.units.join_axes(k.axes[positions], v.axes[positions])
    heads, size = layer.num_heads, layer.head_dim
    blocks = book.units.fresh(heads)

    def join(axis: Axis, first: int, number: int) -> None:
        assert axis is not None
        for position in range(heads * size):
            head, place = divmod(position, size)
            book.units.join((blocks[head][0], (number * size + place,)), axis[first + position])

    if layer._qkv_same_embed_dim:
        rows, columns = book.of_parameter(layer.in_proj_weight)
        for number, value in enumerate((q, k, v)):
            join(rows, number * heads * size, number)
            book.units.join_axes(value.axes[-1], columns)
    else:
        projections = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
        rows = []
        for number, (value, weight) in enumerate(zip((q, k, v), projections, strict=True)):
            own, columns = book.of_parameter(weight)
            join(own, 0, number)
            book.units.join_axes(value.axes[-1], columns)
            rows += own or []
    book.join_parameter(layer.in_proj_bias, rows)
    outputs, columns = book.of_parameter(layer.out_proj.weight)
    join(columns, 0, 2)
    book.join_parameter(layer.out_proj.bias, outputs)
    book.read(call, 2)
    weights = call.result[1]  # of the attention: (samples, queries, keys), perhaps with an axis of heads
    axes = [] if weights is None else [*[None] * (weights.dim() - 2), q.axes[positions], k.axes[positions]]
    return [[*q.axes[:2], outputs], axes]


def _parameter(call: Call, index: int, name: str) -> Tensor | None:
    """A parameter of the module that is called, or the tensor that a function gets."""
    if call.module is not None:
        found = getattr(call.module, name, None)
    else:
        value = call.argument(index, name)
        found = value.tensor if isinstance(value, Value) else None
    if found is not None and not isinstance(found, Tensor):
        raise Unknown(f"{call.name} with a {type(found).__name__} as {name}")
    return found


def _module_names(names: dict[str, Rule]) -> dict[str, Rule]:
    """Rules of functions by the name of their modules' classes, such as `AvgPool2d`."""
    return {name.replace("_", ""): rule for name, rule in names.items()}


_ELEMENTWISE_MODULES = _module_names(
    {
        name: rule
        for name, rule in elementwise_rules.RULES.items()
        if rule in (elementwise_rules.pointwise, elementwise_rules.pool)
    }
)
_MODULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Flatten: shape_rules.reshape,
    nn.Unflatten: shape_rules.reshape,
    **dict.fromkeys(_CONVOLUTIONS, convolution),
    **dict.fromkeys(_NORMS, batch_norm),
    **dict.fromkeys(_INSTANCE_NORMS, batch_norm),
    nn.LayerNorm: layer_norm,
    nn.GroupNorm: group_norm,
    nn.PReLU: prelu,
    nn.Embedding: embedding,
    nn.MultiheadAttention: multi_head_attention,
    nn.Softmax: elementwise_rules.alike,
    nn.LogSoftmax: elementwise_rules.alike,
    nn.Upsample: elementwise_rules.pool,
}
if hasattr(nn, "RMSNorm"):  # torch 2.4 has it
    _MODULES[nn.RMSNorm] = layer_norm

FUNCTIONS: dict[str, Rule] = {
    "linear": linear,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), convolution),
    "layer_norm": layer_norm,
}


def rule_of_module(module: nn.Module) -> Rule | None:
    """The rule of a module of torch; None if there is none."""
    if type(module) in _MODULES:
        return _MODULES[type(module)]
    if any(True for _ in module.parameters(recurse=False)):
        return None
    return _ELEMENTWISE_MODULES.get(type(module).__name__.lower())
