"""Times an epoch of LeNet in our loop against the same epoch written the usual way, on tensors of MNIST's size.

    python benchmarks/training.py             # the ratio, and how far apart the weights are
    python benchmarks/training.py --check     # the same, and exit status 1 below the floor

The usual way is a DataLoader with shuffle over a TensorDataset, NCHW, convolution-ReLU-pooling, torch.optim.SGD. Both
see the same batches in the same order from the same initial weights, and both evaluate the training set afterwards, as
our loop does. They take turns, an epoch each, on one thread, in CPU seconds; the ratio is the median over rounds.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import statistics
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Sampler, TensorDataset

from valleyscope.training import build_model, train
from valleyscope.training.batches import permutation
from valleyscope.training.datasets import Dataset

FLOOR = 1.6
BATCH = 64


def usual_network(ours: nn.Module) -> nn.Module:
    """LeNet as everyone writes it, with the same initial weights."""
    network = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip
    with torch.no_grad():
        for mine, theirs in zip(network.parameters(), ours.parameters(), strict=True):
            mine.copy_(theirs)
    return network


class Order(Sampler[int]):
    """A given order of samples, where the usual loop would draw one."""

    def __init__(self, order: Tensor) -> None:
        self.order = order

    def __iter__(self) -> Iterator[int]:
        return iter(self.order.tolist())

    def __len__(self) -> int:
        return len(self.order)


def usual_epoch(network: nn.Module, x: Tensor, y: Tensor, order: Tensor) -> float:
    """Train, then evaluate the training set; returns its loss."""
    data = TensorDataset(x, y)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    network.train()
    for inputs, labels in DataLoader(data, batch_size=BATCH, sampler=Order(order)):
        optimizer.zero_grad()
        loss = cross_entropy(network(inputs), labels)
        loss.backward()
        optimizer.step()
        loss.item()
    network.eval()
    total = 0.0
    with torch.no_grad():
        for inputs, labels in DataLoader(data, batch_size=BATCH):
            total += cross_entropy(network(inputs), labels, reduction="sum").item()
    return total / len(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help=f"fail below {FLOOR}x")
    parser.add_argument("--samples", type=int, default=6400, help="images in an epoch (MNIST has 60000)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(options.samples, 1, 28, 28, generator=generator)
    y = torch.randint(10, (options.samples,), generator=generator)
    data = Dataset("random", x, y, x[:10], y[:10], 10, "random", (0.0,))
    ratios, apart = [], 0.0
    for number in range(options.rounds):
        ours = build_model("lenet", data, seed=number)
        usual = usual_network(ours)
        start = time.process_time()
        result = train(ours, data, epochs=1, batch_size=BATCH, lr=0.01, schedule={"kind": "constant"}, seed=number)
        middle = time.process_time()
        usual_epoch(usual, x, y, permutation(len(x), number, 0))
        end = time.process_time()
        ratios.append((end - middle) / (middle - start))
        pairs = zip(result.model.parameters(), usual.parameters(), strict=True)
        apart = max(apart, *(float((a - b).detach().norm() / b.detach().norm()) for a, b in pairs))
        print(f"round {number + 1}: ours {middle - start:.2f} s, the usual way {end - middle:.2f} s of CPU")
    ratio = statistics.median(ratios)
    print(f"ratio {ratio:.2f}x (floor {FLOOR}x); after the epoch the weights differ by {apart:.1e} relative at most")
    return 1 if options.check and (ratio < FLOOR or apart > 1e-3) else 0


if __name__ == "__main__":
    sys.exit(main())
