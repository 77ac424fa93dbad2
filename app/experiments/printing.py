"""`python -m app.experiments.printing`: writes reports of landscapes, each asked for by a line of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.experiments.clerk import answer_questions
from landscape.report import write_report
from landscape.store import Landscape


def print_report(question: dict[str, Any]) -> dict[str, Any]:
    """Draw all figures of a landscape into one file."""
    report = Path(question["report"])
    write_report(Landscape.open(question["landscape"]), report)
    return {"size": report.stat().st_size}


if __name__ == "__main__":
    answer_questions(print_report)
