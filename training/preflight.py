"""Checks before a run starts."""

from __future__ import annotations

import torch
from torch import nn

from valleyscope.training.datasets import Dataset
from valleyscope.training.settings import Training, nothing_left

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def check_run(model: nn.Module, data: Dataset, settings: Training) -> None:
    """Raise a ValueError if model, data and settings do not fit together."""
    if settings.fork is not None and settings.fork.epoch >= settings.epochs:
        raise ValueError(nothing_left(settings))
    samples = len(data.x_train)
    if settings.batch_size > samples:
        raise ValueError(
            f"batch_size={settings.batch_size} is larger than the training set of {data.name}, {samples} samples: "
            f"use {samples} or less"
        )
    norms = any(isinstance(module, _BATCH_NORMS) for module in model.modules())
    if norms and samples % settings.batch_size == 1:
        raise ValueError(
            f"batch_size={settings.batch_size} leaves a last batch of one sample out of {samples}, and BatchNorm "
            "cannot be trained on one sample: use another batch_size"
        )
    if settings.augment and data.x_train.dim() != 4:
        raise ValueError(f"augment=true needs images, but {data.name} has inputs of shape {data.shape}")
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            logits = model(data.x_train[:1])
    except RuntimeError as error:
        raise ValueError(
            f"model {type(model).__name__} does not take the inputs of data set {data.name}, "
            f"shape {data.shape}: {error}"
        ) from error
    finally:
        model.train(training)
    expected = (1, *data.output_shape)
    if tuple(logits.shape) != expected and (data.output_shape or tuple(logits.shape) != (1, 1)):
        what = f"{data.classes} classes" if data.loss == "cross_entropy" else f"targets of shape {data.output_shape}"
        raise ValueError(
            f"model {type(model).__name__} gives an output of shape {tuple(logits.shape)} for one input, but data set "
            f"{data.name} has {what}: its output must have shape {expected}"
        )
