"""The report_renderer: reports are written in a process of their own.

To draw the figures of a report takes the interpreter a third of a second, in which an API would answer nobody.
"""

from __future__ import annotations

import logging
from pathlib import Path

from valleyscope.app.experiments.json_subprocess import JsonSubprocess, SubprocessFailed

log = logging.getLogger(__name__)

_PATIENCE = 120.0


class ReportRenderer:
    """Writes one report after the other."""

    def __init__(self) -> None:
        self._subprocess = JsonSubprocess("valleyscope.app.experiments.report_subprocess")

    def render(self, landscape: Path, report: Path) -> None:
        """Write the report of a landscape that is on the disk; raises OSError where the disk refuses."""
        try:
            answer = self._subprocess.request({"landscape": str(landscape), "report": str(report)}, _PATIENCE)
        except SubprocessFailed as error:
            log.warning("the report_renderer does not answer (%s); writing %s here", error, report)
            render_in_process(landscape, report)
            return
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"])
        if "error" in answer:
            raise ValueError(f"{report.name}: {answer['error']}")

    def close(self) -> None:
        self._subprocess.close()


def render_in_process(landscape: Path, report: Path) -> None:
    """Write the report in this process."""
    from valleyscope.landscape.report import write_report  # plotly takes long to load, and a server must start quickly
    from valleyscope.landscape.storage.landscape_file import Landscape

    write_report(Landscape.open(landscape), report)
