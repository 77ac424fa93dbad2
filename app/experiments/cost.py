"""Estimate what an experiment costs, before any of it runs.

The estimate counts multiply-adds. With M multiply-adds in one forward pass of a sample:

    training     3 M per sample and epoch (forward and backward; 6 M with sam), plus M per sample to measure both sets
                 after an epoch
    curves       3 M per sample and epoch
    surfaces     M per sample and grid point, on the evaluated splits; plus M per training sample where BatchNorm
                 statistics are recomputed (population)
    profiles     the same per value of t along each curve and line, and per point of the sharpness measurement
    curvature    7 M per training sample and Hessian-vector product; how many a spectrum takes is a guess

A GPU does 3e12 multiply-adds a second and needs at least 1 ms per gradient step; a core does 1.5e10 and needs 1.5 ms.
These are round figures for a current card and a server core: the estimate is good to a factor of two or three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from valleyscope.app.experiments.accumulated_threshold import ThresholdReach, threshold_reach
from valleyscope.app.experiments.curvature_spec import curved_minima, measured_epochs
from valleyscope.app.experiments.model_info import ModelInfo
from valleyscope.app.experiments.spec import Spec
from valleyscope.training.settings import Training, steps_an_epoch

RULE = (
    "Multiply-adds: 3 forward passes a sample and epoch of training or of a curve, one more to measure both sets after "
    "an epoch; one a sample and point of a surface or path (and one a training sample for BatchNorm statistics). "
    "A GPU does 3e12 a second and 1 ms a step at least, a core 1.5e10 and 1.5 ms. Good to a factor of two or three."
)
# Multiply-adds of one forward pass of a sample, with default options.
_MULTIPLY_ADDS = {
    "cnn": 1.0e5,
    "lenet": 2.3e6,
    "mlp": 2.7e5,
    "vgg16": 3.14e8,
    "vgg16_bn": 3.13e8,
    "resnet56": 1.25e8,
    "wrn28x10": 5.95e9,
}
_UNKNOWN_MULTIPLY_ADDS = 1.0e8
_WITH_BATCH_NORM = ("vgg16_bn", "resnet56", "wrn28x10")
_SPLIT_SIZES = {
    "digits": (1437, 360),
    "mnist": (60_000, 10_000),
    "fashion-mnist": (60_000, 10_000),
    "cifar10": (50_000, 10_000),
    "cifar100": (50_000, 10_000),
}
_UNKNOWN_SPLIT_SIZES = (20_000, 5_000)
# A tile should take seconds on one core, and a surface should have more tiles than workers.
_MULTIPLY_ADDS_PER_TILE = 1.0e11
_MAX_TILE_POINTS = 41
_DIVISIBLE = ("surfaces", "profiles", "curvature")
_PRODUCT = 7  # forward passes that a Hessian-vector product takes
_SUBSPACE_PRODUCTS = 500  # to find the flat subspace of a small network
_SUBSPACE_NOTE = (
    "Direction factors need every eigenvalue above curvature.cut, 2.5 products each; how many there are is known after "
    f"training. {_SUBSPACE_PRODUCTS} products are counted: right for a small network trained to a low loss. One that "
    "is not may have thousands of such eigenvalues and take hours: raise the cut."
)
# An estimated surface: some points with all samples, and a few hundred samples at the others. A rule of thumb.
_ESTIMATE_POINTS, _ESTIMATE_SHARE, _ESTIMATE_SAMPLES = 25, 0.25, 1500
_SHARPNESS_POINTS = 21  # the minimum, and ten directions of both signs


@dataclass(frozen=True)
class Device:
    """Multiply-adds per second, and the least seconds per gradient step."""

    multiply_adds: float
    step: float

    def hours(self, work: Work) -> float:
        return (work.multiply_adds / self.multiply_adds + work.steps * self.step) / 3600


GPU = Device(3.0e12, 1.0e-3)
CORE = Device(1.5e10, 1.5e-3)


@dataclass(frozen=True)
class Work:
    """Multiply-adds, and the number of gradient steps among them."""

    multiply_adds: float
    steps: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.multiply_adds + other.multiply_adds, self.steps + other.steps)


@dataclass(frozen=True)
class Estimate:
    """The work of each stage, and the threshold that each AltSDP minimum reaches.

    `pieces` is the same work by the pieces that workers can share: a network or a curve is one, a surface is cut.
    """

    parameters: int | None
    multiply_adds: float
    pieces: dict[str, tuple[Work, ...]]
    minima: dict[str, ThresholdReach]
    lines: int = 0
    """Straight lines: one for every two minima."""
    notes: tuple[str, ...] = ()
    """What the estimate cannot know."""

    @property
    def stages(self) -> dict[str, Work]:
        return {name: sum(pieces, Work(0.0)) for name, pieces in self.pieces.items()}

    def wall_hours(self, devices: Sequence[Device]) -> float | None:
        """Hours on these devices side by side, stage after stage; None without a device."""
        if not devices:
            return None
        return sum(_stage_hours(name, pieces, devices) for name, pieces in self.pieces.items())

    @property
    def work(self) -> Work:
        return sum(self.stages.values(), Work(0.0))

    @property
    def gpu_hours(self) -> float:
        return GPU.hours(self.work)

    @property
    def core_hours(self) -> float:
        return CORE.hours(self.work)


def estimate(spec: Spec, model_info: ModelInfo | None = None) -> Estimate:
    """The cost of a spec; with a model_info, its exact multiply-adds and norms are used."""
    forward = _multiply_adds(spec) if model_info is None else float(model_info.multiply_adds)
    train, test = split_sizes(spec.dataset)
    trained = {name: spec.minimum(name) for name in spec.minima if spec.minima[name].checkpoint is None}
    point = forward * (_evaluated_samples(spec) + _statistics_samples(spec, model_info))
    paths = _paths(spec)
    # Each network of a set once for its loss and once for the mean prediction, and the mean of the weights.
    sets = sum(2 * len(members) + 1 for members in (spec.ensembles or {}).values())
    measured = Work(forward * (train + test))
    pieces = {
        "minima": tuple(
            Work(
                forward * max(1, trained[name].own_epochs) * ((1 + 3 * _passes(trained[name])) * train + test),
                trained[name].own_epochs * _passes(trained[name]) * _steps(train, trained[name].batch_size),
            )
            if name in trained
            else measured
            for name in spec.minima
        ),
        "curves": tuple(
            Work(
                forward * 3 * train * curve.epochs,
                curve.epochs * _steps(train, curve.batch_size or spec.training.batch_size),
            )
            for curve in spec.all_curves.values()
        ),
        "surfaces": (Work(point * _surface_points(spec)),),
        "profiles": (Work(point * (spec.points * paths + _SHARPNESS_POINTS * len(spec.minima) + sets)),),
    }
    if spec.curvature is not None:
        pieces["curvature"] = (
            Work(forward * _PRODUCT * min(train, _curvature_samples(spec, train)) * _products(spec)),
        )
    minima = {
        name: threshold_reach(minimum, _steps(train, minimum.batch_size), model_info)
        for name, minimum in trained.items()
        if minimum.optimizer == "altsdp" and minimum.wish is None  # with it the program chooses c on the way
    }
    size = None if model_info is None else model_info.parameters
    notes = (_SUBSPACE_NOTE,) if spec.curvature is not None and spec.curvature.directions else ()
    return Estimate(size, forward, pieces, minima, len(spec.lines), notes)


def _curvature_samples(spec: Spec, train: int) -> int:
    asked = spec.curvature
    return (None if asked is None else asked.samples) or spec.samples or train


def _products(spec: Spec) -> int:
    """Hessian-vector products of all spectra, snapshots and flat subspaces: about as many as benchmarks count."""
    asked = spec.curvature
    if asked is None:
        return 0
    spectrum = 40 + 4 * (asked.top + asked.lowest) + asked.probes * (20 if asked.density else 1)
    subspace = _SUBSPACE_PRODUCTS if asked.directions else 0
    return sum(
        spectrum + subspace + (30 + asked.probes) * len(measured_epochs(spec, name)) for name in curved_minima(spec)
    )


def _passes(settings: Training) -> int:
    """Gradients in a step."""
    return 2 if settings.optimizer == "sam" else 1


def _paths(spec: Spec) -> int:
    """Curves and lines that are measured; with `align` every line twice."""
    return len(spec.all_curves) + len(spec.lines) * (1 if spec.align == "none" else 2)


def surface_pairs(spec: Spec) -> int:
    """Pairs of a sample and a point in the surfaces and paths of a spec."""
    paths = _paths(spec)
    points = _surface_points(spec) + spec.points * paths + _SHARPNESS_POINTS * len(spec.minima)
    return int(points * _evaluated_samples(spec))


def _surface_points(spec: Spec) -> float:
    """Points of all surfaces; of an estimated one, as many as would be the same work."""
    share = min(1.0, _ESTIMATE_SAMPLES / _evaluated_samples(spec))
    total = 0.0
    for plane in spec.all_planes.values():
        points = plane.resolution**2
        estimated = _ESTIMATE_POINTS + _ESTIMATE_SHARE * points * share
        total += points if plane.accuracy is None else min(points, estimated)
    return total


def _stage_hours(stage: str, pieces: Sequence[Work], devices: Sequence[Device]) -> float:
    """Hours of a stage: its surfaces and paths are shared evenly, of networks and curves the longest goes first."""
    if stage in _DIVISIBLE:
        return sum(1 / sum(1 / device.hours(piece) for device in devices) for piece in pieces if piece.multiply_adds)
    busy = dict.fromkeys(range(len(devices)), 0.0)
    for piece in sorted(pieces, key=CORE.hours, reverse=True):
        free = min(busy, key=lambda index: busy[index] + devices[index].hours(piece))
        busy[free] += devices[free].hours(piece)
    return max(busy.values())


def split_sizes(dataset: str) -> tuple[int, int]:
    """Samples of the training and the test set; a guess for a custom data set."""
    return _SPLIT_SIZES.get(dataset, _UNKNOWN_SPLIT_SIZES)


def tile_points(spec: Spec) -> int:
    """Grid points per tile, so that a tile takes seconds. Results do not depend on it."""
    cost = _multiply_adds(spec) * _evaluated_samples(spec)
    return max(1, min(_MAX_TILE_POINTS, int(_MULTIPLY_ADDS_PER_TILE / cost)))


def _multiply_adds(spec: Spec) -> float:
    return _MULTIPLY_ADDS.get(spec.model.name, _UNKNOWN_MULTIPLY_ADDS)


def _evaluated_samples(spec: Spec) -> int:
    """Samples that one evaluation of a point covers."""
    train, test = split_sizes(spec.dataset)
    counts = {"train": train, "test": test}
    return sum(min(counts[split], spec.samples or counts[split]) for split in spec.splits)


def _statistics_samples(spec: Spec, model_info: ModelInfo | None) -> int:
    """Training samples that a point needs for its BatchNorm statistics."""
    if model_info is None:
        has_batch_norm = spec.model.name in _WITH_BATCH_NORM
    else:
        has_batch_norm = any(name.endswith("running_mean") for name in model_info.tensors)
    if not has_batch_norm or spec.batch_norm != "population":
        return 0
    train, _ = split_sizes(spec.dataset)
    return min(train, spec.samples or train)


def _steps(train: int, batch_size: int) -> int:
    return steps_an_epoch(train, min(batch_size, train))
