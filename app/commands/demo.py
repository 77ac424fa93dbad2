"""`valley demo`: a server on a free port of this machine, the demo recipe on it, live in the terminal."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from valleyscope.app.commands.client import Client, Refused, Unreachable
from valleyscope.app.commands.serve import Server, end_quietly
from valleyscope.app.commands.watch import conclude, watch
from valleyscope.app.experiments.experiment_writer import REPORT
from valleyscope.app.experiments.recipes import DEMO
from valleyscope.app.settings import Settings

log = logging.getLogger(__name__)


def demonstrate(settings: Settings, console: Console, *, once: bool) -> int:
    """Serve, run the demo, and keep serving until Ctrl-C, or end with the demo if `once`.

    Returns 0 when the demo came to its end, whenever the serving was ended.
    """
    end_quietly()
    show = Show(settings, console, once)
    try:
        show.server.run()
    except KeyboardInterrupt:
        if once:
            raise
        console.print("Stopped.", highlight=False)
    finally:
        console.show_cursor()  # the bars hide it, and may have been cut off
    return show.code


class Show:
    """What happens in the terminal while the server runs."""

    def __init__(self, settings: Settings, console: Console, once: bool) -> None:
        self.code = 1
        self.server = Server(settings, self._play)
        self._settings = settings
        self._console = console
        self._once = once

    def _play(self, address: str) -> None:
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
        client = Client(address, key, reconnects=0)  # the server is this process, so it does not come back
        self._console.print(f"Serving at {address}", highlight=False, soft_wrap=True)
        row = _unfinished(client) or client.submit({"recipe": DEMO})
        self._console.print(f"Watch it at {address}/experiments/{row['id']}", highlight=False, soft_wrap=True)
        row = watch(client, row["id"], self._console)
        conclude(row, self._console)
        report = self._settings.home / "experiments" / row["id"] / REPORT
        if report.is_file():
            self._console.print(f"Report: {_shown(report)}", highlight=False, soft_wrap=True)
        if not self._once and row["state"] == "done":
            self._console.print(f"Still serving at {address}; Ctrl-C ends it.", highlight=False)
        return 0 if row["state"] == "done" else 1


def _unfinished(client: Client) -> dict[str, Any] | None:
    """A demo that an earlier call left unfinished: it goes on by itself."""
    for state in ("running", "queued"):
        for row in client.experiments(state=state, search=DEMO):
            return row
    return None


def _shown(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
