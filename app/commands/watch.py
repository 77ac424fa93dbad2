"""Watch an experiment on a server: progress bars while it runs, then the verdict."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from valleyscope.app.commands.client import FINAL, Client, Event
from valleyscope.app.commands.progress_view import ProgressView, print_verdict
from valleyscope.app.experiments.spec import Spec


def watch(client: Client, id: str, console: Console) -> dict[str, Any]:
    """Show the progress of an experiment until it ends; returns its final state."""
    row = client.experiment(id)
    if row["state"] not in FINAL:
        view = ProgressView(Spec.model_validate(row["spec"]), console)
        with view.progress:
            for event in client.events(id):
                show_event(view, event)
        row = client.experiment(id)
    return row


def print_outcome(row: dict[str, Any], console: Console) -> None:
    if row["state"] == "done" and row["verdict_kind"]:
        print_verdict(console, row["verdict_kind"], row["sentence"])
    elif row["error"]:
        console.print(f"[red]{row['state']}:[/red]", end=" ")
        console.print(row["error"], highlight=False, markup=False)
    else:
        console.print(f"{row['name']} is {row['state']}.", highlight=False, markup=False)


def show_event(view: ProgressView, event: Event) -> None:
    data = event.data
    match event.kind:
        case "state" if data["state"] == "done":
            view.set_total(1.0, "done", None)
        case "state" if not view.console.is_terminal:
            view.print(data["state"] + (f": {data['error']}" if data.get("error") else ""))
        case "progress" if "progress" in data:
            view.set_total(data["progress"], data["stage"], data.get("seconds_left"))
        case "progress" if "products" in data:
            view.advance(data["working"], data["share"], data)
        case "progress" | "tile" if "seconds" in data:
            view.finish(data["task"])
        case "epoch":
            share = data["epoch"] / data["epochs"] if data.get("epochs") else 1.0
            view.advance(f"train:{data['minimum']}", share, data)
        case "curve":
            view.advance(f"fit:{data['curve']}", data["share"], data)
        case "warning" | "error":
            about = data.get("minimum") or data.get("task") or event.kind
            view.print(f"{about}: {data.get('message', '')}")
