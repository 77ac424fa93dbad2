"""Operations that treat all entries of an axis alike: activations, sums, reductions, products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from valleyscope.landscape.alignment.units import Axis
from valleyscope.landscape.alignment.values import Bookkeeping, Call, Unknown, Value

Rule = Callable[[Bookkeeping, Call], Any]

_POINTWISE = (
    *("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "sigmoid", "logsigmoid", "tanh"),
    *("hardtanh", "hardswish", "hardsigmoid", "softplus", "softsign", "hardshrink", "softshrink", "tanhshrink"),
    *("threshold", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"),
    *("stochastic_depth", "abs", "neg", "square", "sqrt", "rsqrt", "reciprocal", "exp", "log", "log1p", "sin", "cos"),
    *("erf", "sign", "clamp", "clamp_min", "clamp_max", "clip", "clone", "contiguous", "detach", "identity", "float"),
    *("double", "half", "to", "type_as", "nan_to_num", "positive"),
    *("add", "iadd", "sub", "isub", "mul", "imul", "div", "truediv", "itruediv", "true_divide", "pow", "maximum"),
    *("minimum", "where", "masked_fill", "lerp", "addcmul", "multiply", "subtract", "divide", "rsub"),
    *("zeros_like", "ones_like"),
)
_ALIKE = ("softmax", "log_softmax", "normalize")
_REDUCTIONS = ("mean", "sum", "amax", "amin", "norm", "var", "std", "logsumexp")
_POOLS = tuple(
    f"{name}{dims}d"
    for dims in (1, 2, 3)
    for name in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool")
)


def pointwise(book: Bookkeeping, call: Call) -> list[Axis]:
    """Values of equal shape, or broadcast to it, are combined entry by entry."""
    values, shape = call.tensors(), call.result.shape
    axes: list[Axis] = []
    for axis in range(-len(shape), 0):
        own = [value.axes[axis] for value in values if value.dims >= -axis and value.tensor.shape[axis] == shape[axis]]
        axes.append(book.units.join_all(own) if own and shape[axis] > 1 else None)
    return axes


def alike(_: Bookkeeping, call: Call) -> list[Axis]:
    """Every entry of an axis depends on all others in the same way."""
    return list(call.x.axes)


def reduction(_: Bookkeeping, call: Call) -> list[Axis]:
    """A sum or maximum over axes does not depend on their order."""
    x, dims = call.x, call.argument(2 if call.name == "norm" else 1, "dim")
    dims = tuple(range(x.dims)) if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not all(isinstance(dim, int) for dim in dims):
        raise Unknown(f"{call.name} over {dims}")
    gone = {dim % x.dims for dim in dims}
    if call.result.dim() == x.dims:
        return [None if axis in gone else entries for axis, entries in enumerate(x.axes)]
    return [entries for axis, entries in enumerate(x.axes) if axis not in gone]


def pool(book: Bookkeeping, call: Call) -> list[Axis]:
    """Each channel by itself; the order of pixels is fixed."""
    x = call.x
    if x.dims != call.result.dim():
        raise Unknown(f"{call.name} with indices")
    spatial = int(call.name[-2]) if call.name[-2].isdigit() else x.dims - 2
    for axis in x.axes[x.dims - spatial :]:
        book.units.fix_axis(axis)
    return [*x.axes[: x.dims - spatial], *[None] * spatial]


def matrix_product(book: Bookkeeping, call: Call) -> list[Axis]:
    """The last axis of the first factor is summed with the last but one of the second."""
    a, b = call.tensors()
    book.read(call, a.dims - 1)
    if a.dims < 2 or b.dims < 2:
        raise Unknown(f"{call.name} with vectors")
    return _product(book, a, b.axes, b.tensor.shape[:-2], b.axes[-2], b.axes[-1])


def attention(book: Bookkeeping, call: Call) -> list[Axis]:
    """softmax(q k') v, in which keys and queries share their features, keys and values their positions."""
    q, k, v = (call.argument(index, name) for index, name in enumerate(("query", "key", "value")))
    if call.argument(3, "attn_mask") is not None or call.argument(5, "is_causal", False):
        for value in (q, k, v):
            book.units.fix_axis(value.axes[-2])
    if not q.tensor.shape[:-2] == k.tensor.shape[:-2] == v.tensor.shape[:-2]:
        raise Unknown("attention with grouped queries")
    book.read(call, q.dims - 1)
    scores = _product(book, q, k.axes, k.tensor.shape[:-2], k.axes[-1], k.axes[-2])
    book.units.join_axes(k.axes[-2], v.axes[-2])
    outer = [book.units.join_axes(a, b) for a, b in zip(scores[:-2], v.axes[:-2], strict=True)]
    return [*outer, scores[-2], v.axes[-1]]


def _product(book: Bookkeeping, a: Value, outer: list[Axis], outer_shape: Any, summed: Axis, last: Axis) -> list[Axis]:
    book.units.join_axes(a.axes[-1], summed)
    if tuple(a.tensor.shape[:-2]) != tuple(outer_shape):
        for axis in (*a.axes[:-2], *outer[:-2]):
            book.units.fix_axis(axis)
        batch: list[Axis] = [None] * max(a.dims - 2, len(outer_shape))
    else:
        batch = [book.units.join_axes(one, other) for one, other in zip(a.axes[:-2], outer[:-2], strict=True)]
    return [*batch, a.axes[-2], last]


RULES: dict[str, Rule] = {
    **dict.fromkeys(_POINTWISE, pointwise),
    **dict.fromkeys(_ALIKE, alike),
    **dict.fromkeys(_REDUCTIONS, reduction),
    **dict.fromkeys(_POOLS, pool),
    **dict.fromkeys(("interpolate", "upsample"), pool),
    **dict.fromkeys(("matmul", "bmm"), matrix_product),
    "scaled_dot_product_attention": attention,
}
