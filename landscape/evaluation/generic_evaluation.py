"""Losses of any network on any data at many points of weight space: one plain forward pass a block and point.

It serves what the fast evaluation of ``Evaluator`` does not: functions as losses, several inputs, outputs that are not
one tensor. Groups of blocks are the outer loop, so streamed data is walked once for all
points; with BatchNorm statistics each point walks the data on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.landscape.evaluation.accumulators import TermAccumulator, Values
from valleyscope.landscape.evaluation.batches import Batch, bytes_in, samples_in, select, to_network
from valleyscope.landscape.evaluation.block_size import block_size, within_memory
from valleyscope.landscape.evaluation.objectives import Objective, Terms
from valleyscope.landscape.evaluation.sources import Source, TensorSource, consecutive_parts
from valleyscope.landscape.evaluation.sweeps import Points
from valleyscope.landscape.network.batchnorm_statistics import (
    Advance,
    RunningStatistics,
    batch_norms,
    check_running_averages,
)
from valleyscope.landscape.network.call_recorder import first_run, record_any_calls
from valleyscope.landscape.network.flat_parameters import FlatNetwork
from valleyscope.landscape.network.layerwise_statistics import LayerwiseStatistics

_GROUP_BYTES = 16_000_000
"""Bytes of data that all points see before the next ones are read."""


class GenericEvaluation:
    """An objective over sources of data at any points of the weight space of a network."""

    def __init__(
        self,
        flat: FlatNetwork,
        sources: Mapping[str, Source],
        objective: Objective,
        *,
        batch_norm: str,
        block: int | None,
        statistics_source: Callable[[], Source],
        statistics_samples: int | None,
        statistics_batch: int,
    ) -> None:
        if flat.channels_last:
            flat.bind_parameters(channels_last=False)
        self._flat = flat
        self._network = flat.network.eval()
        self._objective = objective
        self.sources = sources
        record = self._trial()
        self.block = block or within_memory(block_size(record, flat.weights.nbytes), record)
        layers = batch_norms(self._network)
        self._statistics: LayerwiseStatistics | RunningStatistics | None = None
        self._statistics_parts: list[slice] = []
        if not layers or batch_norm == "frozen":
            check_running_averages(layers, batch_norm)
            return
        self._source = statistics_source()
        count = min(len(self._source), statistics_samples or len(self._source))
        if batch_norm == "running":
            check_running_averages(layers, batch_norm)
            self._statistics = RunningStatistics(self._network, self._terms, samples_in)
            self._statistics_parts = consecutive_parts(count, statistics_batch)
        else:
            self._statistics = LayerwiseStatistics(self._network, self._terms, samples_in, self._example())
            self._statistics_parts = consecutive_parts(count, self.block)

    @property
    def has_statistics(self) -> bool:
        """Whether BatchNorm statistics are computed at every point."""
        return self._statistics is not None

    def sources_of(self, splits: Sequence[str], chosen: Mapping[str, Tensor]) -> dict[str, Source]:
        """The samples of splits; of those that have ``chosen`` indices, these alone."""
        found = {name: self.sources[name] for name in splits}
        for name in found.keys() & chosen.keys():
            source = found[name]
            assert isinstance(source, TensorSource)
            found[name] = TensorSource(select(source.batch, chosen[name]))
        return found

    def cost(self, sources: Mapping[str, Source]) -> int:
        """Forward passes of single samples at each point."""
        measured = self._statistics_parts[-1].stop if self._statistics_parts else 0
        return int(measured) + sum(map(len, sources.values()))

    def at(
        self,
        basis: Sequence[Tensor],
        table: Sequence[Sequence[float]],
        sources: Mapping[str, Source],
        samples: bool,
        advance: Advance,
    ) -> dict[str, Values]:
        """Values of splits, by name, at the points ``table @ basis``."""
        points = Points(self._flat, basis, table)
        accumulators = {
            name: TermAccumulator(len(source), len(points), self._objective, samples=samples)
            for name, source in sources.items()
        }
        if self._statistics is None:
            for name, accumulator in accumulators.items():
                for blocks in self._groups_of_blocks(sources[name]):
                    for point in range(len(points)):
                        points.set_point(point)
                        for part, batch in blocks:
                            accumulator.add(point, part, self._terms(batch))
                            advance(part.stop - part.start)
                    for _, batch in blocks:
                        accumulator.add_targets(batch)
        else:
            self._point_by_point(points, sources, accumulators, advance)
        return {name: accumulator.values() for name, accumulator in accumulators.items()}

    def _point_by_point(
        self,
        points: Points,
        sources: Mapping[str, Source],
        accumulators: Mapping[str, TermAccumulator],
        advance: Advance,
    ) -> None:
        assert self._statistics is not None
        blocks = [partial(self._load, self._source, part) for part in self._statistics_parts]
        for point in range(len(points)):
            points.set_point(point)
            self._statistics.measure(blocks, advance)
            for name, accumulator in accumulators.items():
                for part in consecutive_parts(len(sources[name]), self.block):
                    batch = self._load(sources[name], part)
                    accumulator.add(point, part, self._statistics(batch))
                    if point == 0:
                        accumulator.add_targets(batch)
                    advance(part.stop - part.start)

    def _groups_of_blocks(self, source: Source) -> Iterator[list[tuple[slice, Batch]]]:
        """Consecutive blocks of samples, so many together that setting the weights takes little of the time."""
        blocks: list[tuple[slice, Batch]] = []
        held = 0
        for part in consecutive_parts(len(source), self.block):
            blocks.append((part, self._load(source, part)))
            held += bytes_in(blocks[-1][1])
            if held >= _GROUP_BYTES:
                yield blocks
                blocks, held = [], 0
        if blocks:
            yield blocks

    def _terms(self, batch: Batch) -> Terms:
        return self._objective(self._network, batch)

    def _load(self, source: Source, part: slice) -> Batch:
        return to_network(source.part(part), self._flat.weights)

    def _example(self) -> Batch:
        source = next(iter(self.sources.values()))
        return self._load(source, slice(0, min(2, len(source))))

    def _trial(self) -> Any:
        """Run the objective twice on two samples and check that it uses the network, in evaluation mode, repeatably."""
        example = self._example()
        with _watched_calls(self._network) as calls, torch.no_grad(), first_run(self._network, example):
            first = record_any_calls(self._network, samples_in(example), partial(self._terms, example))
            second = self._terms(example)
        found = first.result
        name = self._objective.name
        if not calls:
            raise ValueError(
                f"loss {name!r} does not call the model that it is given; use its first argument, not a model from "
                "outside"
            )
        if any(module.training for module in self._network.modules()):
            raise ValueError(
                f"loss {name!r} puts the model into training mode; remove model.train(): losses are measured in "
                "evaluation mode, without dropout"
            )
        if not torch.equal(found.loss, second.loss):
            raise ValueError(
                f"loss {name!r} gives {found.loss.tolist()} and then {second.loss.tolist()} for the same samples and "
                "weights; remove what is random in it, such as dropout, noise or augmentation"
            )
        if not bool(torch.isfinite(found.loss).all()):
            raise ValueError(
                f"loss {name!r} is {found.loss.tolist()} for the first samples at the model's own weights; it must be "
                "finite there: check the data, and logarithms or divisions in the loss"
            )
        return first.record


@contextmanager
def _watched_calls(network: nn.Module) -> Iterator[list[None]]:
    """Counts calls of any module of the network."""
    calls: list[None] = []
    modules = [module for module in network.modules() if not isinstance(module, torch.jit.ScriptModule)]
    hooks = [module.register_forward_hook(lambda *_: calls.append(None)) for module in modules]
    if not hooks:
        calls.append(None)
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
