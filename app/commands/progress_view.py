"""Progress bars of an experiment, for `valley run` and for commands that watch a server."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from valleyscope.app.experiments.plan import Kind, Task, plan
from valleyscope.app.experiments.spec import Spec

_LOG_STEP = 0.1
_TITLES = {
    Kind.TRAIN: "  train {}",
    Kind.FIT: "  curve {}",
    Kind.FRAME: "  plane {}",
    Kind.SURFACE: "  plane {}",
    Kind.ESTIMATE: "  plane {}",
    Kind.PICTURE: "  plane {}",
    Kind.CURVATURE: "  curvature {}",
    Kind.SNAPSHOT_CURVATURE: "  curvature {}, snapshots",
    Kind.DIRECTIONS: "  directions {}",
    Kind.TRIAL: "  theorem {}",
    Kind.VERDICT: "  verdict",
}


class ProgressView:
    """A bar for the experiment, and one for each minimum, curve and plane; plain lines if there is no terminal."""

    def __init__(self, spec: Spec, console: Console, done: Set[str] = frozenset()) -> None:
        self.console = console
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[info]}"),
            console=console,
        )
        self._logged = -1.0
        self._total = self.progress.add_task(spec.name, total=1.0, info="")
        self._bars: dict[str, TaskID] = {}
        self._finished: set[str] = set()
        titles: dict[str, TaskID] = {}
        for task in plan(spec):
            title = _title(task)
            if title not in titles:
                titles[title] = self.progress.add_task(title, total=0.0, info="", visible=False, start=False)
            bar = self._bars[task.id] = titles[title]
            self.progress.update(bar, total=(self._of(bar).total or 0.0) + 1.0)
        for id in done:
            self._add_finished(id)

    def set_total(self, share: float, stage: str, seconds_left: float | None) -> None:
        """Show the progress of the whole experiment."""
        info = stage + (f", {_duration(seconds_left)} left" if seconds_left is not None else "")
        self.progress.update(self._total, completed=share, info=info)
        if not self.console.is_terminal and share >= self._logged + _LOG_STEP:
            self._logged = share
            self.print(f"{100 * share:.0f} % ({info})")

    def advance(self, task: str, share: float, metrics: Mapping[str, Any]) -> None:
        """Show the progress of a training run or a curve fit, and its latest metrics."""
        bar = self._bars.get(task)
        if bar is not None and self._of(bar).total == 1.0:
            self.progress.start_task(bar)
            self.progress.update(bar, completed=share, visible=True)
            if info := _describe(metrics):
                self.progress.update(bar, info=info)

    def finish(self, task: str) -> None:
        """Count a finished task."""
        if task in self._bars and task not in self._finished:
            self._add_finished(task)
            bar = self._of(self._bars[task])
            if not self.console.is_terminal and bar.total == 1.0:
                info = bar.fields["info"]
                self.print(f"{bar.description.strip()}: done" + (f", {info}" if info else ""))

    def print(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text, highlight=False, markup=False)

    def _add_finished(self, task: str) -> None:
        self._finished.add(task)
        bar = self._bars[task]
        self.progress.start_task(bar)
        completed = 1.0 if self._of(bar).total == 1.0 else self._of(bar).completed + 1.0
        self.progress.update(bar, completed=completed, visible=True)

    def _of(self, bar: TaskID) -> Any:
        return self.progress.tasks[bar]


def print_verdict(console: Console, kind: str, sentence: str) -> None:
    """The kind in bold, then what the sentence says beside it."""
    opening = f"{kind.capitalize()}."
    console.print(f"[bold]{opening}[/bold]", highlight=False)
    console.print(sentence.removeprefix(opening).strip(), highlight=False, markup=False)


def _title(task: Task) -> str:
    return _TITLES.get(task.kind, "  profiles").format(task.subject)


def _describe(metrics: Mapping[str, Any]) -> str:
    """The metrics of an epoch, or the loss of a curve fit."""
    if "test_accuracy" not in metrics:
        if "products" in metrics:
            return f"{metrics['products']} of about {metrics['expected']} products"
        return f"loss {_short(metrics['loss'])}" if "loss" in metrics else ""
    zero = f", {100 * metrics['zero_groups']:.0f} % zero groups" if metrics["zero_groups"] else ""
    accuracy = metrics["test_accuracy"]
    test = _short(metrics["test_loss"]) if accuracy is None else f"{100 * accuracy:.1f} %"
    return f"loss {_short(metrics['train_loss'])}, test {test}{zero}"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _duration(seconds: float) -> str:
    """Seconds in words.

    >>> _duration(75)
    '1 min 15 s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
