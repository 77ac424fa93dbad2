"""Times a step of curve fitting against a plain step of torch.optim.SGD with momentum on the same network.

    python benchmarks/curve.py                    # a table of ratios
    python benchmarks/curve.py --check            # the same, and exit status 1 where a ratio is above its limit
    python benchmarks/curve.py --models cnn lenet # some of the networks

Both take the same batches in channels-last order and read the loss; a curve step also moves the network to w(t). They
run in turns on one thread, in CPU seconds, so that whatever else the machine does falls on both alike; a ratio is the
median over many pairs.
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
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from valleyscope.landscape.fitting.fit_curve import CurveFit, FittingSettings
from valleyscope.landscape.geometry.vectors import flatten
from valleyscope.training.models import build_model

Step = Callable[[int], float]
BATCHES_OF_DATA = 4


@dataclass(frozen=True)
class Case:
    """A network, its input, and how much longer than SGD's a curve step may take."""

    title: str
    model: str
    options: dict[str, object]
    shape: tuple[int, int, int]
    limit: float


CASES = (
    Case("cnn 16-32-128, 8x8", "cnn", {}, (1, 8, 8), 1.1),
    Case("cnn 10-20-50, 28x28", "cnn", {"channels": [10, 20], "hidden": 50}, (1, 28, 28), 1.1),
    Case("lenet 20-50-500, 28x28", "lenet", {}, (1, 28, 28), 1.1),
    Case("vgg16, 32x32", "vgg16", {}, (3, 32, 32), 1.3),
)


def sgd_step(model: nn.Module, x: Tensor, y: Tensor, batch: int) -> Step:
    """The step that an expert writes: parameters and images in channels-last order, data in memory."""
    model = model.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    x = x.contiguous(memory_format=torch.channels_last)
    batches = torch.randperm(len(x)).split(batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step(position: int) -> float:
        chosen = batches[position % len(batches)]
        loss = cross_entropy(model(x[chosen]), y[chosen])
        value = loss.item()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return value

    return step


def curve_step(model: nn.Module, other: nn.Module, x: Tensor, y: Tensor, batch: int) -> Step:
    """The step that ``fit_curve`` runs, on a quadratic Bezier curve."""
    settings = FittingSettings(batch_size=batch, epochs=10**6)
    fit = CurveFit(model, flatten(model), flatten(other), (x, y), settings)
    return lambda position: fit.step(position, rate=1e-3).loss


def seconds(step: Step, first: int, steps: int) -> float:
    begin = time.process_time()
    for position in range(first, first + steps):
        step(position)
    return (time.process_time() - begin) / steps


def compare(case: Case, batch: int, budget: float) -> tuple[float, float, float]:
    """CPU seconds of a plain step and of a curve step, and the median ratio over interleaved rounds."""
    torch.manual_seed(0)
    x = torch.randn(BATCHES_OF_DATA * batch, *case.shape)
    y = torch.randint(10, (len(x),))
    model, other = (
        build_model({"name": case.model, **case.options}, input_shape=case.shape, classes=10, seed=seed)
        for seed in (0, 1)
    )
    curve, plain = curve_step(model, other, x, y, batch), sgd_step(model, x, y, batch)
    warm = [seconds(step, 0, 2) for step in (plain, curve)]
    steps = max(1, int(0.1 / max(warm)))
    rounds = min(60, max(5, int(budget / (2 * steps * max(warm)))))
    pairs = [(seconds(plain, index, steps), seconds(curve, index, steps)) for index in range(2, 2 + rounds)]
    plain_seconds, curve_seconds = (statistics.median(values) for values in zip(*pairs, strict=True))
    return plain_seconds, curve_seconds, statistics.median(fitted / usual for usual, fitted in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a ratio is above its limit")
    parser.add_argument(
        "--models", nargs="+", choices=sorted({case.model for case in CASES}), help="only these networks"
    )
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 128], help="batch sizes (default: 32 128)")
    parser.add_argument("--budget", type=float, default=12.0, help="CPU seconds a row, about (default: 12)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'network':<26}{'batch':>6}{'SGD ms':>10}{'curve ms':>10}{'ratio':>8}{'limit':>8}")
    failed = False
    for case in CASES:
        if options.models and case.model not in options.models:
            continue
        for batch in options.batches:
            plain, curve, ratio = compare(case, batch, options.budget)
            failed |= ratio > case.limit
            verdict = "  above the limit" if ratio > case.limit else ""
            row = f"{case.title:<26}{batch:>6}{1e3 * plain:>10.2f}{1e3 * curve:>10.2f}{ratio:>8.3f}{case.limit:>8.2f}"
            print(row + verdict, flush=True)
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
