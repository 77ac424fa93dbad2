"""An example of a network's inputs: from data, or random numbers of a shape that its first layer accepts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.landscape.evaluation.batches import select, to_network
from valleyscope.landscape.evaluation.sources import Source
from valleyscope.landscape.evaluation.splits import Data, by_split, open_sources
from valleyscope.landscape.network.copying import copied

_SIDES = (32, 28, 8, 224, 64, 16, 14, 24, 48, 96, 128, 12, 20, 299, 256, 10, 40, 56, 112, 192, 384)
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Embedding)
_TRIED = 3
SAMPLES = 3
"""Samples of an example; few, and no size that layers often have."""


class DataInputs:
    """The inputs of a network in the split ``train`` of data, or in its only split, without targets."""

    def __init__(self, model: nn.Module, data: Data) -> None:
        named = by_split(data)
        if "train" not in named and len(named) != 1:
            raise ValueError(f"data has the splits {', '.join(named) or 'none'}; units are aligned on 'train'")
        name = "train" if "train" in named else next(iter(named))
        self._source: Source = open_sources({name: named[name]}, None)[name]
        self._names = list(inspect.signature(model.forward).parameters)
        self._like = next(model.parameters())

    def __len__(self) -> int:
        return len(self._source)

    def first(self, samples: int) -> list[Any]:
        return self._inputs(select(self._source.part(slice(0, samples)), slice(0, samples)))

    def batches(self, samples: int, size: int) -> Iterator[list[Any]]:
        """The first samples, in batches."""
        end = min(samples, len(self._source))
        for start in range(0, end, size):
            yield self._inputs(self._source.part(slice(start, min(start + size, end))))

    def _inputs(self, batch: Any) -> list[Any]:
        batch = to_network(batch, self._like)
        if isinstance(batch, Mapping):
            return [batch[name] for name in self._names if name in batch]
        return [batch[0]] if isinstance(batch, tuple | list) else [batch]


def random_inputs(model: nn.Module, samples: int = SAMPLES) -> list[Tensor]:
    """Random inputs of the first shape that the network accepts; a ValueError if none is found."""
    like = next(model.parameters())
    first = next((module for module in model.modules() if isinstance(module, _LAYERS)), None)
    generator = torch.Generator().manual_seed(0)
    integers = isinstance(first, nn.Embedding)
    # On the device "meta" nothing is computed, so a shape that does not fit costs no memory; some networks need values.
    for device, shapes in (("meta", list(_shapes(first))), (like.device, list(_shapes(first))[:_TRIED])):
        network = copied(model).eval().to(device)
        for shape in shapes:
            if isinstance(first, nn.Embedding):
                x = torch.randint(first.num_embeddings, (samples, *shape), generator=generator)
            else:
                x = torch.randn(samples, *shape, generator=generator)
            try:
                with torch.no_grad():
                    network(x.to(device, None if integers else like.dtype))
            except Exception:  # another shape may fit, and custom code may raise anything
                continue
            return [x.to(like.device, None if integers else like.dtype)]
    raise ValueError(
        f"{type(model).__name__}: no shape of its inputs is known to fit; give data, or example= with a few inputs"
    )


def _shapes(first: nn.Module | None) -> Iterator[Sequence[int]]:
    if isinstance(first, nn.Linear):
        yield from ((first.in_features,), (8, first.in_features))
    elif isinstance(first, nn.Embedding):
        yield from ((16,), (8,), (64,), (128,))
    elif isinstance(first, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        dims = first.weight.dim() - 2
        sides = dict.fromkeys((*_SIDES, *range(4, 129)))
        yield from ((first.in_channels, *(side,) * dims) for side in sides)


def as_inputs(example: Any) -> list[Any]:
    """An example as a list of the network's arguments."""
    return list(example) if isinstance(example, tuple | list) else [torch.as_tensor(example)]
