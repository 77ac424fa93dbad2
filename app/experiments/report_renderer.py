"""Render reports in a subprocess: drawing the figures takes a third of a second, in which the API would not answer.

`python -m valleyscope.app.experiments.report_renderer` is that subprocess.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from valleyscope.app.experiments.json_subprocess import JsonSubprocess, SubprocessFailed, serve_requests

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 120.0


class ReportRenderer:
    """Renders one report at a time."""

    def __init__(self) -> None:
        self._subprocess = JsonSubprocess("valleyscope.app.experiments.report_renderer")

    def render(self, landscape: Path, report: Path) -> None:
        """Write the report of a landscape file; raises OSError where the disk refuses."""
        try:
            answer = self._subprocess.request({"landscape": str(landscape), "report": str(report)}, _TIMEOUT_SECONDS)
        except SubprocessFailed as error:
            log.warning("report subprocess failed (%s); rendering %s in this process", error, report)
            render_in_process(landscape, report)
            return
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"])
        if "error" in answer:
            raise ValueError(f"{report.name}: {answer['error']}")

    def close(self) -> None:
        self._subprocess.close()


def render_in_process(landscape: Path, report: Path) -> None:
    from valleyscope.landscape.report import write_report  # plotly loads slowly, and a server must start quickly
    from valleyscope.landscape.storage.landscape_file import Landscape

    write_report(Landscape.open(landscape), report)


def _handle(request: dict[str, Any]) -> dict[str, Any]:
    render_in_process(Path(request["landscape"]), Path(request["report"]))
    return {}


if __name__ == "__main__":
    serve_requests(_handle)
