"""Products of the Hessian, or of the generalised Gauss-Newton matrix, with vectors; the matrix is never formed.

The loss is the mean over the samples: cross-entropy, or any loss by name or as a function. Its second derivative is
taken by differentiating the gradient again. At the kink of a ReLU, torch takes the derivative from the left, so the
Hessian is that of the smooth piece on which the point lies: the curvature of the kinks themselves is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope.landscape.cancellation import CancelCheck, raise_if_cancelled
from valleyscope.landscape.curvature._memory import available
from valleyscope.landscape.evaluation.block_size import block_size
from valleyscope.landscape.evaluation.objectives import Loss, objective_of
from valleyscope.landscape.evaluation.splits import Data, check_classes, checked_data, is_pair, open_sources, splits_of
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.network.batchnorm_statistics import batch_norms, check_not_compiled
from valleyscope.landscape.network.call_recorder import CallRecord, record_calls
from valleyscope.landscape.network.channels_last import to_channels_last
from valleyscope.landscape.network.flat_parameters import FlatNetwork

Kind = Literal["hessian", "ggn"]
BatchNorm = Literal["population", "frozen"]

_GRAPH_PER_OUTPUT = 8
"""Bytes of a graph that is differentiated twice, per byte of all layer outputs: measured 5 to 7 on our networks."""


@dataclass(frozen=True)
class _Graph:
    """One block of samples, differentiated once and ready to be differentiated again."""

    apply: Callable[[Sequence[Tensor]], Sequence[Tensor | None]]
    nbytes: int


class CurvatureProducts:
    """The Hessian (``kind="hessian"``) or generalised Gauss-Newton matrix (``"ggn"``) of a network at a point.

    Call it with vectors [n, D] to get the products [n, D] in float64; D are the weights that move (``parameters``).
    Blocks of samples are differentiated in the data type of the network and added up in float64. ``batch_norm`` is that
    of a surface: with ``population`` the statistics of BatchNorm layers are functions of the weights, so all samples
    are in one block; ``frozen`` ones are constant.

    Graphs of blocks stay in memory between products, up to half of ``memory_limit`` bytes (default: a quarter of the
    machine's memory): a product costs about 2.4 times a gradient with them and 3.8 times without
    (`benchmarks/curvature.py`).
    """

    def __init__(
        self,
        model: nn.Module,
        weights: Tensor,
        data: Data,
        *,
        kind: Kind = "hessian",
        batch_norm: BatchNorm = "population",
        split: str = "train",
        samples: int | None = None,
        block: int | None = None,
        loss: Loss = None,
        parameters: Parameters = None,
        memory_limit: int | None = None,
        cancelled: CancelCheck | None = None,
        on_product: Callable[[int], object] | None = None,
    ) -> None:
        _check_choice("kind", kind, get_args(Kind))
        _check_choice("batch_norm", batch_norm, get_args(BatchNorm))
        self.kind = kind
        self._objective = objective_of(loss, False)
        is_classification = self._objective.is_classification
        if kind == "ggn" and self._objective.measure is None:
            raise ValueError("kind='ggn' needs the output of the network: use a loss by name, or kind='hessian'")
        self.count = 0
        self._cancelled = cancelled
        self._on_product = on_product
        self._flat = FlatNetwork(model, parameters)
        self.memory_limit = available(self.device) // 4 if memory_limit is None else memory_limit
        network = self._flat.network.eval()
        has_images = any(isinstance(module, nn.Conv2d) for module in network.modules())
        sources = open_sources(checked_data(data, self._objective), None)
        if not all(is_pair(source) for source in sources.values()):
            raise ValueError("curvature needs pairs (x, y) of tensors, or a source of such pairs, for every split")
        splits = splits_of(sources, self._flat.weights, classes=is_classification, channels_last=has_images)
        if split not in splits:
            raise ValueError(f"split is {split!r}; the data has {', '.join(map(repr, splits))}")
        self._split = splits[split]
        self.samples = _checked_samples(samples, len(self._split))
        channels_last = to_channels_last(self._flat, self._split.samples(slice(0, 2)))
        self._split = replace(self._split, channels_last=channels_last and has_images)
        self._flat.weights.copy_(self._flat.to_buffer(weights))
        record = record_calls(network, self._split.samples(slice(0, 2)))
        if is_classification:
            check_classes({split: self._split.y}, record.output.shape[1])
        layers = batch_norms(network)
        if layers and batch_norm == "population":
            check_not_compiled(network, batch_norm)
            for layer in layers.values():
                # Without running averages a BatchNorm layer uses the statistics of its batch, also in evaluation mode.
                layer.running_mean = layer.running_var = None
            self._check_population_memory(record)
            self._parts = [slice(0, self.samples)]
        else:
            size = block or block_size(record, self._flat.weights.nbytes)
            self._parts = self._split.parts(size, stop=self.samples)
        self._network = network
        self._kept: dict[int, _Graph] = {}
        self._free = self.memory_limit // 2
        self._check_twice_differentiable()

    @property
    def dimension(self) -> int:
        return self._flat.dimension

    @property
    def labels(self) -> Tensor:
        """Those of the samples that count."""
        return self._split.y[: self.samples]

    @property
    def dtype(self) -> torch.dtype:
        return self._flat.weights.dtype

    @property
    def device(self) -> torch.device:
        return self._flat.weights.device

    def __call__(self, vectors: Tensor) -> Tensor:
        """The products with the rows of ``vectors``, in float64."""
        total = torch.zeros(vectors.shape, dtype=torch.float64, device=self.device)
        directions = [self._direction(vector) for vector in vectors]
        with torch.inference_mode(False), torch.enable_grad():
            for number, part in enumerate(self._parts):
                graph = self._kept.get(number) or self._new_graph(number, part)
                for row, direction in zip(total, directions, strict=True):
                    raise_if_cancelled(self._cancelled)
                    self._add(row, graph.apply(direction))
        self.count += len(vectors)
        if self._on_product is not None:
            self._on_product(self.count)
        return total / self._counted

    def gradient(self) -> Tensor:
        """The gradient of the mean loss, in float64."""
        total = torch.zeros(self.dimension, dtype=torch.float64, device=self.device)
        with torch.inference_mode(False), torch.enable_grad():
            for part in self._parts:
                raise_if_cancelled(self._cancelled)
                loss = self._loss(self._scores(part), part)
                self._add(total, torch.autograd.grad(loss, self._flat.parameters, allow_unused=True))
        return total / self._counted

    @cached_property
    def _counted(self) -> float:
        """By what the sum of all losses is divided: the samples, or the positions that count."""
        if self._objective.is_classification or self._objective.measure is None:
            return self.samples
        with torch.inference_mode():
            counts = (self._objective.measure(self._scores(part), self._split.y[part]).count for part in self._parts)
            return max(1.0, float(sum(float(count.sum()) for count in counts)))

    def _loss(self, scores: Tensor, part: slice) -> Tensor:
        """The sum of the losses of these samples."""
        if self._objective.is_classification:
            return F.cross_entropy(scores, self._split.y[part], reduction="sum")
        if self._objective.measure is not None:
            return self._objective.measure(scores, self._split.y[part]).loss.sum()
        return self._objective(self._network, (self._split.samples(part).clone(), self._split.y[part])).loss.sum()

    def _direction(self, vector: Tensor) -> list[Tensor]:
        """A vector as tensors like the parameters, in their memory order, in which convolutions are fastest."""
        parts = self._flat.views_of_flat(vector.to(self._flat.weights))
        if not self._flat.channels_last:
            return parts
        return [part.contiguous(memory_format=torch.channels_last) if part.dim() == 4 else part for part in parts]

    def _scores(self, part: slice) -> Tensor:
        x = self._split.samples(part)
        scores: Tensor = self._network(x.clone())  # a network may write into its input
        return scores

    def _new_graph(self, number: int, part: slice) -> _Graph:
        graph = self._differentiated(part)
        if graph.nbytes <= self._free:
            self._free -= graph.nbytes
            self._kept[number] = graph
        return graph

    def _differentiated(self, part: slice) -> _Graph:
        storages: dict[int, int] = {}

        def remember(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
            scores = self._scores(part)
            if self.kind == "hessian":
                apply = _hessian_of(self._loss(scores, part), self._flat.parameters)
            else:
                apply = _gauss_newton_of(scores, lambda output: self._loss(output, part), self._flat.parameters)
        storages.pop(self._flat.weights.untyped_storage().data_ptr(), None)
        return _Graph(apply, sum(storages.values()))

    def _add(self, total: Tensor, parts: Sequence[Tensor | None]) -> None:
        for view, part in zip(self._flat.views_of_flat(total), parts, strict=True):
            if part is not None:
                view += part

    def _check_population_memory(self, record: CallRecord) -> None:
        outputs = sum(call.nbytes for call in record.calls) // record.samples
        needed = self.samples * outputs * _GRAPH_PER_OUTPUT
        if needed > self.memory_limit:
            fitting = max(2, self.memory_limit // max(1, outputs * _GRAPH_PER_OUTPUT))
            raise ValueError(
                f"batch_norm='population' differentiates through the statistics of all {self.samples:,} samples at "
                f"once, which takes about {needed / 1e9:.1f} GB; the limit is {self.memory_limit / 1e9:.1f} GB: pass "
                f"samples={fitting}, batch_norm='frozen', or a larger memory_limit"
            )

    def _check_twice_differentiable(self) -> None:
        """Apply the operator to two samples, so that a network without second derivatives is named before the work."""
        part = slice(0, min(2, self.samples))
        direction = [torch.ones_like(parameter) for parameter in self._flat.parameters]
        try:
            with torch.inference_mode(False), torch.enable_grad():
                self._differentiated(part).apply(direction)
                loss = self._loss(self._scores(part), part)
                gradients = torch.autograd.grad(loss, self._flat.parameters, create_graph=True, allow_unused=True)
            _check_no_forbidden_node(gradients)
        except RuntimeError as error:
            raise ValueError(
                f"{type(self._network).__name__} cannot be differentiated twice, which kind={self.kind!r} "
                f"needs: {error}"
            ) from error


def _hessian_of(loss: Tensor, parameters: Sequence[Tensor]) -> Any:
    """v -> H v, for the sum of the losses: the gradient of <gradient, v>."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True)
    used = [number for number, gradient in enumerate(gradients) if gradient is not None and gradient.requires_grad]
    outputs = [gradients[number] for number in used]

    def apply(direction: Sequence[Tensor]) -> Sequence[Tensor | None]:
        chosen = [direction[number] for number in used]
        return torch.autograd.grad(outputs, parameters, chosen, retain_graph=True, allow_unused=True)

    return apply


def _gauss_newton_of(scores: Tensor, loss: Callable[[Tensor], Tensor], parameters: Sequence[Tensor]) -> Any:
    """v -> J^T C J v, for the sum of losses; J is the derivative of the scores, C the Hessian of the loss in them."""
    fixed = scores.detach().requires_grad_()
    (slope,) = torch.autograd.grad(loss(fixed), fixed, create_graph=True)
    # J^T u is linear in u, so differentiating <J^T u, v> by u gives J v.
    u = torch.zeros_like(scores, requires_grad=True)
    backward = torch.autograd.grad(scores, parameters, u, create_graph=True, allow_unused=True)
    used = [number for number, part in enumerate(backward) if part is not None and part.requires_grad]
    outputs = [backward[number] for number in used]

    def apply(direction: Sequence[Tensor]) -> Sequence[Tensor | None]:
        chosen = [direction[number] for number in used]
        (change,) = torch.autograd.grad(outputs, [u], chosen, retain_graph=True)
        if not slope.requires_grad:  # the loss is linear in the scores, piece by piece
            return [None] * len(parameters)
        (weighted,) = torch.autograd.grad(slope, fixed, change, retain_graph=True)
        return torch.autograd.grad(scores, parameters, weighted, retain_graph=True, allow_unused=True)

    return apply


def _check_no_forbidden_node(gradients: Sequence[Tensor | None]) -> None:
    """Raise an error if a function in the graph may be differentiated once only; torch would give zeros silently."""
    waiting = [gradient.grad_fn for gradient in gradients if gradient is not None and gradient.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if "Error" in node.name():
            raise RuntimeError("a function in it is marked once_differentiable")
        following = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= following
        waiting.extend(following)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; use one of {', '.join(map(repr, choices))}")


def _checked_samples(samples: int | None, available: int) -> int:
    if samples is None:
        return available
    if not 1 <= samples <= available:
        raise ValueError(f"samples is {samples}; the split has {available:,}: give 1 to {available}")
    return samples
