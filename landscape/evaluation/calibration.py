"""Which way of evaluating points is fastest on this device: tried on one block of the data, and recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from valleyscope.landscape.evaluation.accumulators import Accumulator
from valleyscope.landscape.evaluation.batched_points import BatchedNetwork, BatchedSweep, Batching, fitting_block
from valleyscope.landscape.evaluation.splits import Split
from valleyscope.landscape.evaluation.sweeps import Points, Sweep
from valleyscope.landscape.network.memory_limit import machine_memory

_POINTS = (4, 16, 64)
_LIVE_OUTPUTS = 4
"""A forward pass holds about this many outputs of the largest size."""
_LIVE_WEIGHTS = 3
"""The weights of the points, and copies of some of them in the order of a library."""
_LEAST_SECONDS = 0.05
_MOST_RUNS = 20


@dataclass(frozen=True)
class Trial:
    """One way that was tried: microseconds a sample and point, or why it failed. ``None`` is one point at a time."""

    batching: Batching | None
    microseconds: float | None
    problem: str = ""

    def __str__(self) -> str:
        way = "one point at a time" if self.batching is None else f"{self.batching.points} points at a time"
        if self.batching is not None:
            way += f", {self.batching.block} samples, {'channels last' if self.batching.channels_last else 'NCHW'}"
            way += ", CUDA graph" if self.batching.captured else ""
        return f"{way}: " + (self.problem if self.microseconds is None else f"{self.microseconds:.2f} us")


@dataclass(frozen=True)
class Calibration:
    """All ways tried; the fastest is taken."""

    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.microseconds or float("inf"))

    def lines(self) -> list[str]:
        return [f"{'*' if trial is self.best else ' '} {trial}" for trial in self.trials]


def calibrate(
    network: BatchedNetwork,
    plain: Sweep,
    points: Callable[[int], Points],
    accumulator: Callable[[Split, int], Accumulator],
    split: Split,
    *,
    bytes_a_sample: int,
    weight_bytes: int,
    block: int | None,
    plain_block: int,
) -> tuple[Calibration, Sweep]:
    """Time the ways on the first samples of a split; the fastest one, as a sweep.

    ``points(n)`` are n points; ``plain`` is the sweep of one point at a time; ``accumulator`` takes outputs. A way that
    fails, for want of memory or because vmap does not know an operation, is recorded with its error.
    """
    trials: list[Trial] = []
    sweeps: list[Sweep] = []

    def timed(batching: Batching | None, sweep: Sweep, count: int, size: int) -> Trial:
        part = slice(0, min(size, len(split)))
        some = Split(split.name, split.samples(part), split.y[part], split.dtype, split.channels_last)
        sweeps.append(sweep)
        try:
            seconds = min(_times(sweep, points(count), lambda: accumulator(some, count), len(some)))
            trials.append(Trial(batching, 1e6 * seconds))
        except RuntimeError as error:
            trials.append(Trial(batching, None, f"{type(error).__name__}: {str(error).splitlines()[0]}"))
        return trials[-1]

    def attempt(batching: Batching) -> Trial:
        if batching.block < 1:
            sweeps.append(plain)
            trials.append(Trial(batching, None, "too little memory for the weights of so many points"))
            return trials[-1]
        return timed(batching, BatchedSweep(network, batching), batching.points, batching.block)

    def batching(count: int) -> Batching:
        free = free_memory(split.y.device) - _LIVE_WEIGHTS * count * weight_bytes
        samples = fitting_block(count, _LIVE_OUTPUTS * bytes_a_sample, free, len(split))
        return Batching(count, min(samples, block) if block else samples)

    timed(None, plain, _POINTS[0], plain_block)
    orders = [
        attempt(replace(batching(_POINTS[1]), channels_last=order))
        for order in ((True, False) if split.channels_last else (False,))
    ]
    channels_last = orders[0].batching is _fastest(orders).batching and split.channels_last
    found = [attempt(replace(batching(count), channels_last=channels_last)) for count in (_POINTS[0], _POINTS[2])]
    best = _fastest([*orders, *found])
    if split.y.is_cuda and best.batching is not None and best.microseconds is not None:
        attempt(replace(best.batching, captured=True))
    calibration = Calibration(tuple(trials))
    return calibration, sweeps[trials.index(calibration.best)]


def free_memory(device: torch.device) -> int:
    """Bytes that are free on a GPU; of the processor's memory an eighth."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(device)[0])
    return machine_memory() // 8


def _fastest(trials: Sequence[Trial]) -> Trial:
    return Calibration(tuple(trials)).best


def _times(sweep: Sweep, points: Points, accumulator: Callable[[], Accumulator], samples: int) -> Iterator[float]:
    """Seconds a sample and point of repeated runs after a first one, which allocates and chooses algorithms."""
    total = 0.0
    for run in range(1 + _MOST_RUNS):
        sums = accumulator()
        start = time.perf_counter()
        sweep.run(points, [sums], lambda _: None)
        sums.values()  # waits for the device
        seconds = time.perf_counter() - start
        if run:
            yield seconds / len(points) / samples
            total += seconds
        if total > _LEAST_SECONDS:
            return
