"""Times a Hessian-vector product over a whole data set against a gradient, and counts the products of a spectrum.

    python benchmarks/curvature.py                           # a table of ratios, and the products for 20 eigenvalues
    python benchmarks/curvature.py --check                   # the same, and exit status 1 above a limit
    python benchmarks/curvature.py --part products --network vgg16   # one row of the table
    python benchmarks/curvature.py --part spectrum --data mnist      # 10,000 images
    python benchmarks/curvature.py --part library --data mnist       # the numbers of curvlinops, if it is installed

`PyHessian` and `hessian-eigenthings` are the products of these tools, written here after their sources: for every
product they differentiate each batch twice anew. `curvlinops` is that library. Ours keeps the graphs of the first
differentiation as far as memory allows. All run in turns on one thread, in CPU seconds, on blocks of 128 images.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope import curvature, load_dataset, train
from valleyscope.landscape.curvature.products import CurvatureProducts
from valleyscope.landscape.geometry.vectors import flatten
from valleyscope.training.models import build_model

MOST_PRODUCTS = 150
BATCH = 128
HAS_LIBRARY = importlib.util.find_spec("curvlinops") is not None
PARTS = ("products", "spectrum", *(("library",) if HAS_LIBRARY else ()))


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


def gradient(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """The gradient over all samples as an expert writes it."""
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = x.contiguous(memory_format=torch.channels_last)
    parameters = list(model.parameters())

    def run() -> None:
        total = [torch.zeros_like(parameter) for parameter in parameters]
        for images, labels in zip(x.split(BATCH), y.split(BATCH), strict=True):
            loss = F.cross_entropy(model(images), labels, reduction="sum")
            torch._foreach_add_(total, torch.autograd.grad(loss, parameters))

    return run


def ours(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    products = CurvatureProducts(model, flatten(model), (x, y), block=BATCH, batch_norm="frozen")
    vector = torch.randn(1, products.dimension)

    def run() -> None:
        products(vector)

    return run


def pyhessian(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """`dataloader_hv_product` of PyHessian 0.1: a backward pass with a graph, then the derivative of <gradient, v>."""
    parameters = list(model.parameters())
    vector = [torch.randn_like(parameter) for parameter in parameters]

    def run() -> None:
        total = [torch.zeros_like(parameter) for parameter in parameters]
        for images, labels in zip(x.split(BATCH), y.split(BATCH), strict=True):
            gradients = torch.autograd.grad(F.cross_entropy(model(images), labels), parameters, create_graph=True)
            products = torch.autograd.grad(gradients, parameters, vector, retain_graph=False)
            total = [old + new * float(len(images)) for old, new in zip(total, products, strict=True)]

    return run


def eigenthings(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """`HVPOperator` of hessian-eigenthings: the same with the gradient and the product as one flat vector each."""
    parameters = list(model.parameters())
    vector = torch.randn(sum(parameter.numel() for parameter in parameters))

    def run() -> None:
        total = torch.zeros_like(vector)
        for images, labels in zip(x.split(BATCH), y.split(BATCH), strict=True):
            gradients = torch.autograd.grad(F.cross_entropy(model(images), labels), parameters, create_graph=True)
            flat = torch.cat([part.contiguous().view(-1) for part in gradients])
            products = torch.autograd.grad(flat, parameters, grad_outputs=vector, only_inputs=True)
            total += torch.cat([part.contiguous().view(-1) for part in products])

    return run


def library(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    operator = operator_of(model, x, y)
    vector = torch.randn(operator.shape[1])

    def run() -> None:
        operator @ vector

    return run


def operator_of(model: nn.Module, x: Tensor, y: Tensor) -> Any:
    """The Hessian of curvlinops."""
    batches = list(zip(x.split(BATCH), y.split(BATCH), strict=True))
    loss = nn.CrossEntropyLoss()
    make = importlib.import_module("curvlinops").HessianLinearOperator
    return make(model, loss, list(model.parameters()), batches, check_deterministic=False)


WAYS = {
    "ours": ours,
    "PyHessian": pyhessian,
    "hessian-eigenthings": eigenthings,
    **({"curvlinops": library} if HAS_LIBRARY else {}),
}


def seconds(run: Callable[[], None]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def compare(case: Case, rounds: int) -> tuple[float, dict[str, float]]:
    """CPU seconds of a gradient, and the median ratio of a product of every way to it."""
    torch.manual_seed(0)
    x, y = torch.randn(case.samples, *case.shape), torch.randint(10, (case.samples,))

    def model() -> nn.Module:
        network = build_model({"name": case.model, **case.options}, input_shape=case.shape, classes=10, seed=0)
        return network.eval()

    runs = [gradient(model(), x, y), *(way(model(), x, y) for way in WAYS.values())]
    for run in runs:
        run()
    table = np.array([[seconds(run) for run in runs] for _ in range(rounds)])
    ratios = np.median(table[:, 1:] / table[:, :1], axis=0)
    return float(np.median(table[:, 0])), dict(zip(WAYS, ratios.tolist(), strict=True))


def products_table(networks: Sequence[str], rounds: int) -> bool:
    """Print the ratios; whether a limit is missed."""
    print(f"{'network':<26}{'gradient ms':>12}" + "".join(f"{name:>21}" for name in WAYS) + f"{'limit':>8}")
    missed = False
    for case in CASES:
        if case.model in networks:
            plain, ratios = compare(case, rounds)
            missed |= ratios["ours"] > case.limit
            cells = "".join(f"{ratio:>21.2f}" for ratio in ratios.values())
            print(f"{case.title:<26}{1e3 * plain:>12.1f}{cells}{case.limit:>8.2f}", flush=True)
    return missed


def trained(name: str, images: int) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """A LeNet after two epochs on images of MNIST, or ten on digits at its size, and these images."""
    data = load_dataset(name)
    if name == "digits":
        x_train, x_test = (F.interpolate(x, (28, 28), mode="bilinear") for x in (data.x_train, data.x_test))
        data = replace(data, x_train=x_train, x_test=x_test)
    data = replace(data, x_train=data.x_train[:images], y_train=data.y_train[:images])
    shape = tuple(data.x_train.shape[1:])
    model = build_model({"name": "lenet"}, input_shape=shape, classes=10, seed=0)
    train(model, data, epochs=2 if name == "mnist" else 10, lr=0.05, batch_size=64)
    return model, (data.x_train, data.y_train)


def spectrum(name: str) -> bool:
    """Print the products for the 20 largest eigenvalues of a LeNet; whether there are too many, or not all converge."""
    model, pair = trained(name, 10_000)
    begin = time.process_time()
    found = curvature(model, model, pair, top=20, lowest=0, probes=0)
    converged = "" if found.converged else ", not all converged"
    print(
        f"20 largest eigenvalues of lenet, {len(pair[0]):,} images: {found.products} products, limit {MOST_PRODUCTS}, "
        f"{time.process_time() - begin:.0f} s{converged}"
    )
    return found.products > MOST_PRODUCTS or not found.converged


def against_library(name: str, samples: int, top: int = 10, probes: int = 10) -> bool:
    """Print what curvlinops says of our eigenvectors, and of the trace in the same random directions as ours.

    Whether a number differs by more than 1 %.
    """
    model, (x, y) = trained(name, 2_000)
    x, y = x[:samples], y[:samples]
    found = curvature(model, model, (x, y), top=top, lowest=0, probes=0)
    operator = operator_of(model.eval(), x, y)
    vectors = found.eigenvectors.to(torch.float32)
    products = torch.stack([operator @ vector for vector in vectors])
    values = (products * vectors).sum(dim=1).double().numpy()
    residual = (products - torch.from_numpy(values)[:, None] * vectors).norm(dim=1).max() / values[0]
    directions = torch.randn(probes, found.dimension, generator=torch.Generator().manual_seed(0))
    own, other = CurvatureProducts(model, flatten(model), (x, y)), torch.stack([operator @ row for row in directions])
    traces = [float((part * directions).sum() / probes) for part in (own(directions), other)]
    differences = np.abs(found.eigenvalues / values - 1)
    rows = {
        "largest eigenvalue": (found.eigenvalues[0], values[0]),
        f"eigenvalue {top}": (found.eigenvalues[-1], values[-1]),
        f"trace, the same {probes} directions": (traces[0], traces[1]),
    }
    print(f"lenet, {len(x):,} images of {name}: ours, and curvlinops at our eigenvectors")
    for label, (one, other) in rows.items():
        print(f"{label:<30}{one:>14.6g}{other:>14.6g}{100 * (one / other - 1):>10.4f} %")
    print(f"all {top} eigenvalues within {100 * differences.max():.4f} %, residuals {residual:.1e} of the largest")
    return bool(max(differences.max(), *(abs(one / other - 1) for one, other in rows.values())) > 0.01)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with status 1 above a limit")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds (default: 7)")
    parser.add_argument("--part", choices=PARTS, help="one part (default: products and spectrum)")
    parser.add_argument("--network", choices=[case.model for case in CASES], help="one network of the products")
    parser.add_argument("--data", choices=("digits", "mnist"), default="digits", help="images of the spectrum")
    parser.add_argument("--samples", type=int, default=128, help="images for the library (default: 128)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    networks = [case.model for case in CASES if options.network in (None, case.model)]
    missed = False
    if options.part in (None, "products"):
        missed |= products_table(networks, options.rounds)
    if options.part in (None, "spectrum"):
        missed |= spectrum(options.data)
    if options.part == "library":
        missed |= against_library(options.data, options.samples)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
