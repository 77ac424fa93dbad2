"""Barriers between networks of different seeds, as given and aligned; prints the table of docs/alignment.md.

    python docs/alignment.py --out DIR                           # digits
    python docs/alignment.py --out DIR --data ROOT --mnist       # MNIST: ROOT has the data set, or gets it
    python docs/pruning/first_images.py cifar10 ROOT/cifar-small.npz --train 4000 --test 2000 --side 16
    python docs/alignment.py --out DIR --data ROOT --cifar       # photographs of 16 x 16 pixels, one pair of seeds

Three pairs of seeds for each network. The loss is that of the training samples, on 25 points of the line. Of
MNIST the first 10,000 samples are used, in training, too. Networks that are already in DIR are not trained again.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from valleyscope import (
    align,
    along,
    barrier,
    build_model,
    evaluate,
    flatten,
    line,
    load_dataset,
    save_checkpoint,
    train,
)
from valleyscope.training.checkpoints import load_checkpoint

PAIRS = ((0, 1), (2, 3), (4, 5))
SAMPLES = 10_000


@dataclass(frozen=True)
class Case:
    """A network and how it is trained."""

    label: str
    dataset: str
    model: dict[str, Any]
    epochs: int
    rate: float = 0.1
    every: int | None = None
    """Epochs after which the learning rate is halved, again and again."""


CASES = (
    Case("digits, mlp 64", "digits", {"name": "mlp", "hidden": [64, 64]}, 60),
    Case("digits, mlp 256 (4 times as wide)", "digits", {"name": "mlp", "hidden": [256, 256]}, 60),
    Case("digits, cnn 16-32-128", "digits", {"name": "cnn"}, 15, 0.02),
)
MNIST = (
    Case("MNIST, mlp 128", "mnist", {"name": "mlp", "hidden": [128, 128]}, 10, 0.05),
    Case("MNIST, mlp 512 (4 times as wide)", "mnist", {"name": "mlp", "hidden": [512, 512]}, 10, 0.05),
    Case("MNIST, lenet 20-50-500", "mnist", {"name": "lenet"}, 3, 0.05),
)
CIFAR = tuple(
    Case(
        f"CIFAR photographs, ResNet-20 of width {width}",
        "npz:cifar-small.npz",
        {"name": "resnet56", "depth": 20, "width": 16 * width},
        20,
        0.05,
        4,
    )
    for width in (1, 2, 4)
)


def trained(case: Case, data: Any, seed: int, out: Path) -> nn.Module:
    model: nn.Module = build_model(case.model, data, seed=seed)
    path = out / f"{case.label.split(' (')[0].replace(', ', '-').replace(' ', '-')}-{seed}.safetensors"
    if path.exists():
        load_checkpoint(path, model)
        return model
    batch = 32 if case.dataset == "digits" else 128
    settings: dict[str, Any] = {"epochs": case.epochs, "batch_size": batch, "lr": case.rate, "momentum": 0.9}
    if case.every is not None:
        settings["schedule"] = {"kind": "halving", "every": case.every}
    train(model, data, optimizer="sgd", seed=seed, **settings)
    save_checkpoint(path, model)
    return model


def row(case: Case, data: Any, out: Path) -> str:
    sample = (data.x_train, data.y_train)
    found: dict[str, list[float]] = {"as given": [], "weights": [], "activations": []}
    losses, errors = [], []
    for first, second in PAIRS[:1] if case in CIFAR else PAIRS:
        a, b = (trained(case, data, seed, out) for seed in (first, second))
        for network in (a, b):
            losses.append(evaluate(network, flatten(network), {"train": sample})["train"].loss)
            errors.append(evaluate(network, flatten(network), {"test": (data.x_test, data.y_test)})["test"].error)
        for how, values in found.items():
            other = b.state_dict() if how == "as given" else align(b, b, to=a, data=sample, method=how)  # type: ignore[arg-type]
            path = line(flatten(a), flatten(a, other))
            values.append(barrier(along(a, path, {"train": sample}, points=25)["train"].loss))
    cells = [f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})" for values in found.values()]
    return f"| {case.label} | {np.mean(losses):.4f} | {100 * np.mean(errors):.1f} % | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="barriers as given and aligned")
    parser.add_argument("--out", type=Path, required=True, help="where the networks are kept")
    parser.add_argument("--data", type=Path, help="directory of data sets")
    parser.add_argument("--mnist", action="store_true", help="MNIST instead of digits")
    parser.add_argument("--cifar", action="store_true", help="photographs of CIFAR-10 instead of digits")
    parser.add_argument("--only", default="", help="cases whose label has this text")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    print("| network | train loss | test error | barrier as given | by weights | by activations |")
    print("|---|---|---|---|---|---|")
    cases = CIFAR if options.cifar else MNIST if options.mnist else CASES
    for case in (case for case in cases if options.only in case.label):
        data = load_dataset(case.dataset, root=options.data)
        data = replace(data, x_train=data.x_train[:SAMPLES], y_train=data.y_train[:SAMPLES])
        print(row(case, data, options.out), flush=True)


if __name__ == "__main__":
    main()
