"""Times a training run by each pruning method against the same run by SGD.

    python benchmarks/pruning.py            # a table of ratios
    python benchmarks/pruning.py --check    # the same, and exit status 1 where AltSDP takes more than 1.1 times as long

A run is `train` on LeNet, with tensors of MNIST's size, or on a small network with BatchNorm for the methods that need
it: all epochs with their measurements, and the cut. Methods and SGD take turns on one thread, a run each, in CPU
seconds; a ratio is the median over the rounds. A time above 1 without a limit is what the method costs here.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import statistics
import time
from typing import Any

import torch
from torch import nn

from valleyscope.training import build_model, train
from valleyscope.training.datasets import Dataset
from valleyscope.training.methods.catalog import METHODS

LIMIT = 1.1
LIMITED = ("altsdp to the end", "altsdp")
EPOCHS = 6
BATCH = 64


def normed_network(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.BatchNorm2d(20), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 5), nn.BatchNorm2d(50), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(800, 500), nn.BatchNorm1d(500), nn.ReLU(), nn.Linear(500, 10),
        )  # fmt: skip


def seconds(network: str, data: Dataset, seed: int, **fields: Any) -> float:
    """CPU seconds of one run."""
    model = build_model("lenet", data, seed=seed) if network == "lenet" else normed_network(seed)
    start = time.process_time()
    train(model, data, epochs=EPOCHS, batch_size=BATCH, lr=0.05, seed=seed, **fields)
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help=f"fail if AltSDP takes more than {LIMIT} times SGD's time")
    parser.add_argument("--samples", type=int, default=1920, help="images in an epoch (MNIST has 60000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="some methods instead of all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(options.samples, 1, 28, 28, generator=generator)
    y = torch.randint(10, (options.samples,), generator=generator)
    data = Dataset("random", x, y, x[:200], y[:200], 10, "random", (0.0,))
    cases: dict[str, dict[str, Any]] = {"altsdp to the end": {"method": "altsdp", "target": 0.4}}
    cases |= {name: {"method": name, "sparsity": 0.6} for name in METHODS}
    if options.only:
        cases = {name: fields for name, fields in cases.items() if fields["method"] in options.only}
    print(f"torch {torch.__version__}, one thread, {options.samples} images, {EPOCHS} epochs, batch {BATCH}")
    above = 0
    for network in ("lenet", "normed"):
        seconds(network, data, 0)  # the first run of a process also pays for loading kernels
    for name, fields in cases.items():
        network = "normed" if METHODS[fields["method"]].needs_batch_norm else "lenet"
        pairs = []
        for number in range(options.rounds):
            ours = seconds(network, data, number, **fields)
            pairs.append((ours, seconds(network, data, number)))
        ratio = statistics.median(a / b for a, b in pairs)
        limit = LIMIT if name in LIMITED else None
        fits = limit is None or ratio <= limit
        above += not fits
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        shown = "" if limit is None else f"   at most {limit}{'' if fits else ', above'}"
        print(f"{name:18} {network:7} {ours:7.2f} s, SGD {theirs:6.2f} s: {ratio:5.2f}{shown}", flush=True)
    return 1 if options.check and above else 0


if __name__ == "__main__":
    sys.exit(main())
