"""`valley run`: an experiment in the terminal, with progress bars, a table of minima and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from valleyscope.app.commands.progress_view import ProgressView, print_verdict
from valleyscope.app.experiments.experiment_writer import REPORT, ExperimentWriter
from valleyscope.app.experiments.progress import ProgressEstimator
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.worker.local_runner import Event, LocalRunner
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord


def run_in_terminal(
    spec: Spec,
    directory: Path,
    *,
    workers: int | None = None,
    data_root: Path | None = None,
    checkpoints: Mapping[str, Path] | None = None,
    console: Console,
) -> int:
    """Run or continue a spec until its end; returns an exit code."""
    experiment = ExperimentWriter(spec, directory)
    try:
        runner = LocalRunner(experiment, workers=workers, data_root=data_root, checkpoints=checkpoints)
        view = ProgressView(spec, console, runner.already_done)
        runner.watch = _LocalProgress(view, experiment, runner.already_done)
        with view.progress:
            runner.run()
        experiment.finish()
        _print_results(experiment.landscape, directory, console)
        for task_id, reason in runner.failures.items():
            console.print(f"[red]{task_id}:[/red] {reason}", highlight=False)
        return 1 if runner.failures else 0
    finally:
        experiment.close()


class _LocalProgress:
    def __init__(self, view: ProgressView, experiment: ExperimentWriter, done: frozenset[str]) -> None:
        self._view = view
        self._estimator = ProgressEstimator(experiment.spec, experiment.tasks)
        self._done = set(done)
        self._shares: dict[str, float] = {}
        self._tasks = len(experiment.tasks)
        self._show_total()

    def __call__(self, event: Event) -> None:
        id, details = event.task.id, event.details
        if event.what == "advanced":
            self._shares[id] = event.share
            self._view.advance(id, event.share, details.get("record") or details)
            if "forecast" in details:
                self._view.print(f"{event.task.subject}: {details['forecast']['text']}")
        elif event.what == "done":
            self._done.add(id)
            self._view.finish(id)
        elif event.what == "failed":
            self._view.print(f"{id} failed: {details['reason']}")
        self._show_total()

    def _show_total(self) -> None:
        share = self._estimator.share(self._done, self._shares)
        if len(self._done) == self._tasks:
            self._view.set_total(1.0, "done", None)
        else:
            self._view.set_total(share, self._estimator.stage(self._done), self._estimator.seconds_left(share))


def _print_results(landscape: Landscape, directory: Path, console: Console) -> None:
    if landscape.minima:
        console.print(_minima_table(landscape.minima))
    if landscape.verdict is not None:
        print_verdict(console, landscape.verdict["kind"], landscape.verdict["sentence"])
    console.print(f"Report: {directory / REPORT}", highlight=False, soft_wrap=True)


def _minima_table(minima: Mapping[str, MinimumRecord]) -> Table:
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
            *(_percent(final.get(key)) for key in ("train_accuracy", "test_accuracy", "sparsity", "zero_groups")),
            f"{final['seconds']:.0f} s",
        )
    return table


def _percent(share: float | None) -> str:
    """An empty cell for losses without accuracy."""
    return "" if share is None else f"{100 * share:.1f} %"
