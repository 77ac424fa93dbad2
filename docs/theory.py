"""Puts Theorem 2 of structured directional pruning to the test; prints the tables of docs/theory.md.

    python docs/theory.py --out DIR                            # digits: trains 21 networks into DIR, then measures
    python docs/theory.py --out DIR --seeds 0                  # one seed
    python docs/theory.py --out DIR --case lenet --data DATA   # half a LeNet on 2,000 images of MNIST, one seed

Networks that are already in DIR are not trained again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from valleyscope import (
    Dataset,
    along,
    barrier,
    build_model,
    evaluate,
    flat_subspace,
    flatten,
    line,
    load_dataset,
    partition,
    save_checkpoint,
    sdp,
    theorem_trial,
    train,
)
from valleyscope.landscape.curvature.flat_subspace import FlatSubspace
from valleyscope.landscape.curvature.theorem_trial import TheoremTrial
from valleyscope.landscape.curvature.weight_groups import weight_groups

RATE, MU = 0.05, 0.51
MODES = ("dual", "prox", "cumulative")


@dataclass(frozen=True)
class Case:
    """A network, its data and its training; curvature is that of the first ``samples`` images (None: all)."""

    data: Callable[[Path | None], Dataset]
    model: Mapping[str, Any]
    epochs: int
    batch: int
    runs: tuple[tuple[str, float], ...]
    """Mode and c of the AltSDP runs."""
    seeds: tuple[int, ...]
    cuts: tuple[float, ...]
    cut: float = 1e-3
    samples: int | None = None
    memory: int | None = None


def digits(_root: Path | None) -> Dataset:
    return load_dataset("digits")


def part_of_mnist(root: Path | None) -> Dataset:
    """The first 2,000 training images of MNIST and the first 2,000 test images."""
    data = load_dataset("mnist", root=root)
    first = slice(0, 2_000)
    return replace(
        data,
        x_train=data.x_train[first],
        y_train=data.y_train[first],
        x_test=data.x_test[first],
        y_test=data.y_test[first],
    )


CASES = {
    "digits": Case(
        digits,
        {"name": "cnn", "channels": [8, 16], "hidden": 32},
        epochs=150,
        batch=32,
        runs=tuple((mode, c) for mode in MODES for c in (0.25, 0.4)),
        seeds=(0, 1, 2),
        cuts=(3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4),
    ),
    "lenet": Case(
        part_of_mnist,
        {"name": "cnn", "channels": [10, 25], "hidden": 100, "kernel": 5, "padding": "valid"},
        epochs=60,
        batch=32,
        runs=(("dual", 0.2), ("dual", 0.3), *((mode, c) for mode in MODES[1:] for c in (0.2, 0.3))),
        seeds=(0,),
        cuts=(3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3),
        memory=3 * 10**9,
    ),
}
case = CASES["digits"]


def threshold(c: float, samples: int) -> float:
    """The last threshold of `dual`, c sqrt(lr) (n lr)^mu; the other modes get it as the target of their sum."""
    steps = case.epochs * -(-samples // case.batch)
    return c * RATE**0.5 * (steps * RATE) ** MU


def strengths() -> list[float]:
    """c of the runs of `dual`, the mode that the theorem is about."""
    return [c for mode, c in case.runs if mode == "dual"]


def network(data: Dataset, seed: int) -> nn.Module:
    shape = tuple(data.x_train.shape[1:])
    return build_model(dict(case.model), input_shape=shape, classes=10, seed=seed)


def trained(data: Dataset, seed: int, name: str, fields: Mapping[str, Any], out: Path) -> Path:
    """The checkpoint of a run; trains it if it is missing."""
    path = out / f"{seed}-{name}.safetensors"
    if not path.exists():
        model = network(data, seed)
        schedule = {"kind": "constant"}
        run = {"epochs": case.epochs, "batch_size": case.batch, "lr": RATE, "mu": MU, "schedule": schedule}
        train(model, data, seed=seed, **run, **fields)
        save_checkpoint(path, model)
    return path


def minima(data: Dataset, seed: int, out: Path) -> dict[str, Path]:
    """SGD, and AltSDP in all modes and strengths, from one initialisation and on the same batches."""
    found = {"sgd": trained(data, seed, "sgd", {"optimizer": "sgd"}, out)}
    for mode, c in case.runs:
        size = {"c": c} if mode == "dual" else {"target": threshold(c, len(data.x_train))}
        fields = {"optimizer": "altsdp", "mode": mode, **size}
        found[f"{mode}-{c}"] = trained(data, seed, f"{mode}-{c}", fields, out)
    return found


def pair_of(data: Dataset) -> tuple[Tensor, Tensor]:
    """The images and labels whose loss is differentiated."""
    return data.x_train[: case.samples], data.y_train[: case.samples]


def figures(trial: TheoremTrial) -> str:
    """Counts and scores of a trial as cells of a table: the theorem / s = 1."""
    one, null = trial.theorem, trial.null
    pairs = [(one.agreement, null.agreement), (one.auc, null.auc), (one.correlation, null.correlation)]
    scores = " | ".join(f"{a:.2f} / {b:.2f}" for a, b in pairs)
    return f"{trial.zero} | {one.zero} / {null.zero} | {scores}"


def trials(data: Dataset, seed: int, paths: Mapping[str, Path], subspace: FlatSubspace) -> None:
    model = network(data, seed)
    pair = pair_of(data)
    for mode, c in case.runs:
        strength = threshold(c, len(data.x_train))
        trial = theorem_trial(
            model,
            paths["sgd"],
            paths[f"{mode}-{c}"],
            pair,
            partition(model),
            strength,
            subspace=subspace.at(case.cut),
            distances=[],
        )
        print(f"| {seed} | {mode} | {strength:.2f} | {figures(trial)} |", flush=True)


def by_cut(data: Dataset, seed: int, paths: Mapping[str, Path], subspace: FlatSubspace) -> Figure:
    """A table of predictions over the cut, and a figure of it: the reason for the default."""
    model = network(data, seed)
    pair = pair_of(data)
    positive = subspace.at(case.cut)
    chosen = positive.eigenvalues > 0
    kept = torch.from_numpy(np.flatnonzero(chosen))
    only = FlatSubspace(
        positive.steep[kept], positive.eigenvalues[chosen], case.cut, positive.largest, positive.products
    )
    spaces = [(f"{cut:g}", subspace.at(cut)) for cut in case.cuts] + [(f"{case.cut:g}, positive ones only", only)]
    tried: dict[float, list[TheoremTrial]] = {c: [] for c in strengths()}
    for label, space in spaces:
        cells = []
        for c in tried:
            trial = theorem_trial(
                model,
                paths["sgd"],
                paths[f"dual-{c}"],
                pair,
                partition(model),
                threshold(c, len(data.x_train)),
                subspace=space,
                distances=[],
            )
            tried[c].append(trial)
            one = trial.theorem
            cells.append(f"{one.zero} of {trial.zero} | {one.agreement:.2f} | {one.correlation:.2f}")
        s = one.factors
        spread = f"{s.min():.2f}, {np.median(s):.2f}, {s.max():.2f}"
        print(f"| {label} | {len(space.eigenvalues)} | {spread} | {' | '.join(cells)} |", flush=True)
    return sensitivity({c: found[: len(case.cuts)] for c, found in tried.items()})


def sensitivity(tried: Mapping[float, Sequence[TheoremTrial]]) -> Figure:
    """Direction factors and agreement over the cut, with the directions removed written above."""
    figure = Figure((7.2, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    first = next(iter(tried.values()))
    factors = np.stack([trial.theorem.factors for trial in first])
    left.fill_between(case.cuts, factors.min(axis=1), factors.max(axis=1), alpha=0.2, label="smallest to largest")
    left.plot(case.cuts, np.median(factors, axis=1), "o-", label="median")
    left.set_ylabel("direction factor s")
    for number, trials in enumerate(tried.values()):
        color = f"C{number}"
        label = f"λ = {trials[0].strength:.2f}"
        right.plot(case.cuts, [trial.theorem.agreement for trial in trials], "o-", color=color, label=label)
        right.axhline(trials[0].null.agreement, color=color, linestyle=":", label="the same, s = 1")
    right.set_ylabel("agreement on zero groups")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("cut; above: directions removed")
        axes.axvline(case.cut, color="0.6", linewidth=0.8)
        axes.legend(frameon=False, fontsize=8)
        above = axes.secondary_xaxis("top")
        above.set_xticks(case.cuts, [str(trial.removed) for trial in first], fontsize=7)
        above.minorticks_off()
    return figure


def flatness(data: Dataset, seed: int, paths: Mapping[str, Path], subspace: FlatSubspace) -> None:
    model = network(data, seed)
    distances = [0.25, 0.5, 1.0, 2.0, 3.0, 5.0]
    c = strengths()[-1]
    pair = pair_of(data)
    trial = theorem_trial(
        model,
        paths["sgd"],
        paths[f"dual-{c}"],
        pair,
        partition(model),
        threshold(c, len(data.x_train)),
        subspace=subspace.at(case.cut),
        distances=distances,
    )
    assert trial.loss is not None
    for row in zip(distances, trial.loss.flat, trial.loss.groups, trial.loss.sharpest, strict=True):
        print("| " + " | ".join(f"{value:.3g}" for value in row) + " |")


def one_shot(model: nn.Module, point: Tensor, count: int) -> Tensor:
    """SGD's weights with the groups of smallest norm set to zero."""
    groups = weight_groups(model, partition(model))
    keep = torch.ones(groups.count, dtype=point.dtype)
    keep[groups.norms(point).argsort()[:count]] = 0
    return torch.where(groups.index >= 0, point * groups.spread(keep), point)


def methods(data: Dataset, seed: int, paths: Mapping[str, Path], subspace: FlatSubspace) -> None:
    """Exact SDP, soft-thresholding and one-shot pruning at the number of zero groups that AltSDP found."""
    model = network(data, seed)
    groups = partition(model)
    numbered = weight_groups(model, groups)
    start = point_of(model, paths["sgd"])
    factors = subspace.at(case.cut).factors(start, numbered)
    splits = data.splits
    for c in strengths():
        found = point_of(model, paths[f"dual-{c}"])
        count = int((numbered.norms(found) == 0).sum())
        share = count / numbered.count
        rows = {
            "AltSDP, dual": found,
            "exact SDP": flatten(model, sdp(model, start, groups, factors, sparsity=share)),
            "soft-thresholding, s = 1": flatten(model, sdp(model, start, groups, sparsity=share)),
            "one-shot, smallest norms": one_shot(model, start, count),
        }
        for label, point in rows.items():
            values = evaluate(model, point, splits)
            losses = along(model, line(start, point), {"train": splits["train"]}, points=21)["train"].loss
            print(
                f"| {count} of {numbered.count} | {label} | {values['train'].loss:.4f} | "
                f"{100 * (1 - values['test'].error):.1f} | {barrier(losses):.4f} | {np.ptp(losses):.4f} |",
                flush=True,
            )


def progress(done: int, _most: int) -> None:
    if done % 50 == 0:
        print(f"{done} products", file=sys.stderr, flush=True)


def point_of(model: nn.Module, path: Path) -> Tensor:
    from safetensors.torch import load_file

    return flatten(model, load_file(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the trained networks")
    parser.add_argument("--case", choices=CASES, default="digits", help="network and data (default: digits)")
    parser.add_argument("--data", type=Path, help="folder of data sets (default: VALLEY_DATA)")
    parser.add_argument("--seeds", type=int, nargs="+", help="seeds (default: 0 1 2; of lenet 0)")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, help="modes of AltSDP (default: all)")
    parser.add_argument("--samples", type=int, help="images whose loss is differentiated (default: all for training)")
    parser.add_argument("--cut", type=float, help="eigenvalue above which a direction is not flat (default: 1e-3)")
    options = parser.parse_args()
    global case
    case = replace(CASES[options.case], samples=options.samples)
    if options.cut is not None:
        case = replace(case, cut=options.cut, cuts=tuple(cut for cut in case.cuts if cut >= options.cut))
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    data = case.data(options.data)
    case = replace(case, runs=tuple(run for run in case.runs if run[0] in options.modes))
    for number, seed in enumerate(options.seeds or case.seeds):
        paths = minima(data, seed, options.out)
        cut = case.cuts[-1] if number == 0 else case.cut
        model, state = network(data, seed), options.out / f"{seed}-subspace-{case.samples or 'all'}.pt"
        limits = {"memory_limit": case.memory, "state_path": state}
        space = flat_subspace(model, paths["sgd"], pair_of(data), cut, progress=progress, **limits)
        print(f"seed {seed}: largest eigenvalue {space.largest:.3f}, {space.products} products", flush=True)
        trials(data, seed, paths, space)
        if number == 0:
            print("by cut")
            by_cut(data, seed, paths, space).savefig(options.out / f"theory-{options.case}.svg")
            print("loss at equal distances")
            flatness(data, seed, paths, space)
        print("methods")
        methods(data, seed, paths, space)


if __name__ == "__main__":
    main()
