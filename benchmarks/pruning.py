"""Times a training run by each pruning method against the same run by SGD.

    python benchmarks/pruning.py            # a table of ratios
    python benchmarks/pruning.py --check    # the same, and exit status 1 where AltSDP takes more than 1.1 times as long

A run is `train` on LeNet, with the digits enlarged to MNIST's size, or on a small network with BatchNorm for the
methods that need it: all epochs with their measurements, and the cut. The runs are long enough for AltSDP to prune: by
its threshold alone in `altsdp to the end`, and up to the wish with the stop rule. A round is a run by SGD on each
network and one by each method, AltSDP next to SGD, on one thread, in CPU seconds; a ratio is the median over the
rounds. A time above 1 without a limit is what the method costs here.
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
from torch import Tensor, nn
from torch.nn.functional import interpolate

from valleyscope.training import build_model, load_dataset, train
from valleyscope.training.datasets import Dataset
from valleyscope.training.methods.catalog import METHODS

LIMIT = 1.1
LIMITED = ("altsdp to the end", "altsdp")
EPOCHS = 8
RUN: dict[str, Any] = {"epochs": EPOCHS, "batch_size": 64, "lr": 0.05, "momentum": 0.9}
SPARSITY = 0.5
LEAST_PRUNED = 0.3  # of the groups: a run of AltSDP that prunes less measures nothing
CASES: dict[str, dict[str, Any]] = {
    "altsdp to the end": {"method": "altsdp", "target": 1.2},
    **{name: {"method": name, "sparsity": SPARSITY} for name in METHODS},
}
CASES["sdp"]["factors"] = "ones"  # benchmarks/curvature.py times the Hessian


def normed_network(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.BatchNorm2d(20), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 5), nn.BatchNorm2d(50), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(800, 500), nn.BatchNorm1d(500), nn.ReLU(), nn.Linear(500, 10),
        )  # fmt: skip


def enlarged_digits() -> Dataset:
    def large(x: Tensor) -> Tensor:
        return interpolate(x, size=28, mode="bilinear")

    found = load_dataset("digits")
    x, x_test = large(found.x_train), large(found.x_test)
    return Dataset("digits", x, found.y_train, x_test, found.y_test, 10, "scikit-learn's digits, enlarged", (0.0,))


def run(network: str, data: Dataset, seed: int, **fields: Any) -> tuple[float, float]:
    """CPU seconds of one run, and the share of its groups that are zero in the end."""
    model = build_model("lenet", data, seed=seed) if network == "lenet" else normed_network(seed)
    start = time.process_time()
    found = train(model, data, seed=seed, **RUN, **fields)
    return time.process_time() - start, found.final.zero_groups


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help=f"fail if AltSDP takes more than {LIMIT} times SGD's time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", metavar="METHOD", choices=CASES, default=list(CASES), help="some rows only"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = enlarged_digits()
    print(f"torch {torch.__version__}, one thread, {len(data.x_train)} images, {EPOCHS} epochs, medians")
    networks = {name: "normed" if METHODS[CASES[name]["method"]].needs_batch_norm else "lenet" for name in CASES}
    wanted = [name for name in CASES if name in options.only]
    seconds: dict[str, list[float]] = {name: [] for name in ("lenet", "normed", *wanted)}
    pruned: dict[str, float] = {}
    for network in ("lenet", "normed"):
        run(network, data, 0)  # the first run of a process also pays for loading kernels
    for number in range(options.rounds):
        for network in ("lenet", "normed"):
            seconds[network].append(run(network, data, number)[0])
            for name in (name for name in wanted if networks[name] == network):
                spent, pruned[name] = run(network, data, number, **CASES[name])
                seconds[name].append(spent)
    missed = 0
    for name in wanted:
        ours, theirs = (seconds[key] for key in (name, networks[name]))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        row = (
            f"{name:18} {networks[name]:7} {pruned[name]:6.1%} pruned {statistics.median(ours):7.2f} s, "
            f"SGD {statistics.median(theirs):6.2f} s: {ratio:5.2f}"
        )
        if name in LIMITED:
            misses = ratio > LIMIT or pruned[name] < LEAST_PRUNED
            missed += misses
            row += f"   at most {LIMIT}, {LEAST_PRUNED:.0%} pruned{': missed' if misses else ''}"
        print(row, flush=True)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
