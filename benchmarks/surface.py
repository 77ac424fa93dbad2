"""Times a surface of Valleyscope against four other ways of computing it, in CPU seconds per sample and grid point.

    python benchmarks/surface.py                     # a table of ratios, and the peak memory of a surface on MNIST
    python benchmarks/surface.py --check             # the same, and exit status 1 where a ratio is below its floor
    python benchmarks/surface.py --model cnn --rounds 9 --block 256

(a) package   the package loss-landscapes from PyPI: all samples in one batch at every point; it leaves BatchNorm
              statistics as they are.
(b) script    the way of dnn-mode-connectivity's plane.py: weights set from a flat vector; every image through PIL,
              ToTensor and Normalize in a DataLoader; autograd on, with its weight-decay term for every batch; for
              BatchNorm first a pass over the data for statistics.
(c) loop      the best plain loop an expert writes in ten lines: tensors in memory, inference mode, flat weights; for
              BatchNorm first a pass over the data for statistics.
(d) eval loop the same without that pass: with the statistics of the model, which are wrong at every other point.

They run in turns in one process on one thread, so that whatever else the machine does falls on all alike; a ratio
is the median over rounds. Images are random, of the size of MNIST and CIFAR: the time depends on nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import loss_landscapes
import numpy as np
import torch
import torch.nn.functional as F
from loss_landscapes.metrics import Loss
from PIL import Image
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters
from torch.utils.data import DataLoader, Dataset

from valleyscope.landscape import Evaluator, Plane, flatten, surface
from valleyscope.training import build_model
from valleyscope.training.models import multiply_adds

BATCH = 128
MEMORY_LIMIT = 1.5e9


@dataclass(frozen=True)
class Case:
    """A network, the part of a surface that a round computes, and the least ratios over (b) and (c)."""

    model: str
    shape: tuple[int, int, int]
    samples: int
    side: int
    rounds: int
    script_floor: float
    loop_floor: float
    options: dict[str, Any] = field(default_factory=dict)

    def network(self, seed: int) -> nn.Module:
        return build_model(self.model, input_shape=self.shape, classes=10, seed=seed, **self.options).eval()


SMALL = {"channels": [10, 20], "hidden": 50, "kernel": 5, "padding": "valid"}
CASES = {
    "cnn": Case("cnn", (1, 28, 28), 512, 7, 5, 10.0, 2.0, SMALL),
    "lenet": Case("lenet", (1, 28, 28), 256, 8, 5, 5.0, 1.8),
    "vgg16": Case("vgg16", (3, 32, 32), 256, 2, 3, 1.5, 1.4),
    "resnet56": Case("resnet56", (3, 32, 32), 512, 1, 5, 2.5, 2.0),
    # A residual network with BatchNorm and a million parameters.
    "resnet20x32": Case("resnet56", (3, 32, 32), 256, 1, 3, 1.8, 1.5, {"depth": 20, "width": 32}),
    # A plain network with BatchNorm and nearly a million parameters.
    "vgg16_bn16": Case("vgg16_bn", (3, 32, 32), 256, 2, 3, 2.0, 2.0, {"width": 16}),
}


class Pictures(Dataset[tuple[Tensor, int]]):
    """Images that go through PIL, ToTensor and Normalize one by one, as torchvision's data sets do."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        from torchvision import transforms

        self.images = images
        self.labels = labels
        self.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.25,))])

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.transform(Image.fromarray(self.images[index].numpy())), int(self.labels[index])


class Contest:
    """The four ways on the same network, images and points."""

    def __init__(self, case: Case, block: int | None) -> None:
        self.case = case
        generator = torch.Generator().manual_seed(0)
        images = torch.randint(0, 256, (case.samples, *case.shape), generator=generator, dtype=torch.uint8)
        self.y = torch.randint(0, 10, (case.samples,), generator=generator)
        self.pictures = Pictures(images.movedim(1, -1).squeeze(-1).contiguous(), self.y)
        self.x = (images / 255 - 0.5) / 0.25
        start, *ends = (flatten(case.network(seed)) for seed in range(3))
        steps = np.arange(case.side) / case.side
        self.basis = torch.stack([start, ends[0] - start, ends[1] - start])
        self.coefficients = np.array([(1.0, a, b) for b in steps for a in steps])
        self.evaluator = Evaluator(case.network(0), {"train": (self.x, self.y)}, block=block)

    def ours(self) -> Any:
        return self.evaluator.at(self.basis, self.coefficients)["train"].loss

    def package(self) -> Any:
        metric = Loss(F.cross_entropy, self.x, self.y)
        networks = [self.case.network(seed) for seed in range(3)]
        return loss_landscapes.planar_interpolation(*networks, metric, steps=self.case.side).ravel()

    def script(self) -> Any:
        network, losses = self.case.network(0), []
        loader = DataLoader(self.pictures, batch_size=BATCH, shuffle=False, num_workers=0)
        for row in torch.tensor(self.coefficients, dtype=torch.float32):
            vector = row @ self.basis
            offset = 0
            for parameter in network.parameters():
                size = parameter.numel()
                parameter.data.copy_(vector[offset : offset + size].view_as(parameter))
                offset += size
            average_statistics(network, (x for x, _ in loader))
            total = 0.0
            for x, y in loader:
                output = network(x)
                likelihood = F.cross_entropy(output, y)
                penalty = sum((parameter**2).sum().sqrt() for parameter in network.parameters())
                (likelihood + 5e-5 * penalty).item()
                output.argmax(1).eq(y).sum().item()
                total += likelihood.item() * len(y)
            losses.append(total / len(self.pictures))
        return losses

    def eval_loop(self) -> Any:
        return self.loop(statistics=False)

    @torch.inference_mode()
    def loop(self, statistics: bool = True) -> Any:
        network, losses = self.case.network(0), []
        for row in torch.tensor(self.coefficients, dtype=torch.float32):
            vector_to_parameters(row @ self.basis, network.parameters())
            if statistics:
                average_statistics(network, self.x.split(BATCH))
            logits = torch.cat([network(x) for x in self.x.split(BATCH)])
            losses.append(F.cross_entropy(logits, self.y).item())
            logits.argmax(1).ne(self.y).sum().item()
        return losses


def average_statistics(network: nn.Module, batches: Iterable[Tensor]) -> None:
    """BatchNorm statistics, if there are such layers, by averages over one pass in training mode."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    if not norms:
        return
    network.train()
    seen = 0
    for norm in norms:
        norm.reset_running_stats()
    for x in batches:
        for norm in norms:
            norm.momentum = len(x) / (seen + len(x))
        network(x)
        seen += len(x)
    network.eval()


def compete(case: Case, rounds: int, block: int | None) -> dict[str, list[float]]:
    """CPU seconds per sample and point of every way, in every round."""
    contest = Contest(case, block)
    ways: dict[str, Callable[[], Any]] = {
        "package": contest.package,
        "script": contest.script,
        "loop": contest.loop,
        "eval loop": contest.eval_loop,
        "ours": contest.ours,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    results = {name: np.asarray(way()) for name, way in ways.items()}
    if case.model not in ("resnet56", "vgg16_bn") and not np.allclose(results["ours"], results["loop"], rtol=1e-5):
        raise RuntimeError(f"{case.model}: results differ, {results}")
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            way()
            seconds[name].append((time.process_time() - start) / (case.samples * len(contest.coefficients)))
    return seconds


def matmul_peak() -> float:
    """Floating-point operations a second of a large float32 matrix product on this thread: the best of several."""
    size = 1024
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = float("inf")
    for _ in range(10):
        start = time.process_time()
        a @ b
        best = min(best, time.process_time() - start)
    return 2 * size**3 / best


def ratio(seconds: dict[str, list[float]], other: str) -> float:
    return statistics.median(theirs / ours for theirs, ours in zip(seconds[other], seconds["ours"], strict=True))


def mnist_surface(result: Any) -> None:
    """Compute a small surface of LeNet over 60 000 images and send back the peak memory of this process, in bytes."""
    torch.set_num_threads(1)
    networks = [CASES["lenet"].network(seed) for seed in range(3)]
    plane = Plane.through(*(flatten(network) for network in networks))
    x, y = torch.randn(60_000, 1, 28, 28), torch.randint(0, 10, (60_000,))
    surface(networks[0], plane, {"train": (x, y)}, resolution=3)
    # Not ru_maxrss, which a process inherits from the one that started it.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    result.send(int(status["VmHWM"].split()[0]) * 1024)


def peak_memory() -> float:
    """Peak memory of a process that computes a surface on MNIST, in bytes."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=mnist_surface, args=(sender,))
    process.start()
    found = receiver.recv()
    process.join()
    return float(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(CASES), help="this network only, and no measurement of memory")
    parser.add_argument("--rounds", type=int, help="rounds a network; default 3 to 5")
    parser.add_argument("--block", type=int, help="samples that pass through our network at a time; default: ours")
    parser.add_argument("--check", action="store_true", help="exit with status 1 if a number misses its floor or limit")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failures = []
    others = " | ".join(f"over {way}" for way in ("(a) package", "(b) script", "(c) loop", "(d) eval loop"))
    print(f"| network | ours, us | {others} | share of matmul peak |")
    print("|---|---|---|---|---|---|---|")
    for name in CASES if options.model is None else [options.model]:
        case = CASES[name]
        seconds = compete(case, options.rounds or case.rounds, options.block)
        operations = 2 * multiply_adds(case.network(0), case.shape)
        ours = statistics.median(seconds["ours"])
        package, script, loop, plain = (ratio(seconds, other) for other in ("package", "script", "loop", "eval loop"))
        share = operations / ours / matmul_peak()
        print(
            f"| {name} | {1e6 * ours:.1f} | {package:.1f}x | {script:.1f}x (floor {case.script_floor}x) | "
            f"{loop:.1f}x (floor {case.loop_floor}x) | {plain:.2f}x | {share:.0%} |",
            flush=True,
        )
        if script < case.script_floor or loop < case.loop_floor:
            failures.append(f"{name}: {script:.2f}x over (b), {loop:.2f}x over (c)")
    if options.model is None:
        memory = peak_memory()
        limit = f"limit {MEMORY_LIMIT / 1e9} GB"
        print(f"\nPeak memory of a LeNet surface over 60 000 images: {memory / 1e9:.2f} GB ({limit})")
        if memory > MEMORY_LIMIT:
            failures.append(f"peak memory {memory / 1e9:.2f} GB")
    for failure in failures:
        print(f"missed: {failure}", file=sys.stderr)
    return 1 if options.check and failures else 0


if __name__ == "__main__":
    sys.exit(main())
