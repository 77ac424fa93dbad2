"""Fit a curve of low loss between two minima (Garipov et al. 2018).

The ends are fixed; the bends minimise the mean loss over the curve, E_t E_batch loss(w(t)) with t uniform on [0, 1], by
SGD with one t per batch. They start equally spaced on the straight line.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope.landscape.cancellation import CancelCheck, Cancelled, raise_if_cancelled
from valleyscope.landscape.evaluation.batches import Batch, select, tensors_of, to_network
from valleyscope.landscape.evaluation.objectives import NAMED, Loss, Objective, objective_of
from valleyscope.landscape.evaluation.sources import Source, StreamedSource, TensorSource
from valleyscope.landscape.evaluation.splits import Data, by_split, check_classes, checked_data, is_pair, open_sources
from valleyscope.landscape.fitting.bend_sgd import BendSGD
from valleyscope.landscape.fitting.checkpoint import digest, read_state, write_state
from valleyscope.landscape.geometry.curves import Curve, Line, curve_class
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import Weights, as_vector
from valleyscope.landscape.geometry.weight_files import loaded
from valleyscope.landscape.geometry.wrapped_networks import unwrapped
from valleyscope.landscape.network.buffers import with_buffers
from valleyscope.landscape.network.call_recorder import StructuredOutput, record_calls
from valleyscope.landscape.network.channels_last import to_channels_last
from valleyscope.landscape.network.flat_parameters import FlatNetwork

Augmentation = Callable[[Tensor, torch.Generator], Tensor]
"""Random variation of a batch of inputs, drawn from the generator alone."""

Schedule = Callable[[float], float]
"""Factor on the learning rate as a function of the completed share of the fit, in [0, 1)."""


class Diverged(ArithmeticError):
    """The loss stopped being finite while a curve was fitted."""


@dataclass(frozen=True)
class FittingSettings:
    """The settings of ``fit_curve``, checked."""

    kind: str = "bezier"
    bends: int = 1
    epochs: int = 30
    batch_size: int = 128
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        curve_class(self.kind)
        for name in ("bends", "epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; a fit needs 1 or more")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise ValueError(f"lr is {self.lr}; give a finite learning rate above 0")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum is {self.momentum}; give a number from 0 to below 1")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(f"weight_decay is {self.weight_decay}; give a finite number, 0 or more")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; give a whole number, 0 or more")


class FittingOptions(TypedDict, total=False):
    """The options of ``fit_curve`` that ``compare`` passes on."""

    kind: str
    bends: int
    epochs: int
    batch_size: int
    lr: float
    momentum: float
    weight_decay: float
    schedule: Schedule
    augment: Augmentation | None
    save_every: float
    cancelled: CancelCheck | None


@dataclass(frozen=True)
class FittedEpoch:
    """One epoch of a fit: the mean loss of its batches, each at a random t, which estimates the loss over the curve.

    ``bends`` has the distance of each bend from where it started, on the straight line.
    """

    epoch: int
    loss: float
    learning_rate: float
    bends: tuple[float, ...]


@dataclass(frozen=True)
class FittingProgress:
    """One step of a fit: its position, the loss of its batch at its t, and all epochs that are complete."""

    epoch: int
    epochs: int
    step: int
    steps: int
    t: float
    loss: float
    learning_rate: float
    history: tuple[FittedEpoch, ...] = ()

    @property
    def ends_epoch(self) -> bool:
        return self.step + 1 == self.steps

    @property
    def share(self) -> float:
        """Completed share of the fit, in (0, 1]."""
        return (self.epoch * self.steps + self.step + 1) / (self.epochs * self.steps)


def piecewise_linear(share: float) -> float:
    """One up to half of the fit, then linearly down to 0.01 at nine tenths, and 0.01 from there."""
    return 1.0 - 0.99 * min(max((share - 0.5) / 0.4, 0.0), 1.0)


def fit_curve(
    model: nn.Module,
    start: Weights,
    end: Weights,
    data: Data,
    kind: str = "bezier",
    bends: int = 1,
    epochs: int = 30,
    batch_size: int = 128,
    lr: float = 0.05,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    *,
    loss: Loss = None,
    parameters: Parameters = None,
    memory_limit: int | None = None,
    schedule: Schedule = piecewise_linear,
    seed: int = 0,
    augment: Augmentation | None = None,
    state_path: str | os.PathLike[str] | None = None,
    save_every: float = 10.0,
    progress: Callable[[FittingProgress], object] | None = None,
    report_every: float = 0.2,
    cancelled: CancelCheck | None = None,
) -> Curve:
    """A curve from ``start`` to ``end``, weights in any form, along which the loss on the data is low.

    ``data`` is that of one split, such as (x, y), or maps splits to theirs, of which ``train`` is used. ``loss`` is
    that of ``Evaluator``; by default the network maps x to class scores. It is copied, and the copy runs in training
    mode (BatchNorm uses batch statistics). The ``parameters`` that move are fitted, by default those that require a
    gradient; all else in the state dicts must be equal, except BatchNorm statistics. Data beyond ``memory_limit`` are
    streamed in their order instead of being drawn at random. The penalty of ``weight_decay``
    is (weight_decay / 2) |w(t)|^2. Batches have equal sizes, up to one sample, of at most ``batch_size``. The learning
    rate is ``lr * schedule(completed share)``.

    With ``state_path`` the state is saved there every ``save_every`` seconds, when cancelled and at the end; a killed
    run that is started again gives bit-equal bends on the CPU. All randomness comes from ``seed``; torch's global
    generators are not changed. ``progress`` is called every ``report_every`` seconds and at the end of every epoch;
    ``cancelled`` is called before every step and stops the fit with ``Cancelled``.
    """
    settings = FittingSettings(kind, bends, epochs, batch_size, lr, momentum, weight_decay, seed)
    objective = objective_of(loss)
    source = _training_source(data, objective, memory_limit)
    start, end = (loaded(unwrapped(model), each, name) for each, name in ((start, "start"), (end, "end")))
    model = with_buffers(model, {"start": start, "end": end}, statistics=False, parameters=parameters)
    path = None if state_path is None else Path(state_path)
    # The fit is one sequence of steps, so its state is a position and the tensors that the steps change.
    with _gradients_and_forked_rng(model):
        fit = CurveFit(model, start, end, source, settings, augment, objective, parameters)
        identity = _identity(fit, source, schedule) if path is not None else {}
        position = 0
        if path is not None and (saved := read_state(path, identity)) is not None:
            position = fit.restore(saved)
        saved_at, saved_position = time.monotonic(), position
        reported_at = -math.inf
        while position < fit.total:
            try:
                raise_if_cancelled(cancelled)
            except Cancelled:
                if path is not None and saved_position < position:
                    write_state(path, identity, fit.state(position))
                raise
            done = fit.step(position, lr * schedule(position / fit.total))
            position += 1
            if path is not None and (position == fit.total or time.monotonic() - saved_at >= save_every):
                write_state(path, identity, fit.state(position))
                saved_at, saved_position = time.monotonic(), position
            if progress is not None and (done.ends_epoch or time.monotonic() - reported_at >= report_every):
                reported_at = time.monotonic()
                progress(done)
        return fit.curve()


class CurveFit:
    """The running state of a fit: bends, momentum, network and data."""

    def __init__(
        self,
        model: nn.Module,
        start: Weights,
        end: Weights,
        data: Source | tuple[Tensor, Tensor],
        settings: FittingSettings,
        augment: Augmentation | None = None,
        objective: Objective = NAMED["cross_entropy"],
        parameters: Parameters = None,
    ) -> None:
        self.settings = settings
        self.augment = augment
        self.objective = objective
        self.source = source = TensorSource(data) if isinstance(data, tuple) else data
        self.flat = FlatNetwork(model, parameters)
        self.ends = Line(
            [as_vector(model, start, "start", parameters), as_vector(model, end, "end", parameters)],
        )
        self.samples = len(source)
        self._plain = self._is_plain_classifier()
        if augment is not None and not self._plain:
            raise ValueError("augment needs images or other tensors x with class numbers y in memory; remove it")
        if self._plain:
            assert isinstance(source, TensorSource)
            x, y = source.batch
            self.x, self.y = self.flat.inputs(x), y.to(self.flat.device, torch.int64)
        else:
            self.flat.bind_parameters(channels_last=False)
            self._trial()
        self.steps = -(-self.samples // settings.batch_size)
        self.total = self.steps * settings.epochs
        inner = np.linspace(0.0, 1.0, settings.bends + 2)
        points = torch.stack([self.flat.to_buffer(self.ends.point(t)) for t in inner])
        self.optimizer = BendSGD(self.flat, points, settings.momentum, settings.weight_decay)
        self.path = curve_class(settings.kind)(points)
        self.history: list[FittedEpoch] = []
        self._epoch = -1
        self._loss_sum = 0.0

    def _is_plain_classifier(self) -> bool:
        """Whether the network maps a tensor in memory to class scores; chooses its memory order and checks classes."""
        source = self.source
        if not (self.objective.is_classification and isinstance(source, TensorSource) and is_pair(source)):
            return False
        x, y = source.batch
        if y.dim() != 1:
            return False
        network = self.flat.network.eval()
        to_channels_last(self.flat, self.flat.inputs(x[:2]))
        try:
            record = record_calls(network, self.flat.inputs(x[:2]))
        except StructuredOutput:
            return False
        finally:
            network.train()
        check_classes({"train": y}, record.output.shape[1])
        return True

    def _trial(self) -> None:
        """Run the objective on two samples, in evaluation mode, to check data and loss before the first step."""
        self.flat.network.eval()
        with torch.no_grad():
            self.objective.mean(self.flat.network, self._load(slice(0, min(2, self.samples))))
        self.flat.network.train()

    def _load(self, part: slice | Tensor) -> Batch:
        if isinstance(part, slice):
            return to_network(self.source.part(part), self.flat.weights)
        assert isinstance(self.source, TensorSource)
        return to_network(select(self.source.batch, part.cpu()), self.flat.weights)

    def step(self, position: int, rate: float) -> FittingProgress:
        """One step of SGD on the bends: the loss of one batch at one t, and its gradient."""
        epoch, step = divmod(position, self.steps)
        if epoch != self._epoch:
            self._draw_epoch(epoch)
        noise, t = int(self._noise[step]), float(self._t[step])
        coefficients = self.path.coefficients(t)[0]
        if self._plain:
            x, y = self.x[self._batches[step]], self.y[self._batches[step]]
            if self.augment is not None:
                x = self.augment(x, torch.Generator().manual_seed(noise))
        else:
            batch = self._load(self._batches[step])
        self._seed_layers(noise)
        self.optimizer.set_point(coefficients)
        loss = F.cross_entropy(self._scores(x), y) if self._plain else self.objective.mean(self.flat.network, batch)
        value = loss.item()
        if not math.isfinite(value):
            raise Diverged(
                f"the loss is {value} in epoch {epoch}, step {step} (t = {t:.3f}, learning rate {rate:.3g}): "
                "lower lr, or check that the loss is finite on the straight line"
            )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step(coefficients, self.flat.pop_gradients(), rate)
        self._loss_sum += value
        if step + 1 == self.steps:
            self.history.append(FittedEpoch(epoch + 1, self._loss_sum / self.steps, rate, self._bend_distances()))
            self._loss_sum = 0.0
        return FittingProgress(
            epoch, self.settings.epochs, step, self.steps, t, value, rate, history=tuple(self.history)
        )

    def _bend_distances(self) -> tuple[float, ...]:
        """How far each bend is from where it started."""
        starts = np.linspace(0.0, 1.0, self.settings.bends + 2)[1:-1]
        return tuple(
            float(torch.linalg.vector_norm((bend - self.flat.to_buffer(self.ends.point(t))).double()))
            for bend, t in zip(self.path.bends, starts, strict=True)
        )

    def _scores(self, x: Tensor) -> Tensor:
        """The output of the network in training mode; BatchNorm needs two or more samples."""
        try:
            output: Tensor = self.flat.network(x)
        except ValueError as error:
            if len(x) == 1 and "more than 1 value per channel" in str(error):
                raise ValueError(
                    f"batch_size={self.settings.batch_size} splits {self.samples} samples into batches of one, which "
                    "BatchNorm cannot use; choose a batch_size that gives two or more samples per batch"
                ) from error
            raise
        return output

    def curve(self) -> Curve:
        """The current curve; its ends are bit-equal to the minima."""
        bends = [self.flat.from_buffer(bend) for bend in self.path.bends]
        return curve_class(self.settings.kind)([self.ends.start, *bends, self.ends.end])

    def state(self, position: int) -> dict[str, Any]:
        """The state before the step at this position, for ``restore``."""
        return {
            "position": position,
            "bends": self.path.bends.clone(),
            "velocities": self.optimizer.velocities,
            "factor": self.optimizer.factor,
            "buffers": dict(self.flat.network.named_buffers()),
            "history": [asdict(epoch) for epoch in self.history],
            "loss_sum": self._loss_sum,
        }

    def restore(self, state: dict[str, Any]) -> int:
        """Load a saved state; returns the position of the next step."""
        self.path.bends.copy_(state["bends"])
        self.optimizer.velocities.copy_(state["velocities"])
        self.optimizer.factor = float(state["factor"])
        for name, buffer in self.flat.network.named_buffers():
            buffer.copy_(state["buffers"][name])
        # States of earlier versions have no history: their mean losses start with the next epoch.
        self.history = [FittedEpoch(**epoch | {"bends": tuple(epoch["bends"])}) for epoch in state.get("history", ())]
        self._loss_sum = float(state.get("loss_sum", 0.0))
        return int(state["position"])

    def _draw_epoch(self, epoch: int) -> None:
        """Draw the randomness of one epoch from the seed and its number: sample order, t and noise of each step."""
        generator = np.random.default_rng([self.settings.seed, epoch])
        order = torch.from_numpy(generator.permutation(self.samples)).to(self.flat.device)
        self._batches: Sequence[Tensor | slice] = order.tensor_split(self.steps)
        if isinstance(self.source, StreamedSource):
            ends = [part.numel() for part in self._batches if isinstance(part, Tensor)]
            stops = np.cumsum([0, *ends]).tolist()
            self._batches = [slice(first, stop) for first, stop in pairwise(stops)]
        self._t = generator.random(self.steps)
        self._noise = generator.integers(2**62, size=self.steps)
        self._epoch = epoch

    def _seed_layers(self, noise: int) -> None:
        """Seed the generators of dropout; ``torch.manual_seed`` would take a millisecond."""
        torch.default_generator.manual_seed(noise)
        if self.flat.device.type == "cuda":
            with torch.cuda.device(self.flat.device):
                torch.cuda.manual_seed(noise)


def _identity(fit: CurveFit, source: Source, schedule: Schedule) -> dict[str, Any]:
    """What identifies a fit: settings, ends, data, loss and learning rates."""
    default = fit.objective.name == "cross_entropy"
    return {
        **asdict(fit.settings),
        "augmented": fit.augment is not None,
        "schedule": [float(schedule(share / 20)) for share in range(20)],
        "ends": digest([fit.ends.points]),
        "data": digest(tensors_of(source.batch)) if isinstance(source, TensorSource) else source.fingerprint,
        **({} if default else {"loss": fit.objective.name}),
    }


@contextmanager
def _gradients_and_forked_rng(model: nn.Module) -> Iterator[None]:
    """Enable gradients, and restore torch's generators afterwards."""
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    with torch.random.fork_rng(devices), torch.inference_mode(False), torch.enable_grad():
        yield


def _training_source(data: Data, objective: Objective, memory_limit: int | None) -> Source:
    splits = by_split(data)
    if "train" not in splits:
        raise ValueError(f"data has the splits {', '.join(map(repr, splits)) or 'none'}; a curve is fitted on 'train'")
    return open_sources(checked_data({"train": splits["train"]}, objective), memory_limit)["train"]
