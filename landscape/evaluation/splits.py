"""The data of a landscape: samples and labels by split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.evaluation.guessing_baseline import guessing_loss

Samples = Tensor | NDArray[Any]
Pair = tuple[Samples, Samples]
Data = Mapping[str, Pair] | Pair
"""(x, y) by split, as tensors or numpy arrays; a single pair is the split ``train``."""


@dataclass(frozen=True, eq=False)
class Split:
    """Samples and labels of one split, converted for the network block by block."""

    name: str
    x: Tensor
    y: Tensor
    dtype: torch.dtype
    channels_last: bool

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def guessing(self) -> float:
        """Loss of always predicting the class frequencies."""
        return guessing_loss(self.y.bincount().cpu().numpy())

    def samples(self, part: slice) -> Tensor:
        """A block of samples in the data type of the network; may share memory with the user's tensor."""
        x = self.x[part]
        if x.is_floating_point():
            x = x.to(self.dtype)
        if not self.channels_last or x.dim() != 4:
            return x
        if x.shape[1] == 1:
            # With one channel both orders have the same memory; the strides tell a convolution which one to use.
            return x.contiguous().squeeze(1).unsqueeze(-1).movedim(-1, 1)
        return x.contiguous(memory_format=torch.channels_last)

    def parts(self, block: int, start: int = 0, stop: int | None = None) -> list[slice]:
        """Consecutive blocks of samples.

        A last block of one sample is merged with the one before: networks may squeeze a single sample.
        """
        end = len(self) if stop is None else stop
        parts = [slice(first, min(first + block, end)) for first in range(start, end, block)]
        if block > 1 and len(parts) > 1 and parts[-1].stop - parts[-1].start == 1:
            parts[-2:] = [slice(parts[-2].start, end)]
        return parts


def by_split(data: Data) -> Mapping[str, Pair]:
    return data if isinstance(data, Mapping) else {"train": data}


def checked_splits(data: Data, like: Tensor, *, channels_last: bool) -> dict[str, Split]:
    """The data as checked splits for a network with weights ``like``."""
    named = by_split(data)
    if not named:
        raise ValueError("data has no splits; give a mapping such as {'train': (x, y), 'test': (x, y)}")
    splits = {}
    for name, pair in named.items():
        x, y = checked_pair(name, pair)
        splits[name] = Split(name, x.to(like.device), y.to(like.device, torch.int64), like.dtype, channels_last)
    return splits


def checked_pair(name: str, pair: Pair) -> tuple[Tensor, Tensor]:
    """Samples and labels of a split as tensors; raises a ValueError if they are invalid."""
    try:
        x, y = (torch.as_tensor(part) for part in pair)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"split {name!r} is not a pair (x, y) of tensors: {error}") from None
    if x.dim() < 1 or y.dim() != 1 or len(x) != len(y):
        raise ValueError(
            f"split {name!r} has x of shape {tuple(x.shape)} and y of shape {tuple(y.shape)}; expected samples of "
            "shape (N, ...) and labels of shape (N,)"
        )
    if len(x) == 0:
        raise ValueError(f"split {name!r} has no samples")
    if y.is_floating_point() or y.is_complex() or y.dtype is torch.bool:
        raise ValueError(f"labels of split {name!r} have data type {y.dtype}; give class numbers 0, 1, 2, ...")
    return x, y


def check_classes(labels: Mapping[str, Tensor], classes: int) -> None:
    """Raise an error if a label is not a class of the network."""
    for name, y in labels.items():
        low, high = int(y.min()), int(y.max())
        if low < 0 or high >= classes:
            raise ValueError(
                f"labels of split {name!r} run from {low} to {high}, but the network has {classes} classes: "
                f"labels must lie in 0 to {classes - 1}"
            )
