"""Loss and error of a network at many points of weight space, exact over the data.

A point is a linear combination of a few basis vectors. A plane's grid has the basis (origin, u, v) and coefficients
(1, x, y), a Bezier curve its control points and Bernstein polynomials, a straight line its two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from valleyscope.landscape.cancellation import CancelCheck, raise_if_cancelled
from valleyscope.landscape.convolution.winograd import find_winograd_layers
from valleyscope.landscape.evaluation.accumulators import LossAccumulator, Values
from valleyscope.landscape.evaluation.block_size import block_size
from valleyscope.landscape.evaluation.splits import Data, Split, check_classes, checked_splits
from valleyscope.landscape.evaluation.sweeps import BlockSweep, Points, StatisticsSweep, Sweep
from valleyscope.landscape.geometry.vectors import Weights, as_vector, check_finite
from valleyscope.landscape.network.batchnorm_statistics import (
    PopulationStatistics,
    RunningStatistics,
    batch_norms,
    check_not_compiled,
    check_running_averages,
)
from valleyscope.landscape.network.call_recorder import record_calls
from valleyscope.landscape.network.channels_last import to_channels_last
from valleyscope.landscape.network.copying import copied
from valleyscope.landscape.network.flat_parameters import FlatNetwork
from valleyscope.landscape.network.fx_graph import is_read_by_modules_only, trace_network
from valleyscope.landscape.network.graph_rewrites import rewrite_graph

__all__ = ["BatchNorm", "Evaluator", "Progress", "Value", "Values", "evaluate"]

BatchNorm = Literal["population", "running", "frozen"]
Progress = Callable[[int, int], object]
"""Called with the work done and the total work, in samples times points."""


class Evaluator:
    """Loss and error of a network over fixed data, at any points of its weight space.

    The model is copied and not changed. Dropout is off. ``batch_norm`` selects the statistics of BatchNorm layers:
    ``population``, those of the whole ``statistics_split`` at each point (or of its first ``statistics_samples``);
    ``running``, averages over batches of ``statistics_batch`` samples as in Garipov et al.; ``frozen``, those of the
    model. Population statistics need memory, limited by ``memory_limit`` in bytes (default: half of the machine's).

    Points are combined in the data type of the network; a network in half precision is exact to that precision only.
    A result has the same bits whichever points and splits it is computed with. It depends, by rounding only, on
    ``block``, the number of samples in a forward pass, and on the number of threads.
    """

    @torch.inference_mode(False)
    def __init__(
        self,
        model: nn.Module,
        data: Data,
        *,
        batch_norm: BatchNorm = "population",
        block: int | None = None,
        statistics_split: str = "train",
        statistics_samples: int | None = None,
        statistics_batch: int = 128,
        memory_limit: int | None = None,
    ) -> None:
        if batch_norm not in get_args(BatchNorm):
            raise ValueError(f"batch_norm is {batch_norm!r}; use one of {', '.join(map(repr, get_args(BatchNorm)))}")
        _check_counts(block=block, statistics_samples=statistics_samples, statistics_batch=statistics_batch)
        self._flat = FlatNetwork(model)
        network = self._flat.network.eval()
        has_images = any(isinstance(module, nn.Conv2d) for module in network.modules())
        self.splits = checked_splits(data, self._flat.weights, channels_last=has_images)
        example = self._example()
        channels_last = to_channels_last(self._flat, example)
        if not channels_last:
            self.splits = {name: replace(split, channels_last=False) for name, split in self.splits.items()}
            example = self._example()
        if batch_norm != "frozen":
            check_not_compiled(network, batch_norm)
        record = record_calls(network, example)
        if record.writes_input:
            network = _InputCopier(network)
            record = record_calls(network, example)
        graph = trace_network(network, example) if channels_last else None
        if graph is not None:
            rewrite_graph(graph)
            network = graph
        check_classes({name: split.y for name, split in self.splits.items()}, record.output.shape[1])
        self.block = block or block_size(record, self._flat.weights.nbytes)
        layers = batch_norms(network)
        by_blocks = not layers or batch_norm == "frozen"
        self._layers = find_winograd_layers(network, record, reuse=by_blocks) if channels_last else []
        self._flat.release(layer.weight for layer in self._layers if is_read_by_modules_only(layer.weight, network))
        self._sweep: Sweep
        if by_blocks:
            check_running_averages(layers, batch_norm)
            self._sweep = BlockSweep(network, self.block, record)
            return
        source = self._split(statistics_split, "statistics_split")
        count = min(len(source), statistics_samples or len(source))
        if batch_norm == "running":
            check_running_averages(layers, batch_norm)
            parts = source.parts(statistics_batch, stop=count)
            self._sweep = StatisticsSweep(RunningStatistics(network), source, parts, self.block)
        else:
            population = PopulationStatistics(network, example, record)
            population.check_memory(memory_limit, count)
            self._sweep = StatisticsSweep(population, source, source.parts(self.block, stop=count), self.block)

    @torch.inference_mode()
    def at(
        self,
        basis: Tensor,
        coefficients: ArrayLike,
        *,
        splits: Sequence[str] | None = None,
        samples: bool = False,
        progress: Progress | None = None,
        cancelled: CancelCheck | None = None,
    ) -> dict[str, Values]:
        """Values of every split (or of ``splits``) at the points ``coefficients @ basis``.

        ``basis`` has flat vectors as rows, [k, D], and ``coefficients`` one row per point, [n, k]. ``samples`` keeps
        the losses of all samples. ``progress`` gets the work done and the total; ``cancelled`` is called often.
        """
        table = np.asarray(coefficients, dtype=np.float64)
        basis = self._checked_basis(basis)
        if table.ndim != 2 or table.shape[1] != len(basis):
            raise ValueError(
                f"coefficients have shape {table.shape} for {len(basis)} basis vectors; expected (points, {len(basis)})"
            )
        if not np.isfinite(table).all():
            point = int(np.argmin(np.isfinite(table).all(axis=1)))
            raise ValueError(f"coefficients of point {point} are {table[point].tolist()}; they must be finite")
        named = self.splits if splits is None else splits
        accumulators = [LossAccumulator(self._split(name, "split"), len(table), samples=samples) for name in named]
        points = Points(self._flat, basis, table.tolist(), self._layers)
        reporter = _ProgressReporter(self._sweep.cost(accumulators) * len(table), progress, cancelled)
        try:
            self._sweep.run(points, accumulators, reporter.advance)
        finally:
            for layer in self._layers:
                layer.clear()
        return {accumulator.split.name: accumulator.values() for accumulator in accumulators}

    def _example(self) -> Tensor:
        """Two samples for trial runs."""
        return next(iter(self.splits.values())).samples(slice(0, 2))

    def _split(self, name: str, what: str) -> Split:
        if name not in self.splits:
            raise ValueError(f"{what} is {name!r}; the data has {', '.join(map(repr, self.splits))}")
        return self.splits[name]

    def _checked_basis(self, basis: Tensor) -> Tensor:
        basis = torch.as_tensor(basis).detach()
        size = self._flat.dimension
        if basis.dim() != 2 or basis.shape[1] != size or len(basis) == 0:
            raise ValueError(
                f"basis has shape {tuple(basis.shape)}; expected flat vectors of the network's {size} weights as "
                f"rows, (vectors, {size})"
            )
        for number, vector in enumerate(basis):
            check_finite(vector, f"basis vector {number}")
        return basis


def evaluator_for(model: nn.Module, data: Data | None, evaluator: Evaluator | None, batch_norm: BatchNorm) -> Evaluator:
    """The given evaluator, or a new one for the data."""
    if evaluator is not None:
        return evaluator
    if data is None:
        raise ValueError("data is missing: give (x, y), a mapping of splits to (x, y), or an evaluator")
    return Evaluator(model, data, batch_norm=batch_norm)


@dataclass(frozen=True)
class Value:
    """Mean loss in nats and error rate in [0, 1] at one point; the loss of every sample if requested."""

    loss: float
    error: float
    samples: NDArray[np.float32] | None = None


def evaluate(
    model: nn.Module,
    weights: Weights,
    data: Data,
    *,
    batch_norm: BatchNorm = "population",
    samples: bool = False,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> dict[str, Value]:
    """Loss and error of a network with these weights, a state dict or a flat vector, on every split.

    With ``batch_norm="frozen"`` the BatchNorm statistics are those of the state dict, else of the model.
    """
    point = as_vector(model, weights)
    if isinstance(weights, Mapping):
        model = copied(model)
        for name, buffer in model.named_buffers():
            if name in weights:
                buffer.copy_(weights[name])
    evaluator = Evaluator(model, data, batch_norm=batch_norm)
    found = evaluator.at(point.unsqueeze(0), [[1.0]], samples=samples, progress=progress, cancelled=cancelled)
    return {
        split: Value(
            float(values.loss[0]), float(values.error[0]), None if values.samples is None else values.samples[0]
        )
        for split, values in found.items()
    }


class _InputCopier(nn.Module):
    """Runs a network that writes into its input on copies of it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.network(x.clone())
        return output


class _ProgressReporter:
    """Reports progress and checks for cancellation."""

    def __init__(self, total: int, progress: Progress | None, cancelled: CancelCheck | None) -> None:
        self._total = total
        self._done = 0.0
        self._progress = progress
        self._cancelled = cancelled

    def advance(self, samples: float) -> None:
        raise_if_cancelled(self._cancelled)
        self._done += samples
        if self._progress is not None:
            self._progress(round(self._done), self._total)


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; give a number of samples, 1 or more")
