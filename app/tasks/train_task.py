"""The task that trains a minimum, cuts a trained one, or takes a stranger's checkpoint."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from valleyscope.app.experiments.forks import kept_epochs
from valleyscope.app.experiments.task_results import TrainedMinimum
from valleyscope.app.tasks.context import CancelCheck, Report, TaskContext
from valleyscope.app.tasks.curvature_tasks import training_factors
from valleyscope.app.tasks.torch_device import device_name, torch_device
from valleyscope.landscape.storage.records import LayerRecord, MinimumRecord
from valleyscope.training import train
from valleyscope.training.checkpoints import Checkpoint, check_state, load_checkpoint, read_checkpoint, save_checkpoint
from valleyscope.training.epochs import Epoch, measure
from valleyscope.training.outcomes import Progress
from valleyscope.training.parameter_groups import partition
from valleyscope.training.settings import fork_file


def train_minimum(context: TaskContext, name: str, report: Report, cancelled: CancelCheck) -> TrainedMinimum:
    settings = context.spec.minimum(name)
    path = context.minimum_file(name)
    kept = [context.work / name / fork_file(epoch) for epoch in kept_epochs(context.spec, name)]
    described = {
        "name": name,
        "dataset": context.spec.dataset,
        "fingerprint": context.data.fingerprint,
        "model": context.spec.model.model_dump(),
        "training": settings.model_dump(mode="json", by_alias=True, exclude={"checkpoint"}),
        "device": device_name(),
    }
    if not path.is_file() or not all(file.is_file() for file in kept):
        if settings.checkpoint is not None:
            _adopt(context, name, described)
        else:
            model = context.network(settings.initialisation)
            if settings.of is not None:
                load_checkpoint(context.minimum_file(settings.of), model)
            model = model.to(torch_device())

            def watch(progress: Progress) -> None:
                details: dict[str, Any] = {"epoch": progress.epoch, "epochs": progress.epochs, "loss": progress.loss}
                if progress.record is not None:
                    details["record"] = progress.record.to_json()
                if progress.forecast is not None:
                    details["forecast"] = asdict(progress.forecast) | {"text": str(progress.forecast)}
                report(progress.share, details)

            trained = train(
                model,
                context.data,
                settings,
                directory=context.work / name,
                progress=watch,
                cancelled=cancelled,
                keep=kept_epochs(context.spec, name),
                trunk=None if settings.fork is None else context.work / settings.fork.start,
                direction_factors=partial(training_factors, context, name, report, cancelled),
            )
            metrics: dict[str, Any] = {"epochs": [epoch.to_json() for epoch in trained.epochs]}
            if trained.pruning:
                metrics["pruning"] = trained.pruning
            save_checkpoint(path, model, spec=described, metrics=metrics)
    (context.work / name / "training-state.pt").unlink(missing_ok=True)
    return TrainedMinimum(_minimum_record(name, read_checkpoint(path)), context.data.fingerprint)


def _adopt(context: TaskContext, name: str, described: dict[str, Any]) -> None:
    """Take a stranger's checkpoint as a minimum: checked, measured once, and copied."""
    source = context.checkpoints[name]
    model = context.network().to(torch_device())
    state = read_checkpoint(source).state
    check_state(state, model, source=str(source))
    model.load_state_dict(state)
    record = measure(
        model,
        partition(model),
        context.data.splits,
        epoch=0,
        learning_rate=0.0,
        threshold=0.0,
        seconds=0.0,
        loss=context.spec.loss,
    )
    described = described | {"training": {"checkpoint": str(source.name)}}
    metrics = {"epochs": [record.to_json()]}
    save_checkpoint(context.minimum_file(name), model, spec=described, metrics=metrics)


def _minimum_record(name: str, checkpoint: Checkpoint) -> MinimumRecord:
    epochs = [Epoch.from_json(values) for values in checkpoint.metrics["epochs"]]
    # Losses of numbers have no accuracy.
    undefined = [field for field in ("train_accuracy", "test_accuracy") if math.isnan(getattr(epochs[-1], field))]
    columns = [field for field in asdict(epochs[-1]) if field not in ("layers", *undefined)]
    settings = checkpoint.spec["training"]
    return MinimumRecord(
        name=name,
        optimizer=settings.get("method") or settings.get("optimizer", "checkpoint"),
        settings=settings,
        epochs={column: np.array([getattr(epoch, column) for epoch in epochs], dtype=np.float64) for column in columns},
        layers=[LayerRecord(**asdict(layer)) for layer in epochs[-1].layers],
        final={column: float(getattr(epochs[-1], column)) for column in columns},
        checkpoint=f"{name}.safetensors",
        pruning=checkpoint.metrics.get("pruning", {}),
    )
