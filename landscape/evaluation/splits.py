"""The data of a landscape: samples and labels by split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from valleyscope.landscape.evaluation.guessing_baseline import guessing_loss
from valleyscope.landscape.evaluation.objectives import Objective
from valleyscope.landscape.evaluation.sources import Source, StreamedSource, TensorSource, collect, open_source

Samples = Tensor | NDArray[Any]
Pair = tuple[Samples, Samples]
Data = Any
"""The data of one split, or a mapping of splits to theirs.

The data of a split are tensors or numpy arrays, such as (x, y), nested tuples or a dict of them, a Dataset, a
DataLoader, or another iterable of batches that can be walked again. Without a mapping it is the split ``train``. A dict
of tensors is one batch, unless a key is ``train``, ``test`` or ``validation``.
"""

_MOST_CHECKED = 2**30
"""Bytes of samples that are searched for values that are not finite; larger ones may be files mapped into memory."""
_SPLITS = ("train", "test", "validation", "valid", "val")


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
        return self._converted(self.x[part])

    def only(self, samples: Tensor) -> Split:
        """The split with these samples alone, in this order."""
        which = samples.to(self.y.device)
        return replace(self, x=self.x[which], y=self.y[which])

    def _converted(self, x: Tensor) -> Tensor:
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


@dataclass(frozen=True, eq=False)
class StreamedSplit(Split):
    """A split with its labels in memory, and samples that are read block by block; ``x`` is empty."""

    source: StreamedSource

    def __len__(self) -> int:
        return len(self.y)

    def samples(self, part: slice) -> Tensor:
        x: Tensor = self.source.part(part)[0]
        return self._converted(x.to(self.y.device, non_blocking=True))


def by_split(data: Data) -> Mapping[str, Any]:
    """The data of every split by name; all but a mapping of splits is the split ``train``."""
    if not isinstance(data, Mapping):
        return {"train": data}
    values = data.values()
    is_batch = bool(data) and all(isinstance(value, Tensor | np.ndarray) for value in values)
    return {"train": data} if is_batch and not any(name in data for name in _SPLITS) else data


def open_sources(data: Data, memory_limit: int | None) -> dict[str, Source]:
    """The samples of every split."""
    named = by_split(data)
    if not named:
        raise ValueError("data has no splits; give a mapping such as {'train': (x, y), 'test': (x, y)}")
    return {name: open_source(name, given, memory_limit) for name, given in named.items()}


def checked_data(data: Data, objective: Objective) -> Mapping[str, Any]:
    """The data by split; pairs of tensors are checked, and a tensor alone is its own target where that makes sense."""
    named = dict(by_split(data))
    for name, given in named.items():
        if isinstance(given, tuple | list) and len(given) == 2 and objective.is_classification:
            x, y = given
            if isinstance(y, Tensor | np.ndarray) and y.ndim == 1 and isinstance(x, Tensor | np.ndarray):
                named[name] = checked_pair(name, (x, y))
        elif isinstance(given, Tensor | np.ndarray) and objective.reconstructs:
            named[name] = (given, given)
    return named


def is_pair(source: Source) -> bool:
    """Whether a sample is a pair of tensors (x, y)."""
    first = source.part(slice(0, 1))
    return isinstance(first, tuple) and len(first) == 2 and all(isinstance(part, Tensor) for part in first)


def splits_of(sources: Mapping[str, Source], like: Tensor, *, classes: bool, channels_last: bool) -> dict[str, Split]:
    """Sources of pairs as splits for a network with weights ``like``; with ``classes``, y are class numbers (N,)."""
    splits: dict[str, Split] = {}
    for name, source in sources.items():
        if isinstance(source, TensorSource):
            x, y = source.batch
            _check_finite(name, x)
        else:
            x, y = source.part(slice(0, 1))[0][:0], collect(source, 1)
        if classes:
            _check_labels(name, x, y)
        # Targets keep their precision: a loss is computed in float64.
        y = y.to(like.device, torch.int64) if classes else y.to(like.device)
        rest = (y, like.dtype, channels_last)
        if isinstance(source, TensorSource):
            splits[name] = Split(name, x.to(like.device), *rest)
        else:
            splits[name] = StreamedSplit(name, x, *rest, source)
    return splits


def _check_finite(name: str, x: Tensor) -> None:
    """Raise an error that names a sample with NaN or infinity: every loss would be infinite."""
    if not x.is_floating_point() or x.nbytes > _MOST_CHECKED:
        return
    if not bool(torch.isfinite(x.sum(dtype=torch.float64))):
        finite = torch.isfinite(x).flatten(1).all(dim=1)
        raise ValueError(f"split {name!r}: sample {int(finite.int().argmin())} has values in x that are not finite")


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
    _check_labels(name, x, y)
    return x, y


def _check_labels(name: str, x: Tensor, y: Tensor) -> None:
    if y.dim() != 1:
        raise ValueError(
            f"split {name!r} has x of shape {tuple(x.shape)} and y of shape {tuple(y.shape)}; expected samples of "
            "shape (N, ...) and labels of shape (N,)"
        )
    if y.is_floating_point() or y.is_complex() or y.dtype is torch.bool:
        raise ValueError(
            f"labels of split {name!r} have data type {y.dtype}; give class numbers 0, 1, 2, ..., or another loss such "
            "as loss='mse'"
        )


def check_classes(labels: Mapping[str, Tensor], classes: int) -> None:
    """Raise an error if a label is not a class of the network."""
    for name, y in labels.items():
        low, high = int(y.min()), int(y.max())
        if low < 0 or high >= classes:
            raise ValueError(
                f"labels of split {name!r} run from {low} to {high}, but the network has {classes} classes: "
                f"labels must lie in 0 to {classes - 1}"
            )
