"""Two orders of evaluation: block by block, or, with BatchNorm statistics, point by point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn

from valleyscope.landscape.convolution.winograd import WinogradConvolution
from valleyscope.landscape.evaluation.accumulators import Accumulator
from valleyscope.landscape.evaluation.first_layer_cache import cache_first_layer
from valleyscope.landscape.evaluation.splits import Split
from valleyscope.landscape.geometry.linear_combination import LinearCombination, combine_parts
from valleyscope.landscape.network.batchnorm_statistics import Advance, PopulationStatistics, RunningStatistics
from valleyscope.landscape.network.call_recorder import CallRecord
from valleyscope.landscape.network.flat_parameters import FlatNetwork
from valleyscope.landscape.network.layerwise_statistics import LayerwiseStatistics

# The logits of this many points become losses together, which is faster than one by one.
_POINTS_AT_ONCE = 32
_MOST_COPIED = 60_000_000
"""Bytes of weights up to which every basis vector is kept in the memory order of the network, too."""


class Points:
    """Points of weight space as combinations of basis vectors; sets the network to any of them.

    ``layers`` hold their weights in another form and are set, too.
    """

    def __init__(
        self,
        flat: FlatNetwork,
        basis: Iterable[Tensor],
        coefficients: Sequence[Sequence[float]],
        layers: Sequence[WinogradConvolution] = (),
    ) -> None:
        self.coefficients = coefficients
        self._flat = flat
        self._basis = [vector.to(flat.weights) for vector in basis]
        self._layers = layers
        self._set_weights: Callable[[Sequence[float]], object] | None = None

    def __len__(self) -> int:
        return len(self.coefficients)

    def set_point(self, point: int) -> None:
        """Set the network to a point."""
        if self._set_weights is None:
            self._set_weights = self._prepared()
        self._set_weights(self.coefficients[point])
        for layer in self._layers:
            layer.set_point(self.coefficients[point])

    def _prepared(self) -> Callable[[Sequence[float]], object]:
        """What sets the weights in the buffer; large networks keep no second copy of the basis."""
        for layer in self._layers:
            layer.set_basis(self.parameters(layer.layer))
        if self._flat.weights.nbytes > _MOST_COPIED:
            vectors = [self._flat.remaining(self._flat.views_of_flat(vector)) for vector in self._basis]
            targets = self._flat.views_of_buffer(self._flat.weights)
            return partial(combine_parts, vectors, targets)
        return partial(
            LinearCombination([self._flat.to_buffer(vector) for vector in self._basis]).at, out=self._flat.weights
        )

    def several(self, first: int, count: int) -> Tensor:
        """The flat vectors of so many points from the first on, (count, D); the last point is repeated."""
        chosen = [self.coefficients[min(first + place, len(self) - 1)] for place in range(count)]
        table = torch.tensor(chosen, dtype=self._basis[0].dtype, device=self._basis[0].device)
        found = table[:, :1] * self._basis[0]
        for column, vector in enumerate(self._basis[1:], 1):
            found.addcmul_(table[:, column : column + 1], vector)
        return found

    def parameters(self, layer: nn.Module) -> list[dict[str, Tensor]]:
        """The parameters of a layer in every basis vector."""
        places = {id(parameter): place for place, parameter in enumerate(self._flat.parameters)}
        return [
            {name: parts[places[id(parameter)]] for name, parameter in layer.named_parameters(recurse=False)}
            for parts in map(self._flat.views_of_flat, self._basis)
        ]


class Sweep(Protocol):
    """An order of evaluation."""

    def run(self, points: Points, accumulators: Sequence[Accumulator], advance: Advance) -> None:
        """Add all points to the accumulator of every split."""

    def cost(self, accumulators: Sequence[Accumulator]) -> int:
        """Forward passes of single samples at each point."""


class BlockSweep:
    """Each block of data at all points before the next block, so points share feature maps of the first layer."""

    def __init__(
        self, network: nn.Module, block: int, record: CallRecord, points_at_once: int = _POINTS_AT_ONCE
    ) -> None:
        self._network = network
        self._first = cache_first_layer(network, record)
        self._block = block
        self._points_at_once = points_at_once

    def cost(self, accumulators: Sequence[Accumulator]) -> int:
        return sum(len(accumulator.split) for accumulator in accumulators)

    def run(self, points: Points, accumulators: Sequence[Accumulator], advance: Advance) -> None:
        if self._first is not None:
            self._first.set_basis(points.parameters(self._first.layer))
        try:
            for accumulator in accumulators:
                for part in accumulator.split.parts(self._block):
                    self._evaluate_block(points, accumulator, part, advance)
        finally:
            if self._first is not None:
                self._first.clear()

    def _evaluate_block(self, points: Points, accumulator: Accumulator, part: slice, advance: Advance) -> None:
        x = accumulator.split.samples(part)
        if self._first is not None:
            self._first.clear()
        for start in range(0, len(points), self._points_at_once):
            logits = []
            for point in range(start, min(start + self._points_at_once, len(points))):
                points.set_point(point)
                if self._first is not None:
                    self._first.set_point(points.coefficients[point])
                # A copy: layers may reuse the memory of their output.
                logits.append(self._network(x).clone())
                advance(len(x))
            accumulator.add(start, part, torch.stack(logits))


class StatisticsSweep:
    """Each point on all data: first the BatchNorm statistics from some samples of a split, then the values.

    Population statistics come with the logits of their samples, which are not computed again.
    """

    def __init__(
        self,
        statistics: PopulationStatistics | LayerwiseStatistics | RunningStatistics,
        source: Split,
        parts: Sequence[slice],
        block: int,
    ) -> None:
        self._statistics = statistics
        self.source = source
        self._parts = parts
        self._block = block

    @property
    def is_population(self) -> bool:
        """Whether the statistics are means over all samples of the split, in any order."""
        return not isinstance(self._statistics, RunningStatistics) and self._parts[-1].stop == len(self.source)

    def with_statistics_of(self, source: Split) -> StatisticsSweep:
        """The same with statistics of other samples."""
        return StatisticsSweep(self._statistics, source, source.parts(self._block), self._block)

    def cost(self, accumulators: Sequence[Accumulator]) -> int:
        measured: int = self._parts[-1].stop
        known = 0 if isinstance(self._statistics, RunningStatistics) else measured
        passes = (
            len(accumulator.split) - (known if accumulator.split is self.source else 0) for accumulator in accumulators
        )
        return measured + sum(passes)

    def run(self, points: Points, accumulators: Sequence[Accumulator], advance: Advance) -> None:
        blocks = [partial(self.source.samples, part) for part in self._parts]
        for point in range(len(points)):
            points.set_point(point)
            known = self._statistics.measure(blocks, advance)
            for accumulator in accumulators:
                done = 0
                if accumulator.split is self.source:
                    for part, logits in zip(self._parts, known, strict=False):
                        accumulator.add(point, part, logits.unsqueeze(0))
                        done = part.stop
                for part in accumulator.split.parts(self._block, done):
                    accumulator.add(point, part, self._statistics(accumulator.split.samples(part)).unsqueeze(0))
                    advance(part.stop - part.start)
