"""Times a Hessian-vector product over a whole data set against a gradient, and counts the products of a spectrum.

    python benchmarks/curvature.py            # a table of ratios, and the products for the 20 largest eigenvalues
    python benchmarks/curvature.py --check    # the same, and exit status 1 above a limit

"from scratch" is what PyHessian and hessian-eigenthings do for every product: differentiate each batch twice anew. Ours
keeps the graphs of the first differentiation as far as memory allows. All run in turns on one thread, in CPU seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope import curvature, load_dataset, train
from valleyscope.landscape.curvature.products import CurvatureProducts
from valleyscope.landscape.geometry.vectors import flatten
from valleyscope.training.models import build_model

MOST_PRODUCTS = 150


@dataclass(frozen=True)
class Case:
    """A network, its data, and how much longer than a gradient a product may take."""

    title: str
    model: str
    options: dict[str, object]
    shape: tuple[int, int, int]
    samples: int
    limit: float = 2.6


CASES = (
    Case("lenet 20-50-500, 28x28", "lenet", {}, (1, 28, 28), 1024),
    Case("vgg16 width 16, 32x32", "vgg16", {"width": 16}, (3, 32, 32), 256),
)


def gradient_pass(model: nn.Module, x: Tensor, y: Tensor, batch: int = 128) -> Callable[[], None]:
    """The gradient over all samples as an expert writes it."""
    model = model.to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    x = x.contiguous(memory_format=torch.channels_last)
    parameters = list(model.parameters())

    def run() -> None:
        total = [torch.zeros_like(parameter) for parameter in parameters]
        for images, labels in zip(x.split(batch), y.split(batch), strict=True):
            loss = F.cross_entropy(model(images), labels, reduction="sum")
            torch._foreach_add_(total, torch.autograd.grad(loss, parameters))

    return run


def product_pass(model: nn.Module, x: Tensor, y: Tensor, *, keep: bool) -> Callable[[], None]:
    limit = None if keep else 1
    products = CurvatureProducts(model, flatten(model), (x, y), block=128, batch_norm="frozen", memory_limit=limit)
    vector = torch.randn(1, products.dimension)

    def run() -> None:
        products(vector)

    return run


def seconds(run: Callable[[], None]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def compare(case: Case, rounds: int) -> tuple[float, float, float]:
    """CPU seconds of a gradient, and the median ratios of our product and of one from scratch."""
    torch.manual_seed(0)
    x, y = torch.randn(case.samples, *case.shape), torch.randint(10, (case.samples,))
    model = build_model({"name": case.model, **case.options}, input_shape=case.shape, classes=10, seed=0)
    ours, scratch = (product_pass(model, x, y, keep=keep) for keep in (True, False))
    runs = (gradient_pass(model, x, y), ours, scratch)
    for run in runs:
        run()
    table = [[seconds(run) for run in runs] for _ in range(rounds)]
    plain = statistics.median(row[0] for row in table)
    return plain, *(statistics.median(row[column] / row[0] for row in table) for column in (1, 2))


def spectrum_products(name: str) -> tuple[int, int, bool]:
    """Products for the 20 largest eigenvalues of a LeNet after two epochs, the samples, and whether all converged."""
    data = load_dataset(name)
    if name == "digits":
        x_train, x_test = (F.interpolate(x, (28, 28), mode="bilinear") for x in (data.x_train, data.x_test))
        data = replace(data, x_train=x_train, x_test=x_test)
    shape = tuple(data.x_train.shape[1:])
    model = build_model({"name": "lenet"}, input_shape=shape, classes=10, seed=0)
    train(model, data, epochs=2 if name == "mnist" else 10, lr=0.05, batch_size=64)
    samples = min(10_000, len(data.x_train))
    pair = (data.x_train, data.y_train)
    found = curvature(model, model, pair, top=20, lowest=0, probes=0, samples=samples)
    return found.products, samples, found.converged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with status 1 above a limit")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds (default: 7)")
    parser.add_argument("--data", choices=("digits", "mnist"), default="digits", help="images of the spectrum")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'network':<26}{'gradient ms':>12}{'ours':>8}{'from scratch':>14}{'limit':>8}")
    failed = False
    for case in CASES:
        plain, ours, scratch = compare(case, options.rounds)
        failed |= ours > case.limit
        print(f"{case.title:<26}{1e3 * plain:>12.1f}{ours:>8.2f}{scratch:>14.2f}{case.limit:>8.2f}", flush=True)
    products, samples, converged = spectrum_products(options.data)
    failed |= products > MOST_PRODUCTS or not converged
    print(f"20 largest eigenvalues of lenet, {samples:,} images: {products} products, limit {MOST_PRODUCTS}")
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
