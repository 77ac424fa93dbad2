"""Loss and error of a network at many points of weight space, exact over the data.

A point is a linear combination of a few basis vectors. A plane's grid has the basis (origin, u, v) and coefficients
(1, x, y), a Bezier curve its control points and Bernstein polynomials, a straight line its two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from valleyscope.landscape.cancellation import CancelCheck, raise_if_cancelled
from valleyscope.landscape.convolution.winograd import WinogradConvolution, find_winograd_layers
from valleyscope.landscape.evaluation.accumulators import Accumulator, LossAccumulator, OutputAccumulator, Values
from valleyscope.landscape.evaluation.batched_points import BatchedNetwork, BatchedSweep, Batching
from valleyscope.landscape.evaluation.block_size import block_size, within_memory
from valleyscope.landscape.evaluation.calibration import Calibration, calibrate
from valleyscope.landscape.evaluation.generic_evaluation import GenericEvaluation
from valleyscope.landscape.evaluation.mean_prediction import MeanPrediction
from valleyscope.landscape.evaluation.objectives import ErrorRate, Loss, objective_of
from valleyscope.landscape.evaluation.sources import Source, StreamedSource
from valleyscope.landscape.evaluation.splits import (
    Data,
    Split,
    StreamedSplit,
    check_classes,
    checked_data,
    is_pair,
    open_sources,
    splits_of,
)
from valleyscope.landscape.evaluation.sweeps import BlockSweep, Points, StatisticsSweep, Sweep
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import Weights, as_vector, check_finite
from valleyscope.landscape.geometry.weight_files import loaded
from valleyscope.landscape.geometry.wrapped_networks import unwrapped
from valleyscope.landscape.network.batchnorm_statistics import (
    PopulationStatistics,
    RunningStatistics,
    batch_norms,
    check_not_compiled,
    check_running_averages,
)
from valleyscope.landscape.network.buffers import with_buffers
from valleyscope.landscape.network.call_recorder import StructuredOutput, first_run, record_calls
from valleyscope.landscape.network.channels_last import to_channels_last
from valleyscope.landscape.network.flat_parameters import FlatNetwork
from valleyscope.landscape.network.fx_graph import is_read_by_modules_only, trace_network
from valleyscope.landscape.network.graph_rewrites import rewrite_graph
from valleyscope.landscape.network.layerwise_statistics import LayerwiseStatistics
from valleyscope.landscape.network.stored_batchnorm import normalise_in_place

__all__ = ["BatchNorm", "Evaluator", "Progress", "Value", "Values", "evaluate"]

BatchNorm = Literal["population", "running", "frozen"]
Basis = Tensor | Sequence[Tensor]
PointsAtOnce = int | Literal["auto"] | None
Progress = Callable[[int, int], object]
"""Called with the work done and the total work, in samples times points."""

Kind = TypeVar("Kind")
_OUTPUT_BYTES = 64_000_000


class Evaluator:
    """Loss and error of a network over fixed data, at any points of its weight space.

    ``loss`` is a name (``cross_entropy``, ``token_cross_entropy``, ``mse``, ``bce``, ``l1``) or a function
    ``loss(model, batch)`` of one loss a sample; ``error`` a function of one share in [0, 1] a sample, by default that
    of a named entropy. ``parameters`` are patterns of the names of the parameters that move, by default those that
    require a gradient; the others keep their values in the model.

    The model is copied and not changed. Dropout is off. ``batch_norm`` selects the statistics of BatchNorm layers:
    ``population``, those of the whole ``statistics_split`` at each point (or of its first ``statistics_samples``);
    ``running``, averages over batches of ``statistics_batch`` samples as in Garipov et al.; ``frozen``, those of the
    model. ``memory_limit`` in bytes bounds the data that are read into memory (default: a quarter of the machine's) and
    the activations of population statistics (default: half); beyond it data are streamed, and statistics computed layer
    by layer, which takes longer.

    Points are combined in the data type of the network; a network in half precision is exact to that precision only.
    ``points_at_once`` evaluates so many points in one forward pass; ``"auto"`` tries several ways for a fraction of a
    second, as ``calibration`` tells, and takes the fastest. The default is ``"auto"`` on GPUs and 1 on processors.
    Networks with BatchNorm statistics run one point at a time, on all their samples.

    A result has the same bits whichever points and splits it is computed with. It depends, by rounding only, on
    ``block``, the number of samples in a forward pass, on ``points_at_once`` and on the number of threads.
    """

    @torch.inference_mode(False)
    def __init__(
        self,
        model: nn.Module,
        data: Data,
        *,
        loss: Loss = None,
        error: ErrorRate = None,
        parameters: Parameters = None,
        batch_norm: BatchNorm = "population",
        block: int | None = None,
        statistics_split: str = "train",
        statistics_samples: int | None = None,
        statistics_batch: int = 128,
        memory_limit: int | None = None,
        points_at_once: PointsAtOnce = None,
    ) -> None:
        if batch_norm not in get_args(BatchNorm):
            raise ValueError(f"batch_norm is {batch_norm!r}; use one of {', '.join(map(repr, get_args(BatchNorm)))}")
        _check_counts(
            block=block,
            statistics_samples=statistics_samples,
            statistics_batch=statistics_batch,
            points_at_once=None if points_at_once == "auto" else points_at_once,
        )
        self.objective = objective_of(loss, error)
        self.given_loss = loss
        self.parameters = parameters
        self._flat = FlatNetwork(model, parameters)
        self._layers: list[WinogradConvolution] = []
        self._generic: GenericEvaluation | None = None
        self.calibration: Calibration | None = None
        self.splits: Mapping[str, Split] | Mapping[str, Source]
        if points_at_once is None:
            points_at_once = "auto" if self._flat.device.type == "cuda" else 1
        settings = _Settings(
            batch_norm, block, statistics_split, statistics_samples, statistics_batch, memory_limit, points_at_once
        )
        sources = open_sources(checked_data(data, self.objective), memory_limit)
        if self.objective.measure is not None and error is None and all(is_pair(each) for each in sources.values()):
            try:
                self._prepare(sources, settings)
                return
            except StructuredOutput:
                self._flat = FlatNetwork(model, parameters)
        if batch_norm != "frozen":
            check_not_compiled(self._flat.network, batch_norm)
        self.splits = sources
        self._generic = GenericEvaluation(
            self._flat,
            sources,
            self.objective,
            batch_norm=batch_norm,
            block=block,
            statistics_source=lambda: self._known(sources, statistics_split, "statistics_split"),
            statistics_samples=statistics_samples,
            statistics_batch=statistics_batch,
        )
        self.block = self._generic.block

    def _prepare(self, sources: Mapping[str, Source], settings: _Settings) -> None:
        """Prepare the fast evaluation of a network that maps one tensor to another."""
        network = self._flat.network.eval()
        has_images = any(isinstance(module, nn.Conv2d) for module in network.modules())
        classes = self.objective.is_classification and _has_class_numbers(sources)
        self.splits = splits_of(sources, self._flat.weights, classes=classes, channels_last=has_images)
        example = self._example()
        with first_run(network, example):
            channels_last = to_channels_last(self._flat, example)
        if not channels_last:
            self.splits = {name: replace(split, channels_last=False) for name, split in self.splits.items()}
            example = self._example()
        if settings.batch_norm != "frozen":
            check_not_compiled(network, settings.batch_norm)
        record = record_calls(network, example, logits=classes)
        if record.writes_input:
            network = _InputCopier(network)
            record = record_calls(network, example, logits=classes)
        graph = trace_network(network, example) if channels_last else None
        if graph is not None:
            rewrite_graph(graph)
            network = graph
        if classes:
            check_classes({name: split.y for name, split in self.splits.items()}, record.output.shape[1])
        else:
            self._check_measure(record.output)
        self.block = settings.block or block_size(record, self._flat.weights.nbytes)
        if not classes and settings.block is None:
            self.block = within_memory(self.block, record)
        self._classes = classes
        layers = batch_norms(network)
        by_blocks = not layers or settings.batch_norm == "frozen"
        is_batched = by_blocks and settings.points_at_once != 1 and not record.writes_input
        batched = BatchedNetwork(self._flat) if is_batched else None
        # Layers with frozen parameters are not linear combinations of the basis; they run as they are.
        record = replace(record, calls=tuple(call for call in record.calls if self._flat.moves(call.module)))
        self._layers = find_winograd_layers(network, record, reuse=by_blocks) if channels_last else []
        own = [layer.weight for layer in self._layers if not layer.share_weights]
        self._flat.release(weight for weight in own if is_read_by_modules_only(weight, network))
        self._sweep: Sweep
        if by_blocks:
            check_running_averages(layers, settings.batch_norm)
            if graph is not None:
                normalise_in_place(graph)
            points = {} if classes else {"points_at_once": _points_at_once(record.output, self.block)}
            self._sweep = BlockSweep(network, self.block, record, **points)
            if batched is not None:
                self._batch_points(batched, record.largest_output, settings)
            return
        source = self._known(self.splits, settings.statistics_split, "statistics_split")
        count = min(len(source), settings.statistics_samples or len(source))
        if settings.batch_norm == "running":
            check_running_averages(layers, settings.batch_norm)
            parts = source.parts(settings.statistics_batch, stop=count)
            self._sweep = StatisticsSweep(RunningStatistics(network), source, parts, self.block)
            return
        parts = source.parts(self.block, stop=count)
        forwards = {layer: layer.forward for layer in layers.values()}
        population = PopulationStatistics(network, example, record)
        if population.fits(settings.memory_limit, count):
            self._sweep = StatisticsSweep(population, source, parts, self.block)
            return
        for layer, forward in forwards.items():
            layer.forward = forward  # type: ignore[method-assign]
        self._sweep = StatisticsSweep(LayerwiseStatistics(network), source, parts, self.block)

    @torch.inference_mode()
    def _batch_points(self, network: BatchedNetwork, bytes_a_sample: int, settings: _Settings) -> None:
        """Evaluate several points in a forward pass: as many as asked for, or where it is faster."""
        weights = torch.cat([parameter.detach().reshape(-1) for parameter in self._flat.parameters]).unsqueeze(0)
        split = next(split for split in self.splits.values() if isinstance(split, Split))
        if settings.points_at_once != "auto":
            count = settings.points_at_once
            self._sweep = BatchedSweep(network, Batching(count, self.block, channels_last=split.channels_last))
            try:
                self._sweep.forward(weights.expand(count, -1), self._example())
            except RuntimeError as error:
                raise ValueError(
                    f"points_at_once is {count}, but torch.vmap cannot run this network ({error}); use 1"
                ) from error
            return
        self.calibration, self._sweep = calibrate(
            network,
            self._sweep,
            lambda count: Points(self._flat, weights, [(1.0,)] * count, self._layers),
            lambda some, count: self._accumulator_of(some, count, samples=False),
            split,
            block=settings.block,
            bytes_a_sample=bytes_a_sample,
            weight_bytes=weights.nbytes,
            plain_block=self.block,
        )
        for layer in self._layers:
            layer.clear()

    def _check_measure(self, output: Tensor) -> None:
        """Check the objective on the first samples of every split, and that its loss is finite there."""
        assert self.objective.measure is not None
        first = next(iter(self.splits.values()))
        assert isinstance(first, Split)
        found = self.objective.measure(output, first.y[: len(output)]).loss
        if not bool(torch.isfinite(found).all()):
            raise ValueError(
                f"loss {self.objective.name!r} is {found.tolist()} for the first samples at the model's own weights; "
                "it must be finite there: check the data"
            )

    @torch.inference_mode()
    def at(
        self,
        basis: Basis,
        coefficients: ArrayLike,
        *,
        splits: Sequence[str] | None = None,
        samples: bool = False,
        subset: Mapping[str, ArrayLike] | None = None,
        statistics: ArrayLike | None = None,
        progress: Progress | None = None,
        cancelled: CancelCheck | None = None,
    ) -> dict[str, Values]:
        """Values of every split (or of ``splits``) at the points ``coefficients @ basis``.

        ``basis`` has k flat vectors, also as rows of a tensor, [k, D], and ``coefficients`` one row per point, [n, k].
        ``samples`` keeps the losses of all samples. ``subset`` has the indices of the samples that count, by split: the
        others are left out of values and work, but not of BatchNorm statistics. ``statistics`` has the indices of the
        samples of population statistics, instead of all. ``progress`` gets the work done and the total; ``cancelled``
        is called often.
        """
        basis, table = self._checked_points(basis, coefficients)
        named = list(self.splits if splits is None else splits)
        for name in named:
            self._known(self.splits, name, "split")
        chosen = {name: self._indices(name, which) for name, which in (subset or {}).items()}
        if statistics is not None and self.statistics_split is None:
            raise ValueError("statistics: this evaluator has no population statistics of tensors in memory")
        if self._generic is not None:
            sources = self._generic.sources_of(named, chosen)
            reporter = _ProgressReporter(self._generic.cost(sources) * len(table), progress, cancelled)
            return self._generic.at(basis, table.tolist(), sources, samples, reporter.advance)
        accumulators = [self._accumulator(name, len(table), samples, chosen.get(name)) for name in named]
        return self._run(basis, table, accumulators, progress, cancelled, self._sweep_with(statistics))

    def _sweep_with(self, statistics: ArrayLike | None) -> Sweep:
        """The sweep with BatchNorm statistics of these samples; all of them are as good as None."""
        name = self.statistics_split
        if statistics is None or name is None or not isinstance(self._sweep, StatisticsSweep):
            return self._sweep
        split, which = self.splits[name], self._indices(name, statistics)
        assert isinstance(split, Split)
        return self._sweep if len(which) == len(split) else self._sweep.with_statistics_of(split.only(which))

    @torch.inference_mode()
    def mean_prediction(
        self,
        basis: Basis,
        coefficients: ArrayLike,
        *,
        progress: Progress | None = None,
        cancelled: CancelCheck | None = None,
    ) -> dict[str, Values]:
        """Values of every split for the mean of the probabilities that the points predict: one network's worth of them.

        For classifiers, whose loss is the cross-entropy of the mean.
        """
        if not (self.is_classification and self.can_choose_samples):
            raise ValueError(
                f"loss {self.objective.name!r} on these data has no probabilities of classes to average: "
                "a mean prediction needs cross_entropy on tensors of inputs and classes that fit into memory"
            )
        basis, table = self._checked_points(basis, coefficients)
        splits = [split for split in self.splits.values() if isinstance(split, Split)]
        return self._run(basis, table, [MeanPrediction(split, len(table)) for split in splits], progress, cancelled)

    def _run(
        self,
        basis: Sequence[Tensor],
        table: NDArray[np.float64],
        accumulators: Sequence[Accumulator],
        progress: Progress | None,
        cancelled: CancelCheck | None,
        sweep: Sweep | None = None,
    ) -> dict[str, Values]:
        sweep = sweep or self._sweep
        points = Points(self._flat, basis, table.tolist(), self._layers)
        reporter = _ProgressReporter(sweep.cost(accumulators) * len(table), progress, cancelled)
        try:
            sweep.run(points, accumulators, reporter.advance)
        finally:
            for layer in self._layers:
                layer.clear()
        return {accumulator.split.name: accumulator.values() for accumulator in accumulators}

    def _checked_points(self, given: Basis, coefficients: ArrayLike) -> tuple[list[Tensor], NDArray[np.float64]]:
        table = np.asarray(coefficients, dtype=np.float64)
        basis = self._checked_basis(given)
        if table.ndim != 2 or table.shape[1] != len(basis):
            raise ValueError(
                f"coefficients have shape {table.shape} for {len(basis)} basis vectors; expected (points, {len(basis)})"
            )
        if not np.isfinite(table).all():
            point = int(np.argmin(np.isfinite(table).all(axis=1)))
            raise ValueError(f"coefficients of point {point} are {table[point].tolist()}; they must be finite")
        return basis, table

    @property
    def unit(self) -> str:
        """The unit of the loss: nats, or empty for its own."""
        return self.objective.unit

    @property
    def why_exact(self) -> str | None:
        """Why a mean over samples cannot be estimated from some of them; None if it can."""
        if not self.can_choose_samples:
            return "the data are streamed"
        statistics = self._generic.has_statistics if self._generic is not None else not self.runs_by_blocks
        if statistics and self.statistics_split is None:
            return "these BatchNorm statistics need all samples at every point"
        if self.is_classification:
            return None
        if self.objective.has_error or self.objective.error is not None or self.objective.is_classification:
            return f"loss {self.objective.name!r} counts several positions a sample or has an error of its own"
        return None

    @property
    def statistics_split(self) -> str | None:
        """The split of population statistics, where they can be those of some samples."""
        sweep = None if self._generic is not None else self._sweep
        known = isinstance(sweep, StatisticsSweep) and sweep.is_population and self.can_choose_samples
        return sweep.source.name if known and isinstance(sweep, StatisticsSweep) else None

    @property
    def is_classification(self) -> bool:
        """Whether losses are cross-entropies of one class a sample, in the fast evaluation."""
        return self._generic is None and self._classes

    @property
    def runs_by_blocks(self) -> bool:
        """Whether blocks of data pass one after the other: without BatchNorm statistics."""
        return self._generic is None and isinstance(self._sweep, BlockSweep | BatchedSweep)

    @property
    def can_choose_samples(self) -> bool:
        """Whether single samples can be evaluated: all data are in memory."""
        kept = self._generic.sources.values() if self._generic is not None else self.splits.values()
        return not any(isinstance(each, StreamedSource | StreamedSplit) for each in kept)

    def _indices(self, name: str, which: ArrayLike) -> Tensor:
        """The indices of a subset of a split, checked."""
        size = len(self._known(self.splits, name, "split"))
        found = torch.as_tensor(np.array(which, dtype=np.int64))
        if found.dim() != 1 or not len(found) or int(found.min()) < 0 or int(found.max()) >= size:
            raise ValueError(f"subset of {name!r} has indices outside 0 to {size - 1}, or none")
        if not self.can_choose_samples:
            raise ValueError(f"subset of {name!r}: its data are streamed; raise memory_limit to read them into memory")
        return found

    def _accumulator(self, name: str, points: int, samples: bool, chosen: Tensor | None = None) -> Accumulator:
        split = self.splits[name]
        assert isinstance(split, Split)
        return self._accumulator_of(split if chosen is None else split.only(chosen), points, samples=samples)

    def _accumulator_of(self, split: Split, points: int, *, samples: bool) -> Accumulator:
        if self._classes:
            return LossAccumulator(split, points, samples=samples)
        return OutputAccumulator(split, points, self.objective, samples=samples)

    def _example(self) -> Tensor:
        """Two samples for trial runs."""
        split = next(iter(self.splits.values()))
        assert isinstance(split, Split)
        return split.samples(slice(0, min(2, len(split))))

    @staticmethod
    def _known(splits: Mapping[str, Kind], name: str, what: str) -> Kind:
        if name not in splits:
            raise ValueError(f"{what} is {name!r}; the data has {', '.join(map(repr, splits))}")
        return splits[name]

    def _checked_basis(self, given: Basis) -> list[Tensor]:
        basis = [torch.as_tensor(vector).detach() for vector in given]
        size = self._flat.dimension
        if not basis or any(vector.shape != (size,) for vector in basis):
            shapes = {tuple(vector.shape) for vector in basis}
            shape = tuple(given.shape) if isinstance(given, Tensor) else sorted(shapes)
            if len(shapes) == 1 and not isinstance(given, Tensor):
                shape = (len(basis), *shapes.pop())
            raise ValueError(
                f"basis has shape {shape}; expected flat vectors of the network's {size} weights as "
                f"rows, (vectors, {size})"
            )
        for number, vector in enumerate(basis):
            check_finite(vector, f"basis vector {number}")
        return basis


def evaluator_for(
    model: nn.Module, data: Data | None, evaluator: Evaluator | None, batch_norm: BatchNorm, **options: Any
) -> Evaluator:
    """The given evaluator, or a new one for the data with these options of ``Evaluator``."""
    if evaluator is not None:
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} is given beside evaluator, which has its own; give it to Evaluator instead")
        return evaluator
    if data is None:
        raise ValueError("data is missing: give (x, y), a mapping of splits to (x, y), or an evaluator")
    return Evaluator(model, data, batch_norm=batch_norm, **options)


@dataclass(frozen=True)
class Value:
    """Mean loss and error rate in [0, 1] at one point, None where a loss has no error; losses of samples on request."""

    loss: float
    error: float | None
    samples: NDArray[np.float32] | None = None


def evaluate(
    model: nn.Module,
    weights: Weights,
    data: Data,
    *,
    loss: Loss = None,
    error: ErrorRate = None,
    parameters: Parameters = None,
    batch_norm: BatchNorm = "population",
    memory_limit: int | None = None,
    samples: bool = False,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> dict[str, Value]:
    """Loss and error of a network with these weights (a state dict, flat vector, module or path) on every split.

    With ``batch_norm="frozen"`` the BatchNorm statistics are those of the state dict, else of the model.
    """
    given = loaded(unwrapped(model), weights)
    model = with_buffers(model, {"weights": given}, statistics=True, parameters=parameters)
    point = as_vector(model, given, "weights", parameters)
    evaluator = Evaluator(
        model,
        data,
        loss=loss,
        error=error,
        parameters=parameters,
        batch_norm=batch_norm,
        memory_limit=memory_limit,
    )
    found = evaluator.at(point.unsqueeze(0), [[1.0]], samples=samples, progress=progress, cancelled=cancelled)
    return {
        split: Value(
            float(values.loss[0]),
            None if np.isnan(values.error[0]) else float(values.error[0]),
            None if values.samples is None else values.samples[0],
        )
        for split, values in found.items()
    }


@dataclass(frozen=True)
class _Settings:
    """The options of an evaluator, checked."""

    batch_norm: str
    block: int | None
    statistics_split: str
    statistics_samples: int | None
    statistics_batch: int
    memory_limit: int | None
    points_at_once: int | Literal["auto"]


def _has_class_numbers(sources: Mapping[str, Source]) -> bool:
    """Whether targets are one number a sample, as for plain classification."""
    return all(source.part(slice(0, 1))[1].dim() == 1 for source in sources.values())


def _points_at_once(output: Tensor, block: int) -> int:
    """Points whose outputs are held together: fewer for large outputs."""
    return max(1, min(32, _OUTPUT_BYTES // max(1, output.nbytes // len(output) * block)))


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
