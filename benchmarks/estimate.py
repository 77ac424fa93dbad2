"""Compares estimated surfaces with exact ones: errors, coverage of their intervals, and work.

    python benchmarks/estimate.py                          # LeNet on MNIST, accuracies 0.03, 0.01 and 0.003
    python benchmarks/estimate.py --case cnn --samples 8000 --resolution 41 --seeds 20
    python benchmarks/estimate.py --case vgg16 --data /path/to/cifar.npz --check

Two minima and a control are trained for a few epochs, then the planes through them and a bend are computed exactly,
with the losses of all samples, and kept in ``--cache``. Estimates are made with other seeds on the same plane: their
pairs are looked up in the exact losses, so twenty seeds cost no more than one; the time of their pairs is counted as
that of the exact surface a pair. ``--truth-points`` takes the exact values at so many random points only, and
computes the pairs of the estimates for real.

A relative error is judged where the loss is above a thousandth of its range.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from valleyscope.landscape import Evaluator, Plane, fit_curve, flatten, surface
from valleyscope.landscape.analysis.estimated_surface import nearest_points
from valleyscope.landscape.estimation.estimator import Estimate
from valleyscope.landscape.estimation.known_pairs import Column
from valleyscope.landscape.estimation.links import Link
from valleyscope.landscape.estimation.rounds import SplitRounds
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.training import build_model, load_dataset

_PART = 2000
SMALL = {"channels": [10, 20], "hidden": 50, "kernel": 5, "padding": "valid"}


@dataclass(frozen=True)
class Case:
    """A network, its training, and by what factor an estimate must be less work at accuracy 0.01."""

    model: str
    data: str
    epochs: int
    lr: float
    floor: float
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "cnn": Case("cnn", "mnist", 2, 0.05, 25.0, SMALL),
    "lenet": Case("lenet", "mnist", 2, 0.05, 50.0),
    "vgg16": Case("vgg16", "", 6, 0.02, 25.0, {"width": 16, "dropout": 0.0}),
    "vgg16_bn": Case("vgg16_bn", "", 4, 0.05, 1.0, {"width": 16}),
}


@dataclass(frozen=True)
class Setting:
    """A network with data, and the plane through two minima and a bend or a control."""

    model: nn.Module
    x: Tensor
    y: Tensor
    plane: Plane


@dataclass(frozen=True)
class Outcome:
    """An estimate beside the truth."""

    factor: float
    rms: float
    largest: float
    covered: float
    seconds: float


def trained(case: Case, x: Tensor, y: Tensor, seeds: tuple[int, int], penalty: float = 0.0) -> nn.Module:
    """A network after a few epochs of SGD with momentum; ``seeds`` are those of the weights and of the order."""
    model = build_model(case.model, input_shape=tuple(x.shape[1:]), classes=10, seed=seeds[0], **case.options).train()
    generator = torch.Generator().manual_seed(seeds[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=case.lr, momentum=0.9)
    batches = [b for _ in range(case.epochs) for b in torch.randperm(len(x), generator=generator).split(128)]
    for step, batch in enumerate(batches):
        optimizer.param_groups[0]["lr"] = case.lr * max(0.02, 1 - step / len(batches))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[batch]), y[batch])
        if penalty:
            loss = loss + penalty * sum(parameter.abs().sum() for parameter in model.parameters())
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model.eval()


def setting(case: Case, which: str, data: str | None, cache: Path) -> Setting:
    """Train the networks of a case, or take them from the cache. The images are in random order."""
    found = load_dataset(case.data, root=data, download=False) if case.data else load_dataset(f"npz:{data}")
    x, y = (
        (found.x_train, found.y_train)
        if case.data
        else (torch.cat([found.x_train, found.x_test]), torch.cat([found.y_train, found.y_test]))
    )
    file = cache / f"{case.model}-{case.epochs}-networks.pt"
    if not file.is_file():
        minima = [trained(case, x, y, (0, 0)), trained(case, x, y, (0, 3), 1e-5), trained(case, x, y, (5, 7))]
        vectors = [flatten(model) for model in minima]
        curve = fit_curve(minima[0], vectors[0], vectors[1], (x[:20_000], y[:20_000]), epochs=1, lr=case.lr / 2)
        torch.save([*vectors, curve.points[1]], file)
    sgd, pruned, control, bend = torch.load(file)
    plane = Plane.through(sgd, pruned, bend if which == "valley" else control, complete="random")
    model = build_model(case.model, input_shape=tuple(x.shape[1:]), classes=10, seed=0, **case.options).eval()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return Setting(model, x[order], y[order], plane)


def exact(found: Setting, count: int, resolution: int, folder: Path) -> tuple[NDArray[np.float32], float]:
    """The losses of the first samples at all points, (points, samples), and the seconds of a pair.

    They are kept in parts of some samples each, so a computation that is cut off goes on from the last part.
    """
    folder.mkdir(parents=True, exist_ok=True)
    x, y = found.plane.axes(resolution)
    points = [(1.0, a, b) for b in y for a in x]
    losses, seconds = [], []
    for first in range(0, count, _PART):
        file = folder / f"{first:06d}.npz"
        part = slice(first, min(first + _PART, len(found.x)))
        if not file.is_file():
            evaluator = Evaluator(found.model, {"train": (found.x[part], found.y[part])})
            start = time.process_time()
            values = evaluator.at(found.plane.basis, points, samples=True)["train"]
            each = (time.process_time() - start) / len(points) / (part.stop - first)
            with write_atomically(file) as whole:
                np.savez(whole, loss=values.samples, seconds=each)  # type: ignore[arg-type]
        with np.load(file) as arrays:
            losses.append(arrays["loss"][:, : count - first])
            seconds.append(float(arrays["seconds"]))
    return np.concatenate(losses, axis=1), float(np.median(seconds))


def from_table(found: Setting, table: NDArray[np.float32], seconds: float, accuracy: float, seed: int) -> Outcome:
    """An estimate whose pairs are looked up."""
    side = round(len(table) ** 0.5)
    x, y = found.plane.axes(side)
    points = nearest_points(x, y, list(found.plane.points.values()))
    rounds = SplitRounds(table.shape[1], x, y, accuracy, seed, Link("margin"), points)
    start = time.process_time()
    while requests := rounds.next():
        for request in requests:
            which = slice(None) if request.samples is None else request.samples
            rounds.add(request, [Column(table[point][which], None) for point in request.points])
    truth = table.mean(1, dtype=np.float64)
    if rounds.exact:
        return Outcome(1.0, 0.0, 0.0, 1.0, seconds * table.size)
    estimate = rounds.estimate()
    taken = time.process_time() - start + seconds * rounds.known.computed
    return outcome(estimate, truth, rounds.evaluated, taken)


def outcome(estimate: Estimate, truth: NDArray[np.float64], evaluated: float, seconds: float) -> Outcome:
    deviation = estimate.loss - truth
    judged = truth > 1e-3 * np.ptp(truth)
    relative = np.abs(deviation / truth)[judged]
    estimated = estimate.loss_error > 0
    covered = np.abs(deviation)[estimated] < 1.96 * estimate.loss_error[estimated]
    return Outcome(1 / evaluated, float(np.sqrt(np.mean(relative**2))), relative.max(), covered.mean(), seconds)


def exact_at_some(found: Setting, resolution: int, count: int, file: Path) -> tuple[NDArray[np.intp], Any, float]:
    """Random points of the grid, the exact losses there, and the seconds of a pair; kept."""
    chosen = np.random.default_rng(0).permutation(resolution**2)[:count]
    if not file.is_file():
        x, y = found.plane.axes(resolution)
        points = [(1.0, x[column], y[row]) for row, column in zip(*np.divmod(chosen, resolution), strict=True)]
        evaluator = Evaluator(found.model, {"train": (found.x, found.y)})
        start = time.process_time()
        loss = evaluator.at(found.plane.vectors, points)["train"].loss
        with write_atomically(file) as whole:
            np.savez(whole, loss=loss, seconds=(time.process_time() - start) / count / len(found.x))
    with np.load(file) as arrays:
        return chosen, arrays["loss"], float(arrays["seconds"])


def at_some_points(
    found: Setting, resolution: int, chosen: NDArray[np.intp], truth: Any, accuracy: float, seed: int
) -> Outcome:
    """A real estimate, compared with exact values at some points of the grid."""
    evaluator = Evaluator(found.model, {"train": (found.x, found.y)})
    start = time.process_time()
    estimated = surface(found.model, found.plane, None, resolution, evaluator=evaluator, accuracy=accuracy, seed=seed)
    taken = time.process_time() - start
    grid = estimated["train"]
    loss, error = grid.loss.ravel()[chosen], grid["loss_error"].ravel()[chosen]
    return outcome(Estimate(loss, error, truth, truth, truth), truth, estimated.evaluated, taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=list(CASES), default="lenet")
    parser.add_argument("--plane", choices=["valley", "basins"], default="valley")
    parser.add_argument("--data", help="folder of MNIST, or for vgg16 an npz file with CIFAR images")
    parser.add_argument("--samples", type=int, help="so many images only, drawn at random")
    parser.add_argument("--truth", action="store_true", help="only compute the exact losses, and keep them")
    parser.add_argument("--resolution", type=int, default=41)
    parser.add_argument("--accuracies", type=float, nargs="+", default=[0.03, 0.01, 0.003])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--truth-points", type=int, help="exact values at so many random points only")
    parser.add_argument(
        "--cache", type=Path, default=Path("estimate-cache"), help="folder for networks and exact losses"
    )
    parser.add_argument("--check", action="store_true", help="exit with status 1 if accuracy 0.01 misses its limits")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.cache.mkdir(parents=True, exist_ok=True)
    case = CASES[options.case]
    found = setting(case, options.plane, options.data, options.cache)
    count = min(len(found.x), options.samples or len(found.x))
    folder = options.cache / f"{options.case}-{options.plane}-{options.resolution}"
    table: NDArray[np.float32] | None = None
    few = replace(found, x=found.x[:count], y=found.y[:count])
    if options.truth_points:
        file = Path(f"{folder}-{count}-{options.truth_points}.npz")
        chosen, truth, seconds = exact_at_some(few, options.resolution, options.truth_points, file)
    else:
        table, seconds = exact(found, count, options.resolution, folder)
    if options.truth:
        return 0
    found = few
    pairs = len(found.x) * options.resolution**2
    size = f"{len(found.x)} samples, {options.resolution} x {options.resolution} points: {pairs:.3g} pairs"
    print(f"{options.case}, plane {options.plane}, {size}")
    print("| accuracy | fewer pairs | rms | largest | covered by 95 % | CPU, exact over estimate |")
    print("|---|---|---|---|---|---|")
    failed = False
    for accuracy in options.accuracies:
        results = [
            at_some_points(found, options.resolution, chosen, truth, accuracy, seed)
            if table is None
            else from_table(found, table, seconds, accuracy, seed)
            for seed in range(options.seeds)
        ]
        mean = Outcome(*(float(np.mean([getattr(each, name) for each in results])) for name in Outcome.__annotations__))
        mean = replace(mean, largest=max(each.largest for each in results))
        work = f"{seconds * pairs / mean.seconds:.0f}x"
        print(
            f"| {accuracy} | {mean.factor:.1f}x | {mean.rms:.2%} | {mean.largest:.1%} | {mean.covered:.1%} | {work} |",
            flush=True,
        )
        if accuracy == 0.01:
            failed |= (
                mean.rms > 0.01 or mean.largest > 0.05 or mean.factor < case.floor or not 0.93 <= mean.covered <= 0.97
            )
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
