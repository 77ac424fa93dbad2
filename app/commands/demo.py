"""`valley demo`: a server on a free port that runs the demo recipe, with progress in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from valleyscope.app.commands.client import Client, Refused, Unreachable
from valleyscope.app.commands.serve import Server, exit_quietly_on_sigterm
from valleyscope.app.commands.watch import print_outcome, watch
from valleyscope.app.experiments.experiment_writer import REPORT
from valleyscope.app.experiments.recipes import DEMO
from valleyscope.app.settings import Settings


def demonstrate(settings: Settings, console: Console, *, once: bool) -> int:
    """Serve and run the demo, then keep serving until Ctrl-C unless `once`; returns 0 if the demo is done."""
    exit_quietly_on_sigterm()
    demo = Demo(settings, console, once)
    try:
        demo.server.run()
    except KeyboardInterrupt:
        if once:
            raise
        console.print("Stopped.", highlight=False)
    finally:
        console.show_cursor()  # an interrupted progress bar leaves it hidden
    return demo.code


class Demo:
    def __init__(self, settings: Settings, console: Console, once: bool) -> None:
        self.code = 1
        self.server = Server(settings, self._on_ready)
        self._settings = settings
        self._console = console
        self._once = once

    def _on_ready(self, address: str) -> None:
        try:
            self.code = self._run(address)
        except (Refused, Unreachable) as error:
            if not self.server.should_exit:
                print(f"valley: {error}", file=sys.stderr)
        finally:
            if self._once or self.code != 0:
                self.server.should_exit = True

    def _run(self, address: str) -> int:
        key = None if self._settings.api_key is None else self._settings.api_key.get_secret_value()
        client = Client(address, key, reconnects=0)  # the server is this process
        self._console.print(f"Serving at {address}", highlight=False, soft_wrap=True)
        row = _unfinished(client) or client.submit({"recipe": DEMO})
        self._console.print(f"Watch it at {address}/experiments/{row['id']}", highlight=False, soft_wrap=True)
        row = watch(client, row["id"], self._console)
        print_outcome(row, self._console)
        report = self._settings.home / "experiments" / row["id"] / REPORT
        if report.is_file():
            shown = report.relative_to(Path.cwd()) if report.is_relative_to(Path.cwd()) else report
            self._console.print(f"Report: {shown}", highlight=False, soft_wrap=True)
        if not self._once and row["state"] == "done":
            self._console.print(f"Still serving at {address}. Press Ctrl-C to stop.", highlight=False)
        return 0 if row["state"] == "done" else 1


def _unfinished(client: Client) -> dict[str, Any] | None:
    """A demo that an earlier call left unfinished."""
    found = (row for state in ("running", "queued") for row in client.experiments(state=state, search=DEMO))
    return next(found, None)
