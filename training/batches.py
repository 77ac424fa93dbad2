"""The batches of a training run: which samples come when, how they are augmented, and their order in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from valleyscope.training.augmentation import crop_and_flip
from valleyscope.training.datasets import Dataset
from valleyscope.training.settings import Training, steps_an_epoch


class Batches:
    """The batches of every epoch of a run, each known by its epoch and its step, counted from 0.

    `data` are the samples in the order in memory in which the network is fastest; `steps` is the length of an epoch.
    """

    def __init__(self, model: nn.Module, data: Dataset, settings: Training) -> None:
        if data.x_train.dim() == 4 and _use_channels_last(model, data.x_train[:2]):
            data = replace(
                data,
                x_train=data.x_train.contiguous(memory_format=torch.channels_last),
                x_test=data.x_test.contiguous(memory_format=torch.channels_last),
            )
        self.data = data
        self.steps = steps_an_epoch(len(data.x_train), settings.batch_size)
        self._settings = settings
        self._augment = data.augmented if settings.augment is None else settings.augment
        self._order: tuple[int, Tensor] | None = None

    def batch(self, epoch: int, step: int) -> tuple[Tensor, Tensor]:
        if self._order is None or self._order[0] != epoch:
            order = permutation(len(self.data.x_train), self._settings.order, epoch)
            self._order = epoch, order.to(self.data.x_train.device)
        size = self._settings.batch_size
        chosen = self._order[1][step * size : (step + 1) * size]
        x, y = self.data.x_train[chosen], self.data.y_train[chosen]
        if self._augment:
            generator = torch.Generator(device=x.device)
            generator.manual_seed(run_seed(self._settings.augmentation, epoch * self.steps + step, stream=1))
            x = crop_and_flip(x, generator, self.data.border)
        return x, y


def _use_channels_last(model: nn.Module, x: Tensor) -> bool:
    """Put a network into channels-last order, in which convolution and pooling are fastest; returns whether it works.

    Results are equal up to rounding. A network that calls `view` on images may need contiguous order.
    """
    training = model.training
    model.to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    try:
        with torch.inference_mode():
            model(x.contiguous(memory_format=torch.channels_last))
    except RuntimeError:
        model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        return False
    finally:
        model.train(training)
    return True


def run_seed(seed: int, index: int, *, stream: int) -> int:
    """A seed for one purpose (`stream`) of a run, independent of all others."""
    return int(np.random.SeedSequence((seed, stream, index)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def permutation(samples: int, seed: int, epoch: int) -> Tensor:
    """The order in which an epoch sees the samples."""
    return torch.randperm(samples, generator=torch.Generator().manual_seed(run_seed(seed, epoch, stream=0)))
