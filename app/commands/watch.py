"""An experiment on a server, live in the terminal: bars while it runs, the verdict at its end."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from valleyscope.app.commands.client import FINAL, Client, Event
from valleyscope.app.experiments.plan import plane_tiles
from valleyscope.app.experiments.spec import Spec

_STEP = 0.1


def watch(client: Client, id: str, console: Console) -> dict[str, Any]:
    """Show what happens until the experiment has ended; returns it as it is then."""
    row = client.experiment(id)
    if row["state"] not in FINAL:
        board = Board(Spec.model_validate(row["spec"]), console)
        with board.progress:
            for event in client.events(id):
                board.hear(event)
        row = client.experiment(id)
    return row


def conclude(row: dict[str, Any], console: Console) -> None:
    """Say how an experiment ended."""
    if row["state"] == "done" and row["verdict_kind"]:
        console.print(f"[bold]{row['verdict_kind'].capitalize()}.[/bold]", highlight=False)
        console.print(row["sentence"], highlight=False, markup=False)
    elif row["error"]:
        console.print(f"[red]{row['state']}:[/red]", end=" ")
        console.print(row["error"], highlight=False, markup=False)
    else:
        console.print(f"{row['name']} is {row['state']}.", highlight=False, markup=False)


class Board:
    """One bar for all, one for each minimum, curve and plane. Where there is no terminal, a line now and then."""

    def __init__(self, spec: Spec, console: Console) -> None:
        self._console = console
        self._tiles = {name: len(plane_tiles(spec, name)) for name in spec.all_planes}
        self._said = -1.0
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[info]}"),
            console=console,
        )
        self._all = self._bar(spec.name)
        self._minima = {name: self._bar(f"  train {name}") for name in spec.minima}
        self._curves = {name: self._bar(f"  curve {name}") for name in spec.all_curves}
        self._planes = {name: self._bar(f"  plane {name}", total=self._tiles[name]) for name in spec.all_planes}

    def hear(self, event: Event) -> None:
        data = event.data
        match event.kind:
            case "state":
                self._say(f"{data['state']}" + (f": {data['error']}" if data.get("error") else ""))
            case "progress" if "progress" in data:
                self._report(data)
            case "progress" if str(data.get("task", "")).startswith("train:"):
                self._fill(self._minima.get(data["task"].partition(":")[2]))
            case "epoch" if data["minimum"] in self._minima:
                info = f"loss {_short(data['train_loss'])}, test {100 * data['test_accuracy']:.1f} %"
                if data["zero_groups"]:
                    info += f", {100 * data['zero_groups']:.0f} % of the groups zero"
                share = data["epoch"] / data["epochs"] if data.get("epochs") else 1.0
                self._advance(self._minima[data["minimum"]], share, info)
            case "curve" if data["curve"] in self._curves:
                info = f"loss {_short(data['loss'])}" if "loss" in data else ""
                self._advance(self._curves[data["curve"]], data["share"], info)
            case "tile" if data["plane"] in self._planes:
                self.progress.update(self._planes[data["plane"]], advance=1, visible=True)
            case "warning" | "error":
                about = data.get("minimum") or data.get("task") or event.kind
                self._console.print(f"{about}: {data.get('message', '')}", highlight=False, markup=False)

    def _report(self, data: dict[str, Any]) -> None:
        left = data.get("seconds_left")
        info = data["stage"] + (f", {_duration(left)} left" if left is not None else "")
        self.progress.update(self._all, completed=data["progress"], info=info)
        if not self._console.is_terminal and data["progress"] >= self._said + _STEP:
            self._said = data["progress"]
            self._console.print(f"{100 * data['progress']:.0f} % ({info})", highlight=False)

    def _say(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(text, highlight=False, markup=False)
        if text == "done":
            self._fill(self._all)

    def _bar(self, title: str, total: float = 1.0) -> TaskID:
        return self.progress.add_task(title, total=total, info="", visible=not title.startswith(" "))

    def _advance(self, bar: TaskID, share: float, info: str) -> None:
        self.progress.update(bar, completed=share, info=info, visible=True)

    def _fill(self, bar: TaskID | None) -> None:
        if bar is not None:
            self.progress.update(bar, completed=1.0)


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _duration(seconds: float) -> str:
    """Seconds for people.

    >>> _duration(75)
    '1 min 15 s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
