"""`valley compact`: remove the zero groups of networks, print what it saves, and write the compact networks."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from valleyscope.app.experiments.experiment_writer import SPEC, compact_files

if TYPE_CHECKING:
    from torch import Tensor, nn

    from valleyscope.training.compaction import Compact, Latency

FORMATS = ("safetensors", "onnx", "pt2")


def add_compact_command(commands: Any) -> None:
    parser = commands.add_parser("compact", help="remove zero groups: a smaller network with the same outputs")
    parser.add_argument(
        "source", type=Path, metavar="FILE|DIR", help="a checkpoint (.safetensors) of a run, or the directory of a run"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="output directory (default: beside the checkpoint)")
    parser.add_argument(
        "--formats", help="which of safetensors, onnx, pt2 (default: safetensors, and onnx if its extra is installed)"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory of data sets (default: VALLEY_DATA)")
    parser.set_defaults(run=make_compact_files)


_WIDTH = 110  # of the table: a number that is cut says nothing


def make_compact_files(options: argparse.Namespace, console: Console) -> int:
    """Print one table for all checkpoints, and the paths of the files; exit status 1 if a network was refused."""
    from valleyscope.app.settings import Settings
    from valleyscope.training.compaction import NotCompactable, compact
    from valleyscope.training.compaction.exports import onnx_is_installed
    from valleyscope.training.compaction.latency import BATCHES, latencies

    formats = _formats(options.formats) or (FORMATS[:2] if onnx_is_installed() else FORMATS[:1])
    table = Table(box=None, pad_edge=False)
    for title in ("network", "", "parameters", "multiply-adds", "bytes", *(f"latency, {batch}" for batch in BATCHES)):
        table.add_column(title, justify="left" if title in ("network", "") else "right", no_wrap=True)
    written: list[Path] = []
    notes: list[str] = []
    refused = False
    for file in _checkpoints(options.source):
        model, example = _network(file, options.data or Settings.load().data)
        try:
            found = compact(model, example)
        except NotCompactable as error:
            notes.append(f"{file.name}: {error}")
            refused = True
            continue
        notes += [f"{file.name}: left whole: {name}: {reason}" for name, reason in found.report.left_whole.items()]
        if not found.report.is_smaller:
            notes.append(f"{file.name} has no zero groups to remove")
            continue
        times = [latencies([model, found.model], found.example, batch) for batch in BATCHES]
        _add_rows(table, file.name.removesuffix(".safetensors"), found, times)
        written += _write(found, file, options.out or file.parent, formats)
    if table.row_count:
        Console(file=console.file, width=max(console.width, _WIDTH)).print(table, highlight=False)
    for line in (*notes, *map(str, written)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 1 if refused else 0


def _formats(text: str | None) -> tuple[str, ...]:
    chosen = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if unknown := [part for part in chosen if part not in FORMATS]:
        raise ValueError(f"--formats={text}: {unknown[0]!r} is unknown, use some of {', '.join(FORMATS)}")
    return chosen


def _checkpoints(source: Path) -> Iterator[Path]:
    """The file itself, or the minima of a run."""
    if source.is_file():
        yield source
        return
    if not source.is_dir():
        raise FileNotFoundError(f"{source} does not exist: give a checkpoint or the directory of a run")
    found = sorted(path for path in source.glob("*.safetensors") if not path.name.endswith(".compact.safetensors"))
    if not found:
        known = "no trained minimum yet" if (source / SPEC).is_file() else "no checkpoint (.safetensors)"
        raise FileNotFoundError(f"{source} has {known}")
    yield from found


def _network(file: Path, data: Path | None) -> tuple[nn.Module, Tensor]:
    """The network of a checkpoint with its weights, and one sample of its data set."""
    from valleyscope.training import build_model, load_dataset
    from valleyscope.training.checkpoints import check_state, read_checkpoint

    checkpoint = read_checkpoint(file)
    described = checkpoint.spec
    if not {"model", "dataset"} <= described.keys():
        raise ValueError(
            f"{file} does not say which model it is for: only checkpoints of Valleyscope do; "
            "in Python, use valleyscope.compact(model, example)"
        )
    samples = load_dataset(described["dataset"], root=data)
    model = build_model(described["model"], samples)
    check_state(checkpoint.state, model, source=str(file))
    model.load_state_dict(checkpoint.state)
    return model.eval(), samples.x_train[:1]


def _add_rows(table: Table, name: str, found: Compact, times: list[list[Latency]]) -> None:
    report = found.report
    for place, (label, size) in enumerate((("as trained", report.before), ("compact", report.after))):
        counts = [f"{count:,}" for count in (size.parameters, size.multiply_adds, size.bytes)]
        cells = [_milliseconds(pair[place]) for pair in times]
        table.add_row("" if place else name, label, *counts, *cells)


def _milliseconds(found: Latency) -> str:
    median, low, high = (f"{1000 * seconds:.3g}" for seconds in (found.median, found.low, found.high))
    return f"{median} ms\n[dim]{low} to {high}[/dim]"


def _write(found: Compact, file: Path, out: Path, formats: tuple[str, ...]) -> list[Path]:
    from valleyscope.training.checkpoints import read_checkpoint
    from valleyscope.training.compaction import export_onnx, export_program, save_compact

    out.mkdir(parents=True, exist_ok=True)
    weights, onnx = (out / name for name in compact_files(file.name.removesuffix(".safetensors")))
    paths = {"safetensors": weights, "onnx": onnx, "pt2": weights.with_suffix(".pt2")}
    if "safetensors" in formats:
        save_compact(weights, found, spec=read_checkpoint(file).spec)
    if "onnx" in formats:
        export_onnx(onnx, found)
    if "pt2" in formats:
        export_program(paths["pt2"], found)
    return [paths[kind] for kind in formats]
