"""`valley bench`: how fast surfaces are computed here, beside a plain loop, and what an experiment would take."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from torch import Tensor, nn

    from valleyscope.app.experiments.spec import Spec
    from valleyscope.landscape.evaluation.evaluator import PointsAtOnce

_DEFAULT = ("cnn", "lenet", "resnet56")
_SHAPES = {"cnn": (1, 28, 28), "lenet": (1, 28, 28), "mlp": (1, 28, 28)}
_IMAGE = (3, 32, 32)
_BATCH = 128
_COMPARED = 512


@dataclass(frozen=True)
class Subject:
    """A network with random data of its shape, and the work of the spec that it comes from."""

    title: str
    network: Callable[[int], nn.Module]
    shape: tuple[int, ...]
    classes: int
    pairs: int | None = None
    """Pairs of a sample and a point in the surfaces and paths of the spec."""


def add_bench_command(commands: Any) -> None:
    parser = commands.add_parser("bench", help="time surfaces on this machine beside a plain loop")
    parser.add_argument(
        "subject", nargs="?", metavar="SPEC|MODEL", help="a spec, a recipe, or a network (default: some of ours)"
    )
    parser.add_argument("--shape", metavar="C,H,W", help="shape of a sample, for a network that is not ours")
    parser.add_argument("--classes", type=int, default=10, metavar="N", help="classes of that network (default: 10)")
    parser.add_argument("--samples", type=int, metavar="N", help="samples that are timed (default: 512; on a GPU 8192)")
    parser.add_argument("--points", type=int, metavar="N", help="points that are timed (default: 4; on a GPU 64)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds, of which the median counts")
    parser.add_argument(
        "--device", default="cpu", metavar="NAME", help="cpu, cuda or cuda:N (default: cpu, one thread)"
    )
    parser.add_argument(
        "--points-at-once",
        metavar="K|auto",
        help="points in a forward pass (default: on a GPU auto, the fastest of some; else 1)",
    )
    parser.set_defaults(run=run_bench)


def run_bench(options: argparse.Namespace, console: Console) -> int:
    """Print a row for each network."""
    import torch

    from valleyscope.app.tasks.torch_device import set_precision

    is_gpu = options.device.startswith("cuda")
    options.samples = options.samples if options.samples is not None else 8192 if is_gpu else 512
    options.points = options.points if options.points is not None else 64 if is_gpu else 4
    for name in ("samples", "points", "rounds", "classes"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name} is {getattr(options, name)}; give 1 or more")
    if options.device != "cpu" and not (is_gpu and torch.cuda.is_available()):
        raise ValueError(f"--device is {options.device!r}, but this machine has no such device; use cpu")
    at_once = _at_once(options.points_at_once)
    if options.device == "cpu":
        torch.set_num_threads(1)
    set_precision("float32")
    table = Table(box=None, pad_edge=False)
    for title in (
        "network",
        "ours, us",
        "loop, us",
        "ratio",
        "difference",
        "41 x 41 points, 60,000 samples",
        "the spec",
    ):
        table.add_column(title, justify="left" if title == "network" else "right", no_wrap=True)
    tried: list[str] = []
    any_compared = False
    for subject in _subjects(options):
        found = _compete(subject, options, at_once)
        ours, loop = found.ours, found.loop
        any_compared |= found.difference is not None
        tried += [f"{subject.title}: {line}" for line in found.calibration]
        whole = "" if subject.pairs is None else _duration(ours * subject.pairs)
        table.add_row(
            subject.title,
            f"{1e6 * ours:.1f}",
            f"{1e6 * loop:.1f}",
            f"{loop / ours:.1f}x",
            "" if found.difference is None else f"{found.difference:.0e}",
            _duration(ours * 41 * 41 * 60_000),
            whole,
        )
    console.print(table)
    for line in tried:
        console.print(line, highlight=False)
    where = "one thread of this machine" if options.device == "cpu" else torch.cuda.get_device_name(options.device)
    console.print(f"Seconds a sample and point on {where}; the loop is plain PyTorch with data in memory.")
    if any_compared:
        console.print("Difference: of losses, relative, from those of one point at a time on the processor.")
    console.print("Times are of one worker, and exact: `accuracy: 0.01` in a plane estimates it for much less work.")
    return 0


def _subjects(options: argparse.Namespace) -> list[Subject]:
    from valleyscope.app.experiments.recipes import load_recipe, recipe_names
    from valleyscope.app.experiments.spec import read_spec
    from valleyscope.training.models import build_model

    def ours(name: str, shape: tuple[int, ...]) -> Subject:
        def network(seed: int) -> nn.Module:
            return build_model(name, input_shape=shape, classes=options.classes, seed=seed)

        return Subject(name, network, shape, options.classes)

    given = options.subject
    if given is None:
        return [ours(name, _SHAPES.get(name, _IMAGE)) for name in _DEFAULT]
    if given in recipe_names():
        return [_of_spec(load_recipe(given), given)]
    if Path(given).suffix in (".yaml", ".yml", ".json"):
        return [_of_spec(read_spec(given), given)]
    return [ours(given, _shape(options.shape) or _SHAPES.get(given, _IMAGE))]


def _of_spec(spec: Spec, title: str) -> Subject:
    from valleyscope.app.experiments.cost import surface_pairs
    from valleyscope.app.settings import Settings
    from valleyscope.training import build_model, load_dataset

    data = load_dataset(spec.dataset, root=Settings.load().data, download=False)

    def network(seed: int) -> nn.Module:
        return build_model(spec.model.model_dump(), data, seed=seed)

    return Subject(title, network, data.shape, data.classes, surface_pairs(spec))


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        shape = tuple(int(part) for part in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        raise ValueError(f"--shape is {text!r}; give whole numbers such as 3,32,32")
    return shape


def _at_once(text: str | None) -> PointsAtOnce:
    if text is None or text == "auto":
        return None if text is None else "auto"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"--points-at-once is {text!r}; give a number of points, 1 or more, or auto")
    return int(text)


@dataclass(frozen=True)
class Found:
    """Seconds a sample and point, of our evaluator and of the loop; what it tried, and how far it is from exact."""

    ours: float
    loop: float
    calibration: list[str]
    difference: float | None


def _compete(subject: Subject, options: argparse.Namespace, at_once: PointsAtOnce) -> Found:
    """Time our evaluator and the loop, in turns."""
    import torch

    from valleyscope.landscape import Evaluator, flatten

    device = torch.device(options.device)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(options.samples, *subject.shape, generator=generator).to(device)
    y = torch.randint(0, subject.classes, (options.samples,), generator=generator).to(device)
    start, *ends = (flatten(subject.network(seed)) for seed in range(3))
    basis = torch.stack([start, *(end - start for end in ends)]).to(device)
    steps = torch.linspace(0.1, 0.9, options.points)
    points = torch.stack([torch.ones_like(steps), steps, 1 - steps], dim=1)
    evaluator = Evaluator(subject.network(0).to(device), {"train": (x, y)}, points_at_once=at_once)
    ways: list[Callable[[], Any]] = [
        lambda: evaluator.at(basis, points.numpy()),
        lambda: _plain_loop(subject.network(0).to(device), basis, points.to(device), x, y),
    ]
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    seconds: list[list[float]] = [[], []]
    for number in range(options.rounds + 1):
        for way, found in zip(ways, seconds, strict=True):
            begin = clock()
            way()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if number:  # the first round warms up
                found.append((clock() - begin) / (options.samples * options.points))
    ours, loop = (statistics.median(found) for found in seconds)
    difference = None
    if device.type == "cuda" or at_once is not None:
        few = {"train": (x[:_COMPARED].cpu(), y[:_COMPARED].cpu())}
        exact = Evaluator(subject.network(0), few, points_at_once=1).at(basis.cpu(), points.numpy()[:2])
        there = {"train": (x[:_COMPARED], y[:_COMPARED])}
        again = Evaluator(subject.network(0).to(device), there, points_at_once=at_once).at(basis, points.numpy()[:2])
        difference = float(abs(again["train"].loss / exact["train"].loss - 1).max())
    tried = [] if evaluator.calibration is None else evaluator.calibration.lines()
    return Found(ours, loop, tried, difference)


def _plain_loop(network: nn.Module, basis: Tensor, points: Tensor, x: Tensor, y: Tensor) -> list[float]:
    """What an expert writes in ten lines; with BatchNorm statistics of the data at every point, as ours."""
    import torch
    from torch import nn
    from torch.nn.utils import vector_to_parameters

    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    losses = []
    batches = torch.split(x, _BATCH)
    with torch.inference_mode():
        for row in points:
            vector_to_parameters(row @ basis, network.parameters())
            if norms:
                network.train()
                for number, part in enumerate(batches):
                    for norm in norms:
                        norm.momentum = 1 / (number + 1)
                    network(part)
            network.eval()
            logits = torch.cat([network(part) for part in batches])
            losses.append(float(nn.functional.cross_entropy(logits, y)))
    return losses


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
