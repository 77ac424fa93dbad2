"""What an experiment costs, estimated before any of it runs."""

from __future__ import annotations

from valleyscope.app.experiments.spec import Spec

# Multiply-adds of one forward pass of a sample, at default options; a network of the operator's counts as a small one.
_MULTIPLY_ADDS = {
    "cnn": 1.0e5,
    "lenet": 2.3e6,
    "mlp": 2.7e5,
    "vgg16": 3.14e8,
    "vgg16_bn": 3.13e8,
    "resnet56": 1.25e8,
    "wrn28x10": 5.95e9,
}
_UNKNOWN_MODEL = 1.0e8
_SAMPLES = {
    "digits": (1437, 360),
    "mnist": (60_000, 10_000),
    "fashion-mnist": (60_000, 10_000),
    "cifar10": (50_000, 10_000),
    "cifar100": (50_000, 10_000),
}
_UNKNOWN_SAMPLES = (20_000, 5_000)
# A tile should take seconds on one core, and a surface should have more tiles than workers.
_MULTIPLY_ADDS_A_TILE = 1.0e11
_LARGEST_TILE = 41


def split_sizes(dataset: str) -> tuple[int, int]:
    """Samples of the training and the test set; a guess for data of the operator's own."""
    return _SAMPLES.get(dataset, _UNKNOWN_SAMPLES)


def samples(spec: Spec) -> int:
    """How many samples one evaluation of a point looks at."""
    train, test = split_sizes(spec.dataset)
    counts = {"train": train, "test": test}
    return sum(min(counts[split], spec.samples or counts[split]) for split in spec.splits)


def multiply_adds(spec: Spec) -> float:
    """Multiply-adds of one forward pass of one sample, roughly."""
    return _MULTIPLY_ADDS.get(spec.model.name, _UNKNOWN_MODEL)


def tile_points(spec: Spec) -> int:
    """Grid points in a tile, so that it takes seconds: results do not depend on it."""
    cost = multiply_adds(spec) * samples(spec)
    return max(1, min(_LARGEST_TILE, int(_MULTIPLY_ADDS_A_TILE / cost)))
