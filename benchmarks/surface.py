"""Times a surface of Valleyscope against three other ways of computing it, in CPU seconds per sample and grid point.

    python benchmarks/surface.py                     # a table of ratios, and the peak memory of a surface on MNIST
    python benchmarks/surface.py --check             # the same, and exit status 1 where a ratio is below its floor
    python benchmarks/surface.py --model cnn --rounds 9

(a) package   the package loss-landscapes from PyPI: one batch through the network at every point; it leaves BatchNorm
              statistics as they are.
(b) script    the way of dnn-mode-connectivity's plane.py: weights set from a flat vector; every image through PIL,
              ToTensor and Normalize in a DataLoader; autograd on; for BatchNorm a pass over the data for statistics first.
(c) loop      the best plain loop an expert writes in ten lines: tensors in memory, inference mode, flat weights.

The four run in turns in one process on one thread, so that whatever else the machine does falls on all alike; a ratio is
the median over rounds. Images are random, of the size of MNIST and CIFAR: the time does not depend on what they show.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import loss_landscapes
import numpy as np
import torch
import torch.nn.functional as F
from loss_landscapes.metrics import Loss
from PIL import Image
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters
from torch.utils.data import DataLoader, Dataset

from landscape import Evaluator, Plane, flatten, surface
from training import build_model
from training.datasets import transforms
from training.models import multiply_adds

BATCH = 128
MEMORY_LIMIT = 1.5e9


@dataclass(frozen=True)
class Case:
    """A network, how much of a surface is computed in a round, and the least ratios over (b) and (c)."""

    model: str
    shape: tuple[int, int, int]
    samples: int
    side: int
    rounds: int
    script_floor: float
    loop_floor: float
    options: dict[str, Any] = field(default_factory=dict)

    def network(self, seed: int) -> nn.Module:
        return build_model(self.model, input_shape=self.shape, classes=10, seed=seed, **self.options).eval()


CASES = (
    Case("cnn", (1, 28, 28), 1024, 5, 5, 10.0, 2.0, {"channels": [10, 20], "hidden": 50, "kernel": 5, "padding": "valid"}),
    Case("lenet", (1, 28, 28), 512, 5, 5, 5.0, 1.8),
    Case("vgg16", (3, 32, 32), 256, 2, 3, 1.5, 1.4),
    Case("resnet56", (3, 32, 32), 512, 1, 5, 2.5, 2.0),
)


class Pictures(Dataset[tuple[Tensor, int]]):
    """Images that go through PIL, ToTensor and Normalize one by one, as torchvision's data sets do."""

    def __init__(self, images: np.ndarray, labels: Tensor) -> None:
        self.images = images
        self.labels = labels.tolist()
        channels = images.shape[1]
        self.transform = transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize((0.5,) * channels, (0.25,) * channels)]
        )
