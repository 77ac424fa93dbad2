"""Batches of any structure: tensors in tuples, lists and dicts, whose first dimension counts samples."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

Batch = Any
"""A tensor, or a tuple or dict of batches."""


def map_tensors(function: Callable[[Tensor], Any], batch: Batch) -> Batch:
    """The batch with the function applied to every tensor; numpy arrays become tensors, lists tuples."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, np.ndarray | np.generic):
        return function(torch.as_tensor(batch))
    if isinstance(batch, Mapping):
        return {key: map_tensors(function, value) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        parts = [map_tensors(function, value) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    raise TypeError(f"a batch holds a {type(batch).__name__}; give tensors, or tuples and dicts of tensors")


def tensors_of(batch: Batch) -> Iterator[Tensor]:
    """All tensors of a batch, in order."""
    found: list[Tensor] = []
    map_tensors(found.append, batch)
    yield from found


def is_nested_tensors(value: object) -> bool:
    """Whether a value is a tensor, or tuples, lists and dicts of nothing but tensors."""
    if isinstance(value, Mapping):
        return bool(value) and all(is_nested_tensors(part) for part in value.values())
    if isinstance(value, tuple | list):
        return bool(value) and all(is_nested_tensors(part) for part in value)
    return isinstance(value, Tensor | np.ndarray)


def samples_in(batch: Batch) -> int:
    """The number of samples in a batch; a ValueError unless all of its tensors have as many."""
    sizes = {tensor.shape[:1] for tensor in tensors_of(batch)}
    if len(sizes) != 1 or () in sizes:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors_of(batch))
        raise ValueError(f"its tensors have shapes {shapes or 'none'}; the first dimension must count the same samples")
    return int(sizes.pop()[0])


def select(batch: Batch, which: slice | Tensor) -> Batch:
    """Some samples of a batch."""
    return map_tensors(lambda tensor: tensor[which], batch)


def join(batches: Sequence[Batch]) -> Batch:
    """Batches of equal structure as one."""
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(tensors_of(batch) for batch in batches), strict=True)
    joined = iter([torch.cat(column) for column in columns])
    return map_tensors(lambda _: next(joined), batches[0])


def to_network(batch: Batch, like: Tensor) -> Batch:
    """The batch on the device of the network and, where it has floating-point numbers, in its data type."""

    def moved(tensor: Tensor) -> Tensor:
        dtype = like.dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.to(device=like.device, dtype=dtype, non_blocking=True)

    return map_tensors(moved, batch)


def bytes_in(batch: Batch) -> int:
    return sum(tensor.nbytes for tensor in tensors_of(batch))


def checksum(batch: Batch) -> int:
    """A fingerprint of the values of a batch."""
    found = 0
    for tensor in tensors_of(batch):
        content = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        found = zlib.crc32(content.data, zlib.crc32(str((tensor.dtype, tuple(tensor.shape))).encode(), found))
    return found
