"""Several points of weight space in one forward pass, for devices that one small network at a time leaves idle.

``torch.func.vmap`` turns a layer at K points into one grouped convolution or one batched product. Batches of points are
always full, the last one with its last point again and again: so shapes repeat, which CUDA graphs need, and a point has
the same bits whichever points it is computed with. The first layer needs no cache here: its weights of all points are
the filters of one convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from valleyscope.landscape.evaluation.accumulators import Accumulator
from valleyscope.landscape.evaluation.sweeps import Points
from valleyscope.landscape.network.batchnorm_statistics import Advance
from valleyscope.landscape.network.copying import copied
from valleyscope.landscape.network.flat_parameters import FlatNetwork

_MOST_SAMPLES = 4096


@dataclass(frozen=True)
class Batching:
    """Points and samples in a forward pass, the memory order of images, and whether it is replayed as a CUDA graph."""

    points: int
    block: int
    channels_last: bool = True
    captured: bool = False


class BatchedNetwork:
    """A network as a function of many flat weight vectors at once; made before its layers are replaced."""

    def __init__(self, flat: FlatNetwork) -> None:
        moving = {id(parameter) for parameter in flat.parameters}
        named = dict(flat.network.named_parameters())
        self._names = [name for name, parameter in named.items() if id(parameter) in moving]
        self._shapes = [parameter.shape for parameter in flat.parameters]
        self._fixed: dict[str, Tensor] = {name: value for name, value in named.items() if name not in set(self._names)}
        self._fixed |= dict(flat.network.named_buffers())
        # Only its structure is used.
        self._structure = copied(flat.network).to("meta")

    def __call__(self, weights: Tensor, x: Tensor) -> Tensor:
        """Outputs (points, samples, ...) for weights (points, D)."""
        parts = torch.split(weights, [shape.numel() for shape in self._shapes], dim=1)
        stacked = {
            name: part.reshape(len(weights), *shape)
            for name, shape, part in zip(self._names, self._shapes, parts, strict=True)
        }
        outputs: Tensor = vmap(self._at_one, in_dims=(0, None))(stacked, x)
        return outputs

    def _at_one(self, parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        output: Tensor = functional_call(self._structure, {**self._fixed, **parameters}, (x,))
        return output


class BatchedSweep:
    """Each block of data at all points before the next block, a batch of points at a time."""

    def __init__(self, network: BatchedNetwork, batching: Batching) -> None:
        self._network = network
        self.batching = batching
        self._graph: CapturedForward | None = None

    def cost(self, accumulators: Sequence[Accumulator]) -> int:
        return sum(len(accumulator.split) for accumulator in accumulators)

    def run(self, points: Points, accumulators: Sequence[Accumulator], advance: Advance) -> None:
        """Add all points to the accumulator of every split."""
        for accumulator in accumulators:
            for part in accumulator.split.parts(self.batching.block):
                x = accumulator.split.samples(part)
                for start in range(0, len(points), self.batching.points):
                    count = min(self.batching.points, len(points) - start)
                    outputs = self.forward(points.several(start, self.batching.points), x)
                    accumulator.add(start, part, outputs[:count])
                    advance(count * len(x))

    def forward(self, weights: Tensor, x: Tensor) -> Tensor:
        """Outputs at several points; captured ones, of full blocks, are overwritten by the next call."""
        if x.dim() == 4:
            order = torch.channels_last if self.batching.channels_last else torch.contiguous_format
            x = x.contiguous(memory_format=order)
        # A graph keeps the memory of its pass, so there is one.
        if not self.batching.captured or len(x) != self.batching.block:
            return self._network(weights, x)
        if self._graph is None:
            self._graph = CapturedForward(self._network, weights, x)
        return self._graph(weights, x)


class CapturedForward:
    """A forward pass recorded as a CUDA graph for inputs of these shapes: replayed without the time of its launches."""

    def __init__(self, network: BatchedNetwork, weights: Tensor, x: Tensor) -> None:
        self._inputs = weights.clone(), x.clone()
        # Libraries choose algorithms and allocate workspaces at first calls, which must not be recorded.
        stream = torch.cuda.Stream(x.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(x.device))
        with torch.cuda.stream(stream):
            for _ in range(3):
                network(*self._inputs)
        torch.cuda.current_stream(x.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._output = network(*self._inputs)

    def __call__(self, *inputs: Tensor) -> Tensor:
        for kept, given in zip(self._inputs, inputs, strict=True):
            kept.copy_(given)
        self._graph.replay()
        return self._output


def fitting_block(points: int, bytes_a_sample: int, free: int, samples: int) -> int:
    """Samples in a block that leave half of the free memory free, a power of two; no more than there are. None fit: 0.

    >>> fitting_block(points=16, bytes_a_sample=100_000, free=8_000_000_000, samples=60_000)
    2048
    """
    most = min(samples, _MOST_SAMPLES, free // (2 * points * bytes_a_sample))
    if most < 1:
        return 0
    return 1 << (most.bit_length() - 1) if most < samples else samples
