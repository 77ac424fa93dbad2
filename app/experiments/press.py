"""The press: reports are written in a process of their own.

To draw the figures of a report takes the interpreter a third of a second, in which an API would answer nobody.
"""

from __future__ import annotations

import logging
from pathlib import Path

from app.experiments.clerk import Clerk, NoAnswer

log = logging.getLogger(__name__)

_PATIENCE = 120.0


class Press:
    """Writes one report after the other."""

    def __init__(self) -> None:
        self._clerk = Clerk("app.experiments.printing")

    def print(self, landscape: Path, report: Path) -> None:
        """Write the report of a landscape that is on the disk; raises OSError where the disk refuses."""
        try:
            answer = self._clerk.ask({"landscape": str(landscape), "report": str(report)}, _PATIENCE)
        except NoAnswer as error:
            log.warning("the press does not answer (%s); writing %s here", error, report)
            write_here(landscape, report)
            return
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"])
        if "error" in answer:
            raise ValueError(f"{report.name}: {answer['error']}")

    def close(self) -> None:
        self._clerk.close()


def write_here(landscape: Path, report: Path) -> None:
    """Write the report in this process."""
    from landscape.report import write_report  # plotly takes long to load, and a server must start quickly
    from landscape.store import Landscape

    write_report(Landscape.open(landscape), report)
