"""What an experiment will cost, and what its thresholds will reach, said before any of it runs.

The rule counts multiply-adds. With M of them in one forward pass of a sample:

    training     3 M a sample and epoch (forward and backward), and M a sample to measure both sets after each epoch
    curves       3 M a sample and epoch
    surfaces     M a sample and grid point, on the splits evaluated; with BatchNorm statistics of the population, M more
                 for each training sample
    profiles     the same for each value of t along every curve and line, and for the points that sharpness looks at

A GPU does 3e12 of them a second and needs 1 ms a gradient step at least; a core 1.5e10 and 1.5 ms. These are round
figures of a present-day card and of a server's core: an estimate is good to a factor of two or three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from valleyscope.app.experiments.cost import multiply_adds, samples, split_sizes
from valleyscope.app.experiments.model_info import ModelInfo
from valleyscope.app.experiments.spec import Spec
from valleyscope.training.settings import Training, steps_an_epoch

RULE = (
    "Multiply-adds: 3 forward passes a sample and epoch of training or of a curve, one more to measure both sets after "
    "an epoch; one a sample and point of a surface or path (and one a training sample for BatchNorm statistics). "
    "A GPU does 3e12 a second and 1 ms a step at least, a core 1.5e10 and 1.5 ms. Good to a factor of two or three."
)
_SHARPNESS_POINTS = 21  # the minimum, and ten directions of both signs
_EXACT = 64  # terms of a power sum that are added one by one


@dataclass(frozen=True)
class Device:
    """What a processor does in a second, and the least time that a gradient step takes on it."""

    multiply_adds: float
    step: float

    def hours(self, work: Work) -> float:
        return (work.multiply_adds / self.multiply_adds + work.steps * self.step) / 3600


GPU = Device(3.0e12, 1.0e-3)
CORE = Device(1.5e10, 1.5e-3)


@dataclass(frozen=True)
class Work:
    """Multiply-adds, and the gradient steps in which some of them come."""

    multiply_adds: float
    steps: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.multiply_adds + other.multiply_adds, self.steps + other.steps)


@dataclass(frozen=True)
class Reach:
    """G that a minimum's c and schedule reach, beside the initial norms of its groups where they are known."""

    c: float
    reach: float
    smallest: float | None = None
    median: float | None = None

    @property
    def prunes(self) -> bool | None:
        """Whether G exceeds the smallest norm, without which nothing becomes zero."""
        return None if self.smallest is None else self.reach >= self.smallest


@dataclass(frozen=True)
class Estimate:
    """The cost of each stage and of all, and the reach of each AltSDP minimum."""

    parameters: int | None
    multiply_adds: float
    stages: dict[str, Work]
    minima: dict[str, Reach]

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
    """The cost of a spec by the rule above; with a model_info the network's own multiply-adds and norms are used."""
    forward = multiply_adds(spec) if model_info is None else float(model_info.multiply_adds)
    train, test = split_sizes(spec.dataset)
    trained = {name: spec.minimum(name) for name in spec.minima if spec.minima[name].checkpoint is None}
    point = forward * (samples(spec) + _statistics(spec, model_info))
    paths = len(spec.all_curves) + len(spec.lines)
    stages = {
        "minima": sum(
            (
                Work(forward * minimum.epochs * (4 * train + test), minimum.epochs * _steps(train, minimum.batch_size))
                for minimum in trained.values()
            ),
            Work(forward * (train + test) * (len(spec.minima) - len(trained))),
        ),
        "curves": sum(
            (
                Work(
                    forward * 3 * train * curve.epochs,
                    curve.epochs * _steps(train, curve.batch_size or spec.training.batch_size),
                )
                for curve in spec.all_curves.values()
            ),
            Work(0.0),
        ),
        "surfaces": Work(point * sum(plane.resolution**2 for plane in spec.all_planes.values())),
        "profiles": Work(point * (spec.points * paths + _SHARPNESS_POINTS * len(spec.minima))),
    }
    minima = {
        name: _reach(minimum, _steps(train, minimum.batch_size), model_info)
        for name, minimum in trained.items()
        if minimum.optimizer == "altsdp"
    }
    return Estimate(None if model_info is None else model_info.parameters, forward, stages, minima)


def accumulated(settings: Training, steps: int, c: float) -> float:
    """G as ``Training.reach`` gives it, in the time and memory of the epochs instead of the steps.

    Within an epoch the rate γ is constant, so G = c Σ_e γ_e^(μ+1/2) (S(n_e) - S(n_(e-1))) with S(n) = Σ_(k<=n) k^μ,
    or S(n) = n^μ in the `dual` mode.
    """
    try:
        return c * _unit_sum(settings, steps)
    except OverflowError:
        return math.inf


def _unit_sum(settings: Training, steps: int) -> float:
    total = before = 0.0
    for epoch in range(settings.epochs):
        rate = settings.lr * settings.schedule.factor(epoch, settings.epochs) / (1.0 - settings.momentum)
        n = (epoch + 1) * steps
        after = float(n) ** settings.mu if settings.mode == "dual" else _power_sum(n, settings.mu)
        total += rate ** (settings.mu + 0.5) * (after - before)
        before = after
    return total


def _power_sum(n: int, mu: float) -> float:
    """Σ_(k=1..n) k^μ: the first terms one by one, the rest by Euler and Maclaurin."""
    first = min(n, _EXACT)
    total = math.fsum(k**mu for k in range(1, first + 1))
    if n == first:
        return total

    def tail(x: float) -> float:
        third = mu * (mu - 1) * (mu - 2) * x ** (mu - 3) / 720
        return float(x ** (mu + 1) / (mu + 1) + x**mu / 2 + mu * x ** (mu - 1) / 12 - third)

    return total + tail(float(n)) - tail(float(first))


def _reach(minimum: Training, steps: int, model_info: ModelInfo | None) -> Reach:
    unit = accumulated(minimum, steps, 1.0)
    if minimum.target is not None:
        c = minimum.target / unit if unit else 0.0
    else:
        c = 1e-6 if minimum.c is None else minimum.c
    reach = c * unit if minimum.target is None else minimum.target
    norms = None if model_info is None else model_info.norms.get((minimum.structure, minimum.bias))
    return Reach(c, reach) if norms is None else Reach(c, reach, norms.smallest, norms.median)


def _statistics(spec: Spec, model_info: ModelInfo | None) -> int:
    """Training samples that one point needs for BatchNorm statistics of the population."""
    if model_info is None:
        normalised = spec.model.name in ("vgg16_bn", "resnet56", "wrn28x10")
    else:
        normalised = any(name.endswith("running_mean") for name in model_info.tensors)
    if not normalised or spec.batch_norm != "population":
        return 0
    train, _ = split_sizes(spec.dataset)
    return min(train, spec.samples or train)


def _steps(train: int, batch_size: int) -> int:
    return steps_an_epoch(train, min(batch_size, train))
