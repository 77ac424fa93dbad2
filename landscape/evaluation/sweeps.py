"""The two orders of going through data and points: block by block, or, with BatchNorm statistics, point by point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn

from valleyscope.landscape.convolution.winograd import WinogradConvolution
from valleyscope.landscape.evaluation.accumulators import LossAccumulator
from valleyscope.landscape.evaluation.first_layer_cache import cache_first_layer
from valleyscope.landscape.evaluation.splits import Split
from valleyscope.landscape.geometry.linear_combination import Combination
from valleyscope.landscape.network.batchnorm_statistics import Population, Running
from valleyscope.landscape.network.call_recorder import CallRecord
from valleyscope.landscape.network.flat_parameters import FlatNetwork

Advance = Callable[[float], None]
"""Told of every so many samples done at a point; it may raise to stop the work."""

# The logits of so many points are turned into losses together, which costs less than one by one.
_POINTS_AT_ONCE = 32


class Points:
    """Points of weight space as combinations of basis vectors, at any of which the bound network can be put.

    Some of its layers may hold their weights in a form of their own; they move along.
    """

    def __init__(
        self,
        bound: FlatNetwork,
        basis: Tensor,
        coefficients: Sequence[Sequence[float]],
        layers: Sequence[WinogradConvolution] = (),
    ) -> None:
        self.coefficients = coefficients
        self._bound = bound
        self._basis = basis.to(bound.weights)
        self._weights = Combination([bound.arrange(vector) for vector in basis])
        self._layers = layers
        for layer in layers:
            layer.span(self.parameters(layer.layer))

    def __len__(self) -> int:
        return len(self.coefficients)

    def move(self, point: int) -> None:
        """Put the network at a point."""
        self._weights.at(self.coefficients[point], out=self._bound.weights)
        for layer in self._layers:
            layer.move(self.coefficients[point])

    def parameters(self, layer: nn.Module) -> list[dict[str, Tensor]]:
        """The parameters of a layer in every basis vector."""
        places = {id(parameter): place for place, parameter in enumerate(self._bound.parameters)}
        return [
            {name: parts[places[id(parameter)]] for name, parameter in layer.named_parameters(recurse=False)}
            for parts in map(self._bound.pieces, self._basis)
        ]


class Sweep(Protocol):
    """A way of going through data and points."""

    def run(self, points: Points, tallies: Sequence[LossAccumulator], advance: Advance) -> None:
        """Enter all points into the tally of every split."""

    def cost(self, tallies: Sequence[LossAccumulator]) -> int:
        """Forward passes of single samples at each point."""


class BlockSweep:
    """Each block of data at all points before the next one, so that the points can share maps of the first layer."""

    def __init__(self, network: nn.Module, block: int, trial: CallRecord) -> None:
        self._network = network
        self._first = cache_first_layer(network, trial)
        self._block = block

    def cost(self, tallies: Sequence[LossAccumulator]) -> int:
        return sum(len(tally.split) for tally in tallies)

    def run(self, points: Points, tallies: Sequence[LossAccumulator], advance: Advance) -> None:
        if self._first is not None:
            self._first.span(points.parameters(self._first.layer))
        try:
            for tally in tallies:
                for part in tally.split.parts(self._block):
                    self._visit(points, tally, part, advance)
        finally:
            if self._first is not None:
                self._first.forget()

    def _visit(self, points: Points, tally: LossAccumulator, part: slice, advance: Advance) -> None:
        """One block at all points."""
        x = tally.split.samples(part)
        if self._first is not None:
            self._first.forget()
        for start in range(0, len(points), _POINTS_AT_ONCE):
            logits = []
            for point in range(start, min(start + _POINTS_AT_ONCE, len(points))):
                points.move(point)
                if self._first is not None:
                    self._first.move(points.coefficients[point])
                # A copy: layers may write their next output into the memory of this one.
                logits.append(self._network(x).clone())
                advance(len(x))
            tally.add(start, part, torch.stack(logits))


class StatisticsSweep:
    """Each point at all data: first the BatchNorm statistics there, from some samples of a split, then the values.

    Population statistics come with the logits of the samples they were taken from, which are not computed again.
    """

    def __init__(self, statistics: Population | Running, source: Split, parts: Sequence[slice], block: int) -> None:
        self._statistics = statistics
        self._source = source
        self._parts = parts
        self._block = block

    def cost(self, tallies: Sequence[LossAccumulator]) -> int:
        measured: int = self._parts[-1].stop
        known = measured if isinstance(self._statistics, Population) else 0
        passes = (len(tally.split) - (known if tally.split is self._source else 0) for tally in tallies)
        return measured + sum(passes)

    def run(self, points: Points, tallies: Sequence[LossAccumulator], advance: Advance) -> None:
        blocks = [partial(self._source.samples, part) for part in self._parts]
        for point in range(len(points)):
            points.move(point)
            known = self._statistics.measure(blocks, advance)
            for tally in tallies:
                done = 0
                if tally.split is self._source:
                    for part, logits in zip(self._parts, known, strict=False):
                        tally.add(point, part, logits.unsqueeze(0))
                        done = part.stop
                for part in tally.split.parts(self._block, done):
                    tally.add(point, part, self._statistics(tally.split.samples(part)).unsqueeze(0))
                    advance(part.stop - part.start)
