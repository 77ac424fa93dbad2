"""Small networks and runs that the tests of methods share."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn

from valleyscope.training import load_dataset, partition, train
from valleyscope.training.datasets import Dataset
from valleyscope.training.methods.method import RunContext
from valleyscope.training.models import build_model
from valleyscope.training.outcomes import Trained
from valleyscope.training.settings import Training

RUN = {"epochs": 6, "lr": 0.1, "batch_size": 64, "schedule": {"kind": "halving", "every": 3}}


@cache
def digits() -> Dataset:
    return load_dataset("digits")


def plain(seed: int = 0) -> nn.Module:
    return build_model("cnn", digits(), channels=[8, 12], hidden=30, seed=seed)


def normed(seed: int = 0) -> nn.Module:
    """Every prunable layer is followed by BatchNorm; dropout draws from the global generator."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 10, 3, padding=1, bias=False), nn.BatchNorm2d(10), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(10, 20, 3, padding=1, bias=False), nn.BatchNorm2d(20), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.1), nn.Linear(80, 20, bias=False), nn.BatchNorm1d(20), nn.ReLU(),
            nn.Linear(20, 10),
        )  # fmt: skip


def residual(seed: int = 0) -> nn.Module:
    return build_model("resnet56", digits(), depth=8, width=6, seed=seed)


def context(model: nn.Module, **fields: Any) -> RunContext:
    settings = Training(**RUN | fields)
    return RunContext(model, partition(model, settings.structure, settings.bias), digits(), settings, steps=23)


def run(model: nn.Module, **fields: Any) -> Trained:
    rest = {key: fields.pop(key) for key in ("directory", "save_every", "cancelled") if key in fields}
    return train(model, digits(), Training(**RUN | fields), **rest)
