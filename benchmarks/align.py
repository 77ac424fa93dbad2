"""Times weight matching against the plain published algorithm, written here after its paper, on one thread of the CPU.

    python benchmarks/align.py            # a table of seconds, assignments solved and what was reached
    python benchmarks/align.py --check    # the same, and exit status 1 beyond the limits that the docs state

The plain algorithm (Ainsworth et al. 2023, "Git Re-Basin", algorithm 1) visits the groups of units in random order,
assigns each by all weights that it touches, and sweeps until no assignment gains. Two pairs of networks a row: a
permuted copy, which must be found again, and two networks with independent weights of the size that training starts
from. `similarity` is the sum of products of corresponding weights, which both algorithms climb; finding the symmetries
is timed with ours.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from valleyscope.landscape.alignment.symmetries import Symmetries, TensorAxis, permute_axis, symmetries
from valleyscope.landscape.alignment.weight_matching import match_weights
from valleyscope.training import build_model

SHAPE = (3, 32, 32)
LIMIT = 60.0
STATISTICS = ("running_mean", "running_var")


@dataclass(frozen=True)
class Found:
    """What a run reached."""

    seconds: float
    assignments: int
    similarity: float
    distance: float


def plain_matching(
    found: Symmetries, reference: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], int]:
    """Algorithm 1 of the paper: every tensor is permuted anew for each group, and every sweep visits all groups."""
    orders = {group.name: torch.arange(group.units) for group in found.groups}
    axes: dict[str, list[tuple[str, TensorAxis]]] = {}
    for group in found.groups:
        for place in group.places:
            if not place.tensor.endswith(STATISTICS):
                axes.setdefault(place.tensor, []).append((group.name, place))
    generator = np.random.default_rng(0)
    count, improved = 0, True
    while improved:
        improved = False
        for index in generator.permutation(len(found.groups)):
            group = found.groups[index]
            products = torch.zeros(group.units, group.units)
            for name, places in axes.items():
                for own in (place for other, place in places if other == group.name):
                    moved = weights[name]
                    for other, place in places:
                        if other != group.name:
                            moved = permute_axis(moved, place, orders[other])
                    products += _rows(reference[name], own) @ _rows(moved, own).T
            _, columns = linear_sum_assignment(products.numpy(), maximize=True)
            count += 1
            row = torch.arange(group.units)
            before = float(products[row, orders[group.name]].sum())
            if float(products[row, columns].sum()) - before > 1e-6 * abs(before):
                improved = True
                orders[group.name] = torch.as_tensor(columns)
    return orders, count


def _rows(tensor: Tensor, place: TensorAxis) -> Tensor:
    return tensor.movedim(place.axis, 0)[place.positions.flatten()].reshape(len(place.positions), -1)


def measure(found: Symmetries, reference: Mapping[str, Tensor], weights: Mapping[str, Tensor], *, plain: bool) -> Found:
    start = time.perf_counter()
    if plain:
        orders, count = plain_matching(found, reference, weights)
    else:
        matching = match_weights(found, reference, weights)
        orders, count = matching.orders, matching.assignments
    seconds = time.perf_counter() - start
    moved = found.permuted(weights, orders)
    names = {place.tensor for group in found.groups for place in group.places if not place.tensor.endswith(STATISTICS)}
    similarity = sum(float((reference[name] * moved[name]).sum()) for name in names)
    distance = sum(float((reference[name] - moved[name]).square().sum()) for name in names) ** 0.5
    return Found(seconds, count, similarity, distance)


def main() -> int:
    parser = argparse.ArgumentParser(description="times weight matching")
    parser.add_argument("--check", action="store_true", help="exit status 1 beyond a limit")
    parser.add_argument("--models", default="resnet56,vgg16", help="default: resnet56,vgg16")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'':<32}{'symmetries':>12}{'ours':>10}{'plain':>10}{'ratio':>8}{'assignments':>18}{'similarity':>26}")
    late = []
    for name in options.models.split(","):
        model = build_model(name, input_shape=SHAPE, classes=10, seed=0).eval()
        start = time.perf_counter()
        found = symmetries(model, (torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(0)),))
        tracing = time.perf_counter() - start
        reference = {key: value.detach() for key, value in model.state_dict().items()}
        generator = torch.Generator().manual_seed(1)
        orders = {group.name: torch.randperm(group.units, generator=generator) for group in found.groups}
        other = build_model(name, input_shape=SHAPE, classes=10, seed=1).state_dict()
        for label, weights in (("permuted copy", found.permuted(reference, orders)), ("another seed", other)):
            ours, plain = (measure(found, reference, weights, plain=which) for which in (False, True))
            counts = f"{ours.assignments} against {plain.assignments}"
            reached = f"{ours.similarity:.1f} against {plain.similarity:.1f}"
            print(
                f"{name + ', ' + label:<32}{tracing:>10.1f} s{ours.seconds:>8.1f} s{plain.seconds:>8.1f} s"
                f"{plain.seconds / ours.seconds:>7.1f}x{counts:>18}{reached:>26}",
                flush=True,
            )
            if tracing + ours.seconds > LIMIT:
                late.append(f"{name}, {label}: {tracing + ours.seconds:.0f} s, must be below {LIMIT:.0f} s")
            if plain.seconds / ours.seconds < 3 and ours.assignments > plain.assignments:
                late.append(f"{name}, {label}: neither 3 times as fast nor fewer assignments than the plain algorithm")
            if label == "permuted copy" and ours.distance > 0:
                late.append(f"{name}: the permuted copy was not found again, distance {ours.distance:.3g}")
    print(*late, sep="\n")
    return 1 if late and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
