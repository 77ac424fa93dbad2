"""The training loop: seeded, resumable bit by bit, with progress and cancellation."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from valleyscope.training.batch_norm import frozen_statistics
from valleyscope.training.batches import Batches, run_seed
from valleyscope.training.checkpoints import save_checkpoint
from valleyscope.training.datasets import Dataset
from valleyscope.training.epochs import Epoch, measure
from valleyscope.training.fork_points import ForkPoint, check_kept, fork_point, save_fork_point
from valleyscope.training.losses import batch_loss
from valleyscope.training.methods.builder import build_method
from valleyscope.training.methods.checks import check_method
from valleyscope.training.methods.cut import cut
from valleyscope.training.methods.method import DirectionFactors, RunContext
from valleyscope.training.methods.record import described_pruning
from valleyscope.training.outcomes import AllZero, Cancelled, Diverged, Progress, Trained
from valleyscope.training.parameter_groups import partition
from valleyscope.training.preflight import check_run
from valleyscope.training.pruning_forecast import forecast
from valleyscope.training.settings import STRENGTHS, Training
from valleyscope.training.state import State, identity, load_state, save_state
from valleyscope.training.zero_groups import ZeroGroups, sparsity

log = logging.getLogger(__name__)


def train(
    model: nn.Module,
    data: Dataset,
    settings: Training | None = None,
    *,
    directory: str | Path | None = None,
    save_every: float = 10.0,
    progress: Callable[[Progress], None] | None = None,
    report_every: float = 0.2,
    cancelled: Callable[[], bool] | None = None,
    keep: Collection[int] = (),
    trunk: str | Path | None = None,
    direction_factors: DirectionFactors | None = None,
    **fields: Any,
) -> Trained:
    """Train a network in place by SGD, AltSDP or another pruning method.

    Settings come as a `Training` or as its fields: `train(model, data, optimizer="altsdp", target=1.6)`,
    or `train(model, data, method="one-shot", of="sgd", sparsity=0.6)` for a network that is trained already. With a
    `directory` the state is saved there every `save_every` seconds and after each epoch, and a killed run resumes from
    there; on the CPU its weights are bit-equal to those of an uninterrupted run. The method `sdp` calls
    `direction_factors` with the model, its groups and the settings, for one factor s_i a group.

    `keep` names epochs after which the whole state is kept in the `directory`, for forks: a run with
    `fork={"from": NAME, "epoch": 5}, trunk=DIRECTORY` goes on where that one was after epoch 5 (see docs/forks.md).
    """
    if settings is not None and fields:
        raise ValueError(f"give settings or single fields ({', '.join(fields)}), not both")
    settings = settings or Training(**fields)
    check_run(model, data, settings)
    check_kept(keep, settings, directory)
    point = fork_point(settings, trunk, model)
    if point is not None:
        model.load_state_dict(point.state.model)
    run = _Run(model, data, settings, None if directory is None else Path(directory), save_every, direction_factors)
    run.point, run.keep = point, frozenset(keep)
    run.report = progress or (lambda _: None)
    run.report_every = report_every
    run.cancelled = cancelled or (lambda: False)
    device = data.x_train.device
    # Dropout draws from torch's global generators, which are restored afterwards.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        run.resume()
        return run.train()


class _Run:
    """One run in progress."""

    point: ForkPoint | None
    keep: frozenset[int]
    report: Callable[[Progress], None]
    report_every: float
    cancelled: Callable[[], bool]

    def __init__(
        self,
        model: nn.Module,
        data: Dataset,
        settings: Training,
        directory: Path | None,
        save_every: float,
        direction_factors: DirectionFactors | None,
    ) -> None:
        self.model = model
        self.settings = settings
        self.directory = directory
        self.save_every = save_every
        self.batches = Batches(model, data, settings)
        self.data = data = self.batches.data
        self.steps = self.batches.steps
        self.groups = partition(model, settings.structure, settings.bias, settings.skip_output, settings.tie_residual)
        self.forecast = forecast(self.groups, settings, self.steps)
        self.context = RunContext(model, self.groups, data, settings, self.steps, direction_factors)
        check_method(self.context)
        self.method = build_method(self.context)
        self.optimizer: Optimizer = self.method.optimizer()
        self.frozen: ZeroGroups | None = None
        self.is_cut = False
        self.identity = identity(model, data, settings)
        self.epoch = 0
        self.step = 0
        self.epochs: list[Epoch] = []
        self.seconds = 0.0
        self.clock = self.saved = self.reported = time.monotonic()

    def resume(self) -> None:
        state = None if self.directory is None else load_state(self.directory, self.identity)
        if state is None:
            self._start()
            return
        self.model.load_state_dict(state.model)
        self.method.load_state_dict(state.method)
        self.is_cut = state.method.get("is_cut", False)
        if self.is_cut:
            self._prepare_retraining()
        self.optimizer.load_state_dict(state.optimizer)
        torch.set_rng_state(state.random)
        self.epoch, self.step = state.epoch, state.step
        self.epochs, self.seconds = list(state.epochs), state.seconds

    def _start(self) -> None:
        """Begin from the initialisation, or where the trunk was."""
        point, first = self.point, self.settings.first_epoch
        torch.manual_seed(run_seed(self.settings.order, first, stream=2))
        if point is None:
            self.method.start()
            return
        self.epoch, self.epochs, self.seconds = first, list(point.state.epochs), point.state.seconds
        if point.settings.order == self.settings.order:
            torch.set_rng_state(point.state.random)
        if point.continues(self.settings):
            self.method.load_state_dict(point.state.method)
            self.optimizer.load_state_dict(point.state.optimizer)
        else:
            point.restore_momentum(self.optimizer, self.model)
            self.method.start_after(first * self.steps)
            self.method.start()

    def train(self) -> Trained:
        if self.forecast is not None:
            log.log(logging.INFO if self.forecast.prunes else logging.WARNING, "%s", self.forecast)
        self.report(self._progress(math.nan, forecast=self.forecast))
        while self.epoch < self.settings.main_epochs:
            self._run_epoch()
        if not self.is_cut:
            self._cut()
        while self.epoch < self.settings.total_epochs:
            self._run_epoch()
        return Trained(self.model, self.settings, tuple(self.epochs), self.forecast, self._pruning())

    def _cut(self) -> None:
        """Let the method cut at the end of its training; the measurements after it replace those of the last epoch."""
        found = cut(self.context, self.method, self.epoch)
        self.is_cut = True
        if found is None:
            if self.settings.retrain is None:
                return
        else:
            self.method.facts["cut"] = found
            rate = self.optimizer.param_groups[0]["lr"]
            self.epochs[-1:] = [self._measure(rate, self.epoch)]
            self._check_groups(self.epochs[-1])
        self._prepare_retraining()
        self._save_snapshot()
        self._save()
        self.report(self._progress(self.epochs[-1].train_loss, record=self.epochs[-1]))

    def _prepare_retraining(self) -> None:
        """From here on SGD; groups that are zero stay so."""
        retrain = self.settings.retrain
        self.frozen = ZeroGroups(self.groups)
        self.optimizer = self.context.sgd(self.settings.lr if retrain is None else retrain.lr)

    def _pruning(self) -> dict[str, Any]:
        """What the method did; empty for SGD."""
        if self.settings.method_name is None:
            return {}
        return described_pruning(self.context, self.method.facts, self.epochs[-1])

    def _learning_rate(self) -> float:
        if self.is_cut:
            assert self.settings.retrain is not None
            return self.settings.retrain.lr
        return self.settings.lr * self.settings.schedule.factor(self.epoch, self.settings.epochs)

    def _run_epoch(self) -> None:
        """Train the rest of the current epoch."""
        learning_rate = self._learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.model.train()
        while self.step < self.steps:
            if self.cancelled():
                self._save()
                raise Cancelled(f"cancelled in epoch {self.epoch + 1}, step {self.step + 1}")
            loss = self._train_batch()
            self._report_and_save(loss, learning_rate)
        self._end_epoch(learning_rate)

    def _train_batch(self) -> float:
        """One step on the next batch; returns its loss before the step."""
        x, y = self.batches.batch(self.epoch, self.step)

        def backward() -> float:
            self.optimizer.zero_grad()
            loss = batch_loss(self.data.loss, self.model(x), y)
            value = loss.item()
            if not math.isfinite(value):
                self._raise_diverged(f"the loss of step {self.step + 1} is {value}")
            loss.backward()  # type: ignore[no-untyped-call]
            return value

        value = backward()
        if self.frozen is None:
            self.method.before_step()
            # SAM takes a second gradient of the same batch; BatchNorm statistics are those of the first.
            self.optimizer.step(*self._closure(backward))
            self.method.after_step(self.epoch * self.steps + self.step + 1)
        else:
            self.frozen.clear([parameter.grad for parameter in self.frozen.parameters])
            self.optimizer.step()
        self.step += 1
        return value

    def _closure(self, backward: Callable[[], float]) -> tuple[Callable[[], float], ...]:
        """What the optimiser's step takes: a second pass over the batch if it asks for one."""
        if not getattr(self.optimizer, "requires_closure", False):
            return ()

        def again() -> float:
            with frozen_statistics(self.model):
                return backward()

        return (again,)

    def _report_and_save(self, loss: float, learning_rate: float) -> None:
        now = time.monotonic()
        if now - self.reported >= self.report_every:
            self.reported = now
            self.report(self._progress(loss, learning_rate))
        # The saved state is what is kept if the method leaves no group: it must not be that network.
        if now - self.saved >= self.save_every and self.step < self.steps and sparsity(self.groups).groups < 1.0:
            self._save()

    def _end_epoch(self, learning_rate: float) -> None:
        """Measure and save the completed epoch."""
        if self.frozen is None:
            self.method.after_epoch(self.epoch + 1)
        record = self._measure(learning_rate, self.epoch + 1) if self.settings.measures(self.epoch + 1) else None
        if record is not None:
            if not math.isfinite(record.train_loss):
                self._raise_diverged(f"the training loss after the epoch is {record.train_loss}")
            self._check_groups(record)
            self.epochs.append(record)
        self.epoch, self.step = self.epoch + 1, 0
        self._save_snapshot()
        self._save()
        self.report(self._progress(math.nan if record is None else record.train_loss, learning_rate, record=record))

    def _measure(self, learning_rate: float, epoch: int) -> Epoch:
        return measure(
            self.model,
            self.groups,
            self.data.splits,
            epoch=epoch,
            learning_rate=learning_rate,
            threshold=max((group.get("threshold", 0.0) for group in self.optimizer.param_groups), default=0.0),
            seconds=self._elapsed(),
            loss=self.data.loss,
        )

    def _save_snapshot(self) -> None:
        if self.directory is not None and self.settings.keeps_snapshot_of(self.epoch):
            save_checkpoint(self.directory / f"snapshot-{self.epoch:06d}.safetensors", self.model)

    def _check_groups(self, record: Epoch) -> None:
        """Refuse a network of which the method left nothing; a run of plain SGD may start from one."""
        if self.settings.method_name is None or record.zero_groups < 1.0:
            return
        raise AllZero(
            f"all {sum(layer.groups for layer in record.layers)} prunable groups are zero after epoch {record.epoch} "
            f"({self.settings.method_name}): lower {self._strength()}, or raise floor.{self._keep_last_good()}"
        )

    def _strength(self) -> str:
        """The field that decides how much is pruned."""
        given = [name for name in (*STRENGTHS, "penalty") if getattr(self.settings, name) is not None]
        return given[0] if given else "c or the strength of the method"

    def _keep_last_good(self) -> str:
        """Save the weights of the last saved state beside it; returns a sentence about them."""
        state = None if self.directory is None else load_state(self.directory, self.identity)
        if self.directory is None or state is None:
            return ""
        path = self.directory / "last-good.safetensors"
        save_checkpoint(path, state.model, spec=self.settings.model_dump(mode="json"))
        return f" The last good weights, from epoch {state.epoch} on, are in {path.name}."

    def _raise_diverged(self, what: str) -> None:
        kept = self._keep_last_good()
        raise Diverged(
            f"training diverged in epoch {self.epoch + 1}: {what} "
            f"({self.settings.method_name or self.settings.optimizer}, lr {self.optimizer.param_groups[0]['lr']:g}). "
            f"Lower lr, or raise batch_size.{kept}"
        )

    def _elapsed(self) -> float:
        now = time.monotonic()
        self.seconds += now - self.clock
        self.clock = now
        return self.seconds

    def _save(self) -> None:
        self.saved = time.monotonic()
        if self.directory is None:
            return
        state = self._state()
        # Before the state from which a killed run resumes: it would not come by this epoch again.
        if self.step == 0 and self.epoch in self.keep and not self.is_cut:
            save_fork_point(self.directory, state, self.settings, self.model, self.optimizer)
        save_state(self.directory, self.identity, state)

    def _state(self) -> State:
        return State(
            epoch=self.epoch,
            step=self.step,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            random=torch.get_rng_state(),
            epochs=tuple(self.epochs),
            seconds=self._elapsed(),
            method=self.method.state_dict() | {"is_cut": self.is_cut},
        )

    def _progress(self, loss: float, learning_rate: float | None = None, **more: Any) -> Progress:
        rate = self.settings.lr if learning_rate is None else learning_rate
        return Progress(self.epoch, self.settings.total_epochs, self.step, self.steps, loss, rate, **more)
