"""Operations that only move entries: reshaping, slices, concatenation, padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from valleyscope.landscape.alignment.elementwise_rules import Rule
from valleyscope.landscape.alignment.units import Axis, Entry
from valleyscope.landscape.alignment.values import Bookkeeping, Call, Unknown, Value


def reshape(book: Bookkeeping, call: Call) -> list[Axis]:
    """Axes are merged and split; their order in memory stays."""
    x = call.x
    axes: list[Axis] = []
    for old, new in _factors(tuple(x.tensor.shape), tuple(call.result.shape)):
        merged = _merged(book, [x.axes[axis] for axis in old], [x.tensor.shape[axis] for axis in old])
        axes += _split(book, merged, [call.result.shape[axis] for axis in new])
    return axes


def _factors(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Runs of old axes and of new axes with the same number of entries, as short as possible."""
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        ins, outs, a, b = [], [], 1, 1
        if i < len(old):
            ins, a, i = [i], old[i], i + 1
        if j < len(new):
            outs, b, j = [j], new[j], j + 1
        while a != b:
            if a < b and i < len(old):
                ins.append(i)
                a, i = a * old[i], i + 1
            elif j < len(new):
                outs.append(j)
                b, j = b * new[j], j + 1
            else:
                raise Unknown(f"a reshape of {tuple(old)} to {tuple(new)}")
        found.append((ins, outs))
    return found


def _merged(book: Bookkeeping, axes: list[Axis], sizes: list[int]) -> Axis:
    """Several axes as one; at most one of them can move."""
    moving = [index for index, axis in enumerate(axes) if axis is not None]
    if not moving:
        return None
    for index in moving[1:]:
        book.units.fix_axis(axes[index])
    (lead, axis), total = (moving[0], axes[moving[0]]), math.prod(sizes)
    assert axis is not None
    if len(axis) == total:
        return axis
    inner = math.prod(sizes[lead + 1 :])
    merged: list[Entry] = []
    for position in range(total):
        outer, rest = divmod(position, inner * sizes[lead])
        row, last = divmod(rest, inner)
        unit, place = axis[row]
        merged.append((unit, (*place, outer * inner + last)))
    return merged


def _split(book: Bookkeeping, axis: Axis, sizes: list[int]) -> list[Axis]:
    """One axis as several, of which one can move: the one that was merged before, or else one that becomes blocks."""
    wide = [index for index, size in enumerate(sizes) if size > 1]
    if axis is None or len(wide) <= 1:
        return [axis if index in wide else None for index in range(len(sizes))]
    for index in wide:
        found = _unmerged(book, axis, sizes, index)
        if found is not None:
            return [found if number == index else None for number in range(len(sizes))]
    key = tuple(sizes)
    book.options[key] = wide
    lead = book.choices.get(key, wide[0])
    blocks = book.units.fresh(sizes[lead])
    for position, entry in enumerate(axis):
        row, other = _coordinates(position, sizes, lead)
        book.units.join((blocks[row][0], (other,)), entry)
    return [blocks if number == lead else None for number in range(len(sizes))]


def _unmerged(book: Bookkeeping, axis: list[Entry], sizes: list[int], lead: int) -> list[Entry] | None:
    """The axis `lead` of those that were merged into this one; None if it was made otherwise."""
    found: list[Entry | None] = [None] * sizes[lead]
    for position, entry in enumerate(axis):
        unit, place = book.units.resolve(entry)
        row, other = _coordinates(position, sizes, lead)
        if not place or place[-1] != other or found[row] not in (None, (unit, place[:-1])):
            return None
        found[row] = (unit, place[:-1])
    return [entry for entry in found if entry is not None]


def _coordinates(position: int, sizes: list[int], lead: int) -> tuple[int, int]:
    """The index on one axis, and the index on the others together."""
    inner = math.prod(sizes[lead + 1 :])
    outer, rest = divmod(position, inner * sizes[lead])
    row, last = divmod(rest, inner)
    return row, outer * inner + last


def permute(_: Bookkeeping, call: Call) -> list[Axis]:
    x, dims = call.x, call.arguments[1:] or (call.options.get("dims"),)
    order = dims[0] if isinstance(dims[0], tuple | list) else dims
    return [x.axes[dim] for dim in order]


def transpose(_: Bookkeeping, call: Call) -> list[Axis]:
    axes = list(call.x.axes)
    a, b = (call.argument(1, "dim0", 0), call.argument(2, "dim1", 1))
    axes[a], axes[b] = axes[b], axes[a]
    return axes


def squeeze(_: Bookkeeping, call: Call) -> list[Axis]:
    x, dim = call.x, call.argument(1, "dim")
    dims = range(x.dims) if dim is None else [each % x.dims for each in ((dim,) if isinstance(dim, int) else dim)]
    gone = {each for each in dims if x.tensor.shape[each] == 1}
    return [entries for axis, entries in enumerate(x.axes) if axis not in gone]


def unsqueeze(_: Bookkeeping, call: Call) -> list[Axis]:
    axes = list(call.x.axes)
    axes.insert(call.argument(1, "dim") % (len(axes) + 1), None)
    return axes


def expand(_: Bookkeeping, call: Call) -> list[Axis]:
    x = call.x
    axes = [None] * (call.result.dim() - x.dims) + list(x.axes)
    return [entries if size > 1 else None for entries, size in zip(axes, call.result.shape, strict=True)]


def pieces(_: Bookkeeping, call: Call) -> list[list[Axis]]:
    """chunk and split: slices of one axis."""
    x, dim = call.x, call.argument(2, "dim", 0) % call.x.dims
    start, found = 0, []
    for piece in call.result:
        found.append(_sliced(x, dim, slice(start, start + piece.shape[dim])))
        start += piece.shape[dim]
    return found


def unbind(book: Bookkeeping, call: Call) -> list[list[Axis]]:
    x, dim = call.x, call.argument(1, "dim", 0) % call.x.dims
    book.units.fix_axis(x.axes[dim])
    rest = [entries for axis, entries in enumerate(x.axes) if axis != dim]
    return [rest] * len(call.result)


def item(book: Bookkeeping, call: Call) -> Any:
    """x[...]: of a tensor by whole numbers and slices, or of a tuple."""
    x, index = call.arguments
    if not isinstance(x, Value):
        raise Unknown("an item of something other than a tensor")
    index = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(part, int | slice | type(None) | type(...)) or isinstance(part, bool) for part in index):
        raise Unknown("an index by a tensor or list")
    named = sum(isinstance(part, int | slice) for part in index)
    whole = [slice(None)] * (x.dims - named)
    at = next((place for place, part in enumerate(index) if part is ...), len(index))
    index = (*index[:at], *whole, *index[at + 1 :])
    axes: list[Axis] = []
    axis = 0
    for part in index:
        if part is None:
            axes.append(None)
            continue
        entries = x.axes[axis]
        if isinstance(part, int):
            if entries is not None:
                book.units.fix(entries[part])
        else:
            axes.append(entries if entries is None or part == slice(None) else entries[part])
        axis += 1
    return axes


def narrow(_: Bookkeeping, call: Call) -> list[Axis]:
    dim, start, length = (call.argument(index + 1, name) for index, name in enumerate(("dim", "start", "length")))
    return _sliced(call.x, dim % call.x.dims, slice(start, start + length))


def _sliced(x: Value, dim: int, part: slice) -> list[Axis]:
    axes = list(x.axes)
    entries = axes[dim]
    axes[dim] = None if entries is None else entries[part]
    return axes


def concatenate(book: Bookkeeping, call: Call) -> list[Axis]:
    values = call.tensors()
    dim = (call.argument(1, "dim", call.options.get("axis", 0))) % call.result.dim()
    axes: list[Axis] = []
    for axis in range(call.result.dim()):
        own = [value.axes[axis] for value in values]
        if axis != dim:
            axes.append(book.units.join_all(own))
        elif all(entries is None for entries in own):
            axes.append(None)
        else:
            sized = zip(values, own, strict=True)
            axes.append([entry for v, part in sized for entry in book.units.entries(part, v.tensor.shape[axis])])
    return axes


def stack(book: Bookkeeping, call: Call) -> list[Axis]:
    values = call.tensors()
    axes: list[Axis] = [book.units.join_all(own) for own in zip(*(value.axes for value in values), strict=True)]
    axes.insert(call.argument(1, "dim", 0) % call.result.dim(), None)
    return axes


def pad(book: Bookkeeping, call: Call) -> list[Axis]:
    """Constants around; those beside channels may change places among each other, for they are equal."""
    x, pads = call.x, call.argument(1, "pad")
    constant = call.argument(2, "mode", "constant") == "constant"
    axes = list(x.axes)
    for number in range(len(pads) // 2):
        axis, (before, after) = x.dims - 1 - number, pads[2 * number : 2 * number + 2]
        entries = axes[axis]
        if entries is None or not (before or after):
            continue
        if constant and before >= 0 and after >= 0:
            axes[axis] = [*book.units.fresh(before), *entries, *book.units.fresh(after)]
        else:
            book.units.fix_axis(entries)
            axes[axis] = None
    return axes


def reorder(book: Bookkeeping, call: Call) -> list[Axis]:
    """flip and roll of some axes, which are fixed."""
    x, dims = call.x, call.argument(2 if call.name == "roll" else 1, "dims")
    if dims is None:
        raise Unknown(f"{call.name} of all axes")
    gone = {dim % x.dims for dim in ((dims,) if isinstance(dims, int) else dims)}
    for axis in gone:
        book.units.fix_axis(x.axes[axis])
    return [None if axis in gone else entries for axis, entries in enumerate(x.axes)]


RULES: dict[str, Rule] = {
    **dict.fromkeys(("flatten", "view", "reshape", "unflatten", "view_as", "reshape_as"), reshape),
    **dict.fromkeys(("chunk", "split", "tensor_split", "split_with_sizes"), pieces),
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenate),
    **dict.fromkeys(("flip", "roll"), reorder),
    **dict.fromkeys(("transpose", "swapaxes", "t"), transpose),
    "permute": permute,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), expand),
    "unbind": unbind,
    "getitem": item,
    "narrow": narrow,
    "stack": stack,
    "pad": pad,
}
