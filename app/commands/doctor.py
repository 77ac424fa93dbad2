"""`valley doctor`: versions, devices, settings, database, home and data, and what is missing."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from valleyscope.app.commands.premises import examine_premises
from valleyscope.app.devices import devices_for
from valleyscope.app.settings import Settings
from valleyscope.training.sources import SOURCES, data_root


def examine(settings: Settings, console: Console) -> int:
    """Print what this installation has; returns 1 where something that it needs is missing."""
    problems: list[str] = []
    console.print(_facts(settings, problems))
    console.print(_settings(settings))
    console.print(_datasets(settings))
    console.print(examine_premises(settings, problems))
    for problem in problems:
        console.print(f"[red]missing:[/red] {escape(problem)}", highlight=False, soft_wrap=True)
    if not problems:
        console.print("Nothing is missing.")
    return 1 if problems else 0


def _facts(settings: Settings, problems: list[str]) -> Table:
    table = Table(title="this installation", title_justify="left", show_header=False)
    table.add_row("python", f"{platform.python_version()} on {platform.platform()}")
    for library in _libraries():
        try:
            table.add_row(library, version(library))
        except PackageNotFoundError:
            table.add_row(library, "[red]missing[/red]")
            problems.append(f"the library {library}: pip install valleyscope")
    for number, device in enumerate(_devices(problems)):
        table.add_row("devices" if number == 0 else "", device)
    table.add_row("workers", f"{len(devices_for(settings.workers))} (one process each)")
    return table


def _settings(settings: Settings) -> Table:
    """What holds here, by option, environment or file; secrets are masked."""
    table = Table(title="settings (VALLEY_*, or valley.toml under the home)", title_justify="left", show_header=False)
    for name, value in settings.shown():
        table.add_row(name, value)
    return table


def _libraries() -> list[str]:
    try:
        lines = requires("valleyscope") or []
    except PackageNotFoundError:
        lines = []
    plain = [line for line in lines if "extra ==" not in line]
    return ["valleyscope", *(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in plain)]


def _devices(problems: list[str]) -> list[str]:
    try:
        import torch
    except ImportError as error:
        problems.append(f"a working torch: {error}")
        return ["unknown, since torch does not load"]
    devices = [f"cpu, {os.cpu_count()} cores"]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices.append(f"cuda:{index} {properties.name}, {properties.total_memory / 2**30:.0f} GiB")
    return devices


def _datasets(settings: Settings) -> Table:
    root = data_root(settings.data)
    table = Table(title=f"data sets under {root}", title_justify="left")
    table.add_column("name")
    table.add_column("here?")
    for name, source in SOURCES.items():
        absent = source.missing_files(root) if source.files else ()
        table.add_row(name, f"no: {', '.join(absent)} (downloaded at first use)" if absent else "yes")
    table.add_row("npz:PATH", "your own arrays x_train, y_train, x_test, y_test")
    return table
