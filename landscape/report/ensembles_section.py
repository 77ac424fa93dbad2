"""Sets of networks in the report: members, mean weights and mean prediction."""

from __future__ import annotations

from valleyscope.landscape.report.html_text import loss, percent, text
from valleyscope.landscape.report.tables import table
from valleyscope.landscape.storage.ensemble_record import EnsembleRecord
from valleyscope.landscape.storage.landscape_file import Landscape

WORDS = ("mean of the weights", "mean of the predictions")


def ensembles_section(landscape: Landscape) -> str:
    """A table for each set; empty without any."""
    tables = "".join(f"<h3>{text(record.name)}</h3>{_table(record)}" for record in landscape.ensembles.values())
    caption = "<p>BatchNorm statistics of the mean of the weights are computed for it.</p>"
    return f"<section><h2>Averages and ensembles</h2>{tables}{caption}</section>\n" if tables else ""


def _table(record: EnsembleRecord) -> str:
    heads = ["network", *(f"{split} {quantity}" for split in record.splits for quantity in ("loss", "accuracy"))]
    rows = []
    for row, name in enumerate((*record.members, *WORDS)):
        cells = [text(name)]
        for score in record.score(row).values():
            error = score["error"]
            cells += [loss(score["loss"]), percent(None if error is None else 1 - error)]
        rows.append(cells)
    return table(f"set {record.name}", heads, rows, words=1)
