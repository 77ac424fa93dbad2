"""The cost of a loss of your own and of streamed data, against a plain loop over the same points and blocks.

    python benchmarks/generic.py [--points 12] [--rounds 25] [--check]

Prints CPU time a sample and point and the ratios; rounds of the three take turns, and the median of the ratios within a
round counts, so that whatever else the machine does falls on all alike. With --check it fails if a loss of your own
costs more than 1.05 of the plain loop, or streamed data more than 1.1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope import Evaluator, flatten, unflatten

SAMPLES, BLOCK = 2048, 256
LIMITS = {"own loss": 1.05, "own loss, streamed": 1.1}


def loss(model: nn.Module, batch: Any) -> Tensor:
    return F.mse_loss(model(batch[0]), batch[1], reduction="none").mean(1)


def plain(model: nn.Module, basis: Tensor, points: Tensor, x: Tensor, y: Tensor) -> list[float]:
    found = []
    with torch.inference_mode():
        for row in points:
            model.load_state_dict(unflatten(model, row.to(basis) @ basis))
            parts = (loss(model, (x[i : i + BLOCK], y[i : i + BLOCK])) for i in range(0, len(x), BLOCK))
            found.append(sum(float(part.double().sum()) for part in parts) / len(x))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 64)).eval()
    x, y = torch.randn(SAMPLES, 64), torch.randn(SAMPLES, 64)
    batches = [(x[i : i + 100], y[i : i + 100]) for i in range(0, SAMPLES, 100)]
    centre = flatten(model)
    basis = torch.stack([centre, 0.01 * torch.randn_like(centre), 0.01 * torch.randn_like(centre)])
    points = torch.cat([torch.ones(options.points, 1), torch.rand(options.points, 2)], dim=1)
    in_memory = Evaluator(model, (x, y), loss=loss, block=BLOCK)
    streamed = Evaluator(model, batches, loss=loss, block=BLOCK, memory_limit=1)
    ways: dict[str, Callable[[], Any]] = {
        "plain loop": lambda: plain(model, basis, points, x, y),
        "own loss": lambda: in_memory.at(basis, points.numpy()),
        "own loss, streamed": lambda: streamed.at(basis, points.numpy()),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds + 1):
        for name, run in ways.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    base = seconds["plain loop"][1:]
    ratios = {
        name: median(own / theirs for own, theirs in zip(taken[1:], base, strict=True))
        for name, taken in seconds.items()
    }
    for name, taken in seconds.items():
        print(f"{name:20} {1e6 * median(taken[1:]) / SAMPLES / options.points:8.2f} us   {ratios[name]:.3f}")
    missed = [name for name, limit in LIMITS.items() if ratios[name] > limit]
    if options.check and missed:
        raise SystemExit(f"over its limit: {', '.join(f'{name} ({LIMITS[name]})' for name in missed)}")


if __name__ == "__main__":
    main()
