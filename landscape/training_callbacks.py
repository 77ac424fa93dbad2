"""Recorders as callbacks of Lightning's Trainer and of the Trainer of transformers; both libraries stay optional."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

from valleyscope.landscape.recorder import Recorder

When = Literal["epoch", "step"]


def lightning_callback(recorder: Recorder, when: When = "epoch") -> Any:
    """A callback for ``lightning.Trainer(callbacks=[...])`` that records after every epoch or step of training.

    Every ``every``-th of them is kept, and the state before the first one. Only the first process writes.
    """
    _check(when)
    callback: Any = _imported(("lightning.pytorch", "pytorch_lightning"), "lightning").Callback

    class LightningRecorder(callback):  # type: ignore[misc]
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
            if trainer.is_global_zero and not recorder.snapshots():
                recorder.record(epoch=0, step=0)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any, **__: Any) -> None:  # noqa: ARG002
            if when == "step" and trainer.is_global_zero:
                recorder.record(epoch=trainer.current_epoch + 1, step=trainer.global_step, **_losses(trainer))

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
            if when == "epoch" and trainer.is_global_zero:
                recorder.record(epoch=trainer.current_epoch + 1, step=trainer.global_step, **_losses(trainer))

    return LightningRecorder()


def transformers_callback(recorder: Recorder, when: When = "epoch") -> Any:
    """A callback for ``transformers.Trainer(callbacks=[...])`` that records after every epoch or step of training.

    Every ``every``-th of them is kept, and the state before the first one. Only the first process writes.
    """
    _check(when)
    callback: Any = _imported(("transformers",), "transformers").TrainerCallback

    class TransformersRecorder(callback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            if state.is_world_process_zero and not recorder.snapshots():
                recorder.record(epoch=0, step=0)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            if when == "step" and state.is_world_process_zero:
                recorder.record(epoch=state.epoch, step=state.global_step)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            if when == "epoch" and state.is_world_process_zero:
                recorder.record(epoch=round(state.epoch), step=state.global_step)

    return TransformersRecorder()


def _losses(trainer: Any) -> dict[str, float]:
    """Metrics that were logged under the names that a landscape knows."""
    known = ("train_loss", "test_loss", "train_accuracy", "test_accuracy")
    return {name: float(value) for name, value in trainer.callback_metrics.items() if name in known}


def _check(when: str) -> None:
    if when not in ("epoch", "step"):
        raise ValueError(f"when is {when!r}; use 'epoch' or 'step'")


def _imported(modules: tuple[str, ...], package: str) -> Any:
    for name in modules:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise ModuleNotFoundError(f"this callback needs {package}: pip install {package}")
