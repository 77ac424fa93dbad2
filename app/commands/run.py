"""`valley run`: an experiment in the terminal, with progress bars, a table of minima and the verdict."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from valleyscope.app.commands.progress_view import ProgressView, print_verdict
from valleyscope.app.experiments.curvature_spec import size_errors
from valleyscope.app.experiments.experiment_writer import REPORT, ExperimentWriter
from valleyscope.app.experiments.model_info import BadModel, ModelInfoCache
from valleyscope.app.experiments.progress import ProgressEstimator
from valleyscope.app.experiments.spec import BadSpec, Spec
from valleyscope.app.settings import Settings
from valleyscope.app.worker.local_runner import Event, LocalRunner
from valleyscope.landscape.analysis.curvature_summary import spectrum_cells, trial_text
from valleyscope.landscape.analysis.method_table import COLUMNS, MethodRow, method_table, remarks
from valleyscope.landscape.storage.landscape_file import Landscape

log = logging.getLogger(__name__)

_COMPARED = ("test_accuracy", "train_loss", "zero_groups", "macs", "latency_32", "rise", "barrier", "time")


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
    if spec.curvature is not None:
        _check_curvature(spec, data_root)
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


def _check_curvature(spec: Spec, data_root: Path | None) -> None:
    """Refuse a spectrum that the network or the memory is too small for, before anything is trained."""
    models = ModelInfoCache(data_root, Settings.load().max_parameters)
    try:
        errors = size_errors(spec, models.inspect(spec.model, spec.dataset).parameters)
        if wrong := [f"{'.'.join(map(str, error.path))}: {error.message}" for error in errors]:
            raise BadSpec("; ".join(wrong))
    except BadModel as error:  # training will say so, too; a busy machine may only be slow
        log.warning("the size of the network is not known yet: %s", error)
    finally:
        models.close()


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
        console.print(_minima_table(landscape))
    if rows := method_table(landscape):
        console.print(_methods_table(rows))
        for remark in remarks(rows):
            console.print(f"- {remark}", highlight=False, markup=False)
    for name, record in landscape.curvature.items():
        for run, trial in record.trials.items():
            console.print(f"Theorem, from {name}: {trial_text(run, trial)}", highlight=False, markup=False)
    if landscape.verdict is not None:
        print_verdict(console, landscape.verdict["kind"], landscape.verdict["sentence"])
    console.print(f"Report: {directory / REPORT}", highlight=False, soft_wrap=True)


def _minima_table(landscape: Landscape) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", overflow="fold")  # a long name says which fork it is
    for column in ("train loss", "test loss", "train acc", "test acc", "zero weights", "zero groups", "time"):
        table.add_column(column, justify="right")
    if landscape.curvature:
        table.add_column("λ max", justify="right")
        table.add_column("trace", justify="right")
    for minimum in landscape.minima.values():
        final = minimum.final
        table.add_row(
            minimum.name,
            f"{final['train_loss']:.3g}",
            f"{final['test_loss']:.3g}",
            *(_percent(final.get(key)) for key in ("train_accuracy", "test_accuracy", "sparsity", "zero_groups")),
            f"{final['seconds']:.0f} s",
            *(_spectrum(landscape, minimum.name) if landscape.curvature else ()),
        )
    return table


def _methods_table(rows: Sequence[MethodRow]) -> Table:
    """Pruning methods side by side, with their spread over seeds; the report has the other columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("network")
    shown = [column for column in _COMPARED if any(column in row.values for row in rows)]
    for column in shown:
        table.add_column(COLUMNS[column], justify="right")
    for row in rows:
        table.add_row(row.name, *(row.cell(column) or "" for column in shown))
    return table


def _spectrum(landscape: Landscape, name: str) -> tuple[str, str]:
    """Largest eigenvalue, and trace with its standard error."""
    found = spectrum_cells(landscape.curvature.get(name))
    if not found:
        return "", ""
    return f"{found['largest']:.3g}", f"{found['trace']:.3g}±{found['trace_error']:.1g}"


def _percent(share: float | None) -> str:
    """An empty cell for losses without accuracy."""
    return "" if share is None else f"{100 * share:.1f} %"
