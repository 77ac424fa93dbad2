"""`python -m app.experiments.printing`: writes reports of landscapes, each asked for by a line of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from valleyscope.app.experiments.json_subprocess import serve_requests
from valleyscope.landscape.report import write_report
from valleyscope.landscape.storage.landscape_file import Landscape


def render_report(question: dict[str, Any]) -> dict[str, Any]:
    """Draw all figures of a landscape into one file."""
    report = Path(question["report"])
    write_report(Landscape.open(question["landscape"]), report)
    return {"size": report.stat().st_size}


if __name__ == "__main__":
    serve_requests(render_report)
