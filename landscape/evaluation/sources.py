"""Where samples come from: tensors in memory, or a data set or loader that is walked block by block.

A source gives any consecutive samples, ``part(slice)``, always the same. What fits into the memory limit is read once;
the rest is streamed, and every walk is compared with the first one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from valleyscope.landscape.evaluation.batches import (
    Batch,
    bytes_in,
    checksum,
    is_nested_tensors,
    join,
    map_tensors,
    samples_in,
    select,
)
from valleyscope.landscape.network.memory_limit import machine_memory

_BATCH = 256
_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_ORDERED = "give a DataLoader with shuffle=False, and a data set without random augmentation"


class TensorSource:
    """Samples in memory: nested tensors."""

    def __init__(self, batch: Batch) -> None:
        self.batch = map_tensors(lambda tensor: tensor.detach(), batch)
        self._samples = samples_in(self.batch)

    def __len__(self) -> int:
        return self._samples

    def part(self, part: slice) -> Batch:
        """Consecutive samples."""
        return select(self.batch, part)


class StreamedSource:
    """Samples of an iterable of batches, cut again into the parts that are asked for, in order."""

    def __init__(self, name: str, batches: Iterable[Any], checksums: list[int], samples: int) -> None:
        self._name = name
        self._batches = batches
        self._checksums = checksums
        self._samples = samples
        self._walk: Iterator[Batch] = iter(())
        self._position = -1
        self._rest: list[Batch] = []

    def __len__(self) -> int:
        return self._samples

    @property
    def fingerprint(self) -> str:
        return zlib.crc32(repr(self._checksums).encode()).to_bytes(4, "big").hex()

    def part(self, part: slice) -> Batch:
        """Consecutive samples; a part that does not follow the last one starts a new walk."""
        start, stop = part.start or 0, min(part.stop, self._samples)
        if start != self._position:
            self._walk, self._rest, self._position = self._verified_walk(), [], 0
            if start:
                self._take(start)
        found = self._take(stop - start)
        if stop == self._samples:
            next(self._walk, None)  # to compare the length of the walk
            self._position = -1
        return found

    def _take(self, count: int) -> Batch:
        held = sum(samples_in(batch) for batch in self._rest)
        while held < count:
            self._rest.append(next(self._walk))
            held += samples_in(self._rest[-1])
        whole = join(self._rest)
        self._rest = [select(whole, slice(count, None))] if held > count else []
        self._position += count
        return select(whole, slice(0, count))

    def _verified_walk(self) -> Iterator[Batch]:
        """A walk over the batches that raises an error where it differs from the first."""
        number = 0
        for number, batch in enumerate(_walk(self._name, self._batches), 1):
            if number > len(self._checksums) or checksum(batch) != self._checksums[number - 1]:
                raise ValueError(_changed(self._name, f"batch {number - 1} differs"))
            yield batch
        if number < len(self._checksums):
            raise ValueError(_changed(self._name, f"it ended after {number} of {len(self._checksums)} batches"))


Source = TensorSource | StreamedSource


def open_source(name: str, data: Any, memory_limit: int | None = None) -> Source:
    """The samples of a split: nested tensors, a Dataset, a DataLoader or another iterable of batches."""
    if isinstance(data, TensorDataset):
        data = tuple(data.tensors)
    if is_nested_tensors(data) and not (isinstance(data, list) and not isinstance(data[0], Tensor)):
        try:
            source = TensorSource(data)
        except ValueError as error:
            raise ValueError(f"split {name!r}: {error}") from None
        return _checked(name, source)
    batches = _batches(name, data)
    return _checked(name, _read(name, batches, _limit(memory_limit)))


def _batches(name: str, data: Any) -> Iterable[Any]:
    """The data as an iterable of batches that can be walked again."""
    if isinstance(data, DataLoader):
        samplers = (data.sampler, getattr(data.batch_sampler, "sampler", None))
        if any(isinstance(sampler, _RANDOM) for sampler in samplers):
            raise ValueError(
                f"split {name!r}: the DataLoader shuffles, so points would be measured on samples in another order; "
                f"{_ORDERED}"
            )
        return data
    if isinstance(data, Dataset) and isinstance(data, IterableDataset | Sized):
        return DataLoader(data, batch_size=_BATCH)  # type: ignore[arg-type]
    if isinstance(data, tuple):
        held = ", ".join(type(part).__name__ for part in data)
        raise ValueError(f"split {name!r} is not a pair (x, y) of tensors, nor another tuple of tensors: it has {held}")
    if isinstance(data, Iterator):
        raise ValueError(
            f"split {name!r} is an iterator ({type(data).__name__}), which is exhausted after one walk; give an "
            "iterable that can be walked again, such as a list of batches or a DataLoader"
        )
    if isinstance(data, Mapping | str) or not hasattr(data, "__iter__"):
        if hasattr(data, "__getitem__") and isinstance(data, Sized) and not isinstance(data, Mapping | str):
            return DataLoader(data, batch_size=_BATCH)  # type: ignore[arg-type]
        raise ValueError(
            f"split {name!r} is not a pair (x, y) of tensors but a {type(data).__name__}; give tensors, nested "
            "tuples or dicts of tensors, a Dataset, a DataLoader or another iterable of batches"
        )
    return data  # type: ignore[no-any-return]


def _read(name: str, batches: Iterable[Any], limit: int) -> Source:
    """Walk once: keep all batches while they fit into the limit, else their fingerprints only."""
    kept: list[Batch] = []
    checksums: list[int] = []
    samples = held = 0
    streamed = False
    for batch in _walk(name, batches):
        checksums.append(checksum(batch))
        samples += samples_in(batch)
        held += bytes_in(batch)
        if held > limit:
            streamed, kept = True, []
        if not streamed:
            kept.append(batch)
    again = next(_walk(name, batches), None)
    if checksums and (again is None or checksum(again) != checksums[0]):
        raise ValueError(_changed(name, "its first batch differs" if again is not None else "it is empty"))
    if not streamed and kept:
        return TensorSource(join(kept))
    return StreamedSource(name, batches, checksums, samples)


def _walk(name: str, batches: Iterable[Any]) -> Iterator[Batch]:
    for number, batch in enumerate(batches):
        try:
            converted = map_tensors(lambda tensor: tensor.detach(), batch)
            samples_in(converted)
        except (TypeError, ValueError) as error:
            raise ValueError(f"split {name!r}, batch {number}: {error}") from None
        yield converted


def _changed(name: str, how: str) -> str:
    return (
        f"split {name!r} gives other samples when it is walked again ({how}): it shuffles, augments or was exhausted; "
        f"{_ORDERED}"
    )


def _checked(name: str, source: Source) -> Source:
    if len(source) == 0:
        raise ValueError(f"split {name!r} has no samples")
    return source


def _limit(memory_limit: int | None) -> int:
    """Bytes of data that are held in memory: the limit, by default a quarter of the machine's memory."""
    return machine_memory() // 4 if memory_limit is None else memory_limit


def consecutive_parts(samples: int, block: int, start: int = 0) -> list[slice]:
    """Consecutive blocks of samples.

    A last block of one sample is merged with the one before: networks may squeeze a single sample.
    """
    parts = [slice(first, min(first + block, samples)) for first in range(start, samples, block)]
    if block > 1 and len(parts) > 1 and parts[-1].stop - parts[-1].start == 1:
        parts[-2:] = [slice(parts[-2].start, samples)]
    return parts


def collect(source: Source, index: int, block: int = 1024) -> Tensor:
    """One tensor of all samples of a source of tuples, such as the labels."""
    found = [source.part(part)[index] for part in consecutive_parts(len(source), block)]
    return torch.cat(found)
