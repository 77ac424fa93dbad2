"""Times compact networks against the networks that they were made from, side by side on one thread of the CPU.

    python benchmarks/compact.py            # a table of sizes and latencies
    python benchmarks/compact.py --check    # the same, and exit status 1 where a network is not as fast as the docs say

One of each two neighbouring filters is zero, chosen at random, so each layer and each stage loses exactly half, and
VGG16 and the tied ResNet-56 lose the same share of their multiply-adds, about three quarters. Weights are random:
latency does not depend on them. ResNet-56 has tied groups (filters that a residual addition joins are one), or loose
ones (each layer has its own zero filters, and an addition must place them). Both networks of a row run in turns, so
that other load falls on both alike; the ratio is that of the medians.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
from dataclasses import dataclass

import torch
from torch import nn

from valleyscope.training import Compact, build_model, compact, partition
from valleyscope.training.compaction.latency import BATCHES, latencies
from valleyscope.training.parameter_groups import prunable

SHAPE = (3, 32, 32)


@dataclass(frozen=True)
class Case:
    """A network with zero filters; it must be `limit` times as fast at batch 32 when compact."""

    label: str
    model: str
    tie: bool = False
    limit: float | None = None

    def networks(self) -> tuple[nn.Module, Compact]:
        model = build_model(self.model, input_shape=SHAPE, classes=10, seed=0).eval()
        generator = torch.Generator().manual_seed(0)
        for group in prunable(partition(model, tie_residual=self.tie)):
            pairs = len(group["params"][0]) // 2
            dead = torch.zeros(pairs, 2, dtype=torch.bool)
            dead[torch.arange(pairs), torch.randint(2, (pairs,), generator=generator)] = True
            dead = dead.flatten()
            offsets = group.get("offsets") or [0] * len(group["params"])
            for parameter, offset in zip(group["params"], offsets, strict=True):
                parameter.data[dead[offset : offset + len(parameter)]] = 0
        return model, compact(model, torch.zeros(1, *SHAPE))


CASES = (
    Case("VGG16-BN", "vgg16_bn", limit=3.0),
    Case("ResNet-56, tied residuals", "resnet56", tie=True, limit=1.8),
    Case("ResNet-56, loose groups", "resnet56"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="times compact networks")
    parser.add_argument("--check", action="store_true", help="exit status 1 below a limit")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each row and batch size (default: 10)")
    options = parser.parse_args()
    heads = [f"batch {batch}" for batch in BATCHES]
    print(f"{'':<40}{'parameters':>16}{'multiply-adds':>16}{'bytes':>8}", *(f"{head:>26}" for head in heads))
    slow = []
    for case in CASES:
        model, found = case.networks()
        before, after = found.report.before, found.report.after
        cells, ratio = [], 0.0
        for batch in BATCHES:
            old, new = latencies([model, found.model], found.example, batch, seconds=options.seconds)
            ratio = old.median / new.median
            cells.append(f"{1000 * old.median:8.1f} -> {1000 * new.median:6.1f} ms {ratio:5.2f}x")
        shares = (
            f"{after.parameters / before.parameters:>16.1%}",
            f"{after.multiply_adds / before.multiply_adds:>16.1%}",
            f"{after.bytes / before.bytes:>8.1%}",
        )
        print(f"{case.label:<40}{''.join(shares)}", *(f"{cell:>26}" for cell in cells), flush=True)
        if case.limit is not None and ratio < case.limit:
            slow.append(f"{case.label}: {ratio:.2f}x at batch {BATCHES[-1]}, must be {case.limit}x")
    print(*slow, sep="\n")
    return 1 if slow and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
