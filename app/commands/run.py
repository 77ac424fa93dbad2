"""An experiment in the terminal: progress bars while it runs, a table and the verdict at its end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from valleyscope.app.experiments.experiment_writer import REPORT, ExperimentWriter
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import TrainedMinimum
from valleyscope.app.worker.local_runner import Event, LocalRunner
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord

_SINGLE = (Kind.TRAIN, Kind.FIT)  # long tasks have a bar of their own, the others share one
_TITLES = {"surfaces": "surfaces", "profiles": "profiles", "verdict": "verdict"}


class Board:
    """Progress bars: one for each minimum and curve, one for all surfaces, one for all profiles."""

    def __init__(self, experiment: ExperimentWriter, done: frozenset[str], console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.fields[info]}"),
            console=console,
        )
        self._bars: dict[str, TaskID] = {}
        for task in experiment.tasks:
            key = self._key(task)
            if key not in self._bars:
                self._bars[key] = self.progress.add_task(key, total=0.0, info="", start=False)
            bar = self._bars[key]
            finished = 1.0 if task.id in done else 0.0
            current = self.progress.tasks[bar]
            self.progress.update(bar, total=(current.total or 0.0) + 1.0, completed=current.completed + finished)

    @staticmethod
    def _key(task: Task) -> str:
        return f"{task.kind} {task.subject}" if task.kind in _SINGLE else _TITLES[task.stage]

    def __call__(self, event: Event) -> None:
        bar = self._bars[self._key(event.task)]
        self.progress.start_task(bar)
        if event.what == "advanced" and event.task.kind in _SINGLE:
            self.progress.update(bar, completed=event.share, info=_info(event))
            self._announce(event)
        elif event.what == "done" and event.task.kind in _SINGLE:
            self.progress.update(bar, completed=1.0)
            if not self.console.is_terminal:
                self.console.print(f"{self._key(event.task)}: done{_outcome(event)}")
        elif event.what == "done":
            self.progress.advance(bar)
        elif event.what == "failed":
            self.console.print(f"[red]{event.task.id} failed:[/red] {event.details['reason']}", highlight=False)

    def _announce(self, event: Event) -> None:
        forecast = event.details.get("forecast")
        if forecast is not None:
            self.console.print(f"{event.task.subject}: {forecast['text']}", highlight=False)


def run_in_terminal(
    spec: Spec,
    directory: Path,
    *,
    workers: int | None = None,
    data_root: Path | None = None,
    checkpoints: Mapping[str, Path] | None = None,
    console: Console | None = None,
) -> int:
    """Run a spec to its end, or on from where an earlier run stopped; returns an exit code."""
    console = console or Console(file=sys.stdout, emoji=False)
    experiment = ExperimentWriter(spec, directory)
    try:
        scheduler = LocalRunner(experiment, workers=workers, data_root=data_root, checkpoints=checkpoints)
        board = Board(experiment, scheduler.already_done, console)
        scheduler.watch = board
        with board.progress:
            scheduler.run()
        experiment.finish()
        conclude(experiment.landscape, directory, console)
        for task_id, reason in scheduler.failures.items():
            console.print(f"[red]{task_id}:[/red] {reason}", highlight=False)
        return 1 if scheduler.failures else 0
    finally:
        experiment.close()


def conclude(landscape: Landscape, directory: Path, console: Console) -> None:
    """Print the table of minima, the verdict and where the report is."""
    if landscape.minima:
        console.print(minima_table(landscape.minima))
    if landscape.verdict is not None:
        console.print(f"[bold]{landscape.verdict['kind'].capitalize()}.[/bold]", highlight=False)
        console.print(landscape.verdict["sentence"], highlight=False)
    console.print(f"Report: {directory / REPORT}", highlight=False, soft_wrap=True)


def minima_table(minima: Mapping[str, MinimumRecord]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("name")
    for column in ("train loss", "test loss", "train acc", "test acc", "zero weights", "zero groups", "time"):
        table.add_column(column, justify="right")
    for minimum in minima.values():
        final = minimum.final
        table.add_row(
            minimum.name,
            f"{final['train_loss']:.3g}",
            f"{final['test_loss']:.3g}",
            *(f"{100 * final[key]:.1f} %" for key in ("train_accuracy", "test_accuracy", "sparsity", "zero_groups")),
            f"{final['seconds']:.0f} s",
        )
    return table


def _info(event: Event) -> str:
    details = event.details
    record = details.get("record")
    if record is not None:
        pruned = f", {100 * record['zero_groups']:.0f} % zero" if record["zero_groups"] else ""
        return f"loss {record['train_loss']:.3g}, test {100 * record['test_accuracy']:.1f} %{pruned}"
    if "epoch" in details:
        return f"epoch {details['epoch'] + 1}/{details['epochs']}"
    return ""


def _outcome(event: Event) -> str:
    if not isinstance(event.result, TrainedMinimum):
        return ""
    final = event.result.record.final
    return f", train loss {final['train_loss']:.3g}, test accuracy {100 * final['test_accuracy']:.1f} %"
