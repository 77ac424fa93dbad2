"""Times AltSDP against torch.optim.SGD: a whole training step, and the optimiser's step alone.

    python benchmarks/optimizer.py            # a table of ratios
    python benchmarks/optimizer.py --check    # the same, and exit status 1 where a ratio is above its limit

Both sides run in turns on one thread, in short chunks of CPU seconds, so that whatever else the machine does falls on
both alike; a ratio is the median over many pairs of chunks. A training step is forward, backward and optimiser step on
a batch of 32. The optimiser alone is compared with torch's default SGD with momentum, whether AltSDP has it or not.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Optimizer

from valleyscope.training import AltSDP, build_model, partition

BATCH = 32
SHAPES = {"cnn": (1, 8, 8), "vgg16": (3, 32, 32)}
TRAINING_LIMITS = {"cnn": 1.15, "vgg16": 1.05}
STEP_LIMIT = 1.0
MODES = ("prox", "dual", "cumulative")


@dataclass(frozen=True)
class Case:
    """One row of the table: AltSDP's time is to be at most `limit` times that of SGD; None where there is no claim."""

    what: str
    model: str
    layout: str
    mode: str
    momentum: float
    reference_momentum: float
    limit: float | None

    def sides(self) -> tuple[Callable[[], None], Callable[[], None]]:
        altsdp = self._side(
            lambda model: AltSDP(partition(model), lr=0.01, c=1e-6, mode=self.mode, momentum=self.momentum)  # type: ignore[arg-type]
        )
        sgd = self._side(lambda model: SGD(model.parameters(), lr=0.01, momentum=self.reference_momentum))
        return altsdp, sgd

    def _side(self, optimizer_of: Callable[[nn.Module], Optimizer]) -> Callable[[], None]:
        model = build_model(self.model, input_shape=SHAPES[self.model], classes=10, seed=0)
        x = torch.randn(BATCH, *SHAPES[self.model], generator=torch.Generator().manual_seed(0))
        y = torch.arange(BATCH) % 10
        if self.layout == "channels last":
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            x = x.contiguous(memory_format=torch.channels_last)
        optimizer = optimizer_of(model)

        def descend() -> None:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        descend()
        return descend if self.what == "training step" else optimizer.step  # type: ignore[return-value]


def cases() -> list[Case]:
    rows = [
        Case("training step", model, "channels last", "prox", momentum, momentum, TRAINING_LIMITS[model])
        for model in SHAPES
        for momentum in (0.0, 0.9)
    ]
    rows += [
        Case("optimiser", model, layout, "prox", momentum, 0.9, STEP_LIMIT)
        for model in SHAPES
        for layout in ("channels last", "NCHW")
        for momentum in (0.0, 0.9)
    ]
    rows += [Case("optimiser", model, "channels last", mode, 0.9, 0.9, None) for model in SHAPES for mode in MODES[1:]]
    rows += [Case("optimiser", model, "channels last", "prox", 0.0, 0.0, None) for model in SHAPES]
    return rows


def compare(ours: Callable[[], None], theirs: Callable[[], None], seconds: float) -> tuple[float, float, float]:
    """Median of the ratios of paired chunks, and the median CPU seconds of one call of each side."""
    chunk = 0.02
    calls = max(1, round(chunk / max(_cpu(theirs, 1), 1e-6)))
    calls = max(1, round(calls * chunk / max(_cpu(theirs, calls), 1e-6)))
    _cpu(ours, calls)
    pairs: list[tuple[float, float]] = []
    end = time.process_time() + seconds
    while time.process_time() < end or len(pairs) < 6:
        if len(pairs) % 2:
            first = _cpu(ours, calls)
            pairs.append((first, _cpu(theirs, calls)))
        else:
            second = _cpu(theirs, calls)
            pairs.append((_cpu(ours, calls), second))
    # A pair and its mirror image make one ratio, so that the order within a pair cancels.
    ratios = [(a[0] + b[0]) / (a[1] + b[1]) for a, b in zip(pairs[::2], pairs[1::2], strict=False)]
    return (
        statistics.median(ratios),
        statistics.median(pair[0] for pair in pairs) / calls,
        statistics.median(pair[1] for pair in pairs) / calls,
    )


def _cpu(call: Callable[[], None], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        call()
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description="AltSDP against torch.optim.SGD, CPU seconds")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a ratio is above its limit")
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds for each row (default 4)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, batch {BATCH}")
    numbers = f"{'ours':>10} {'theirs':>10} {'ratio':>6} {'limit':>6}"
    print(f"{'':14} {'model':6} {'layout':14} {'AltSDP':21} {'SGD':13} {numbers}")
    above = 0
    for case in cases():
        # A training step of vgg16 takes about a second, so its row needs longer for a fair number of pairs.
        slow = case.what == "training step" and case.model == "vgg16"
        ratio, ours, theirs = compare(*case.sides(), options.seconds * (8 if slow else 1))
        fits = case.limit is None or ratio <= case.limit
        above += not fits
        rule = f"{case.mode}, momentum {case.momentum:g}"
        print(
            f"{case.what:14} {case.model:6} {case.layout:14} {rule:21} "
            f"{'momentum ' + format(case.reference_momentum, 'g'):13} {1e3 * ours:7.3f} ms {1e3 * theirs:7.3f} ms "
            f"{ratio:6.3f} {'' if case.limit is None else format(case.limit, '6.2f')}{'' if fits else '  above'}",
            flush=True,
        )
    return 1 if options.check and above else 0


if __name__ == "__main__":
    sys.exit(main())
