"""Forks of a run in the report: what their curves say, the figure, and a table."""

from __future__ import annotations

from collections.abc import Callable

from valleyscope.landscape.analysis.fork_curves import Range, fork_curves
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.report.html_text import MISSING, barrier, loss, percent, text
from valleyscope.landscape.report.tables import table
from valleyscope.landscape.storage.landscape_file import Landscape

_COLUMNS = {
    "barrier": ("barrier to the trunk", barrier),
    "rise": ("rise to the trunk", barrier),
    "train_loss": ("train loss", loss),
    "test_accuracy": ("test accuracy", percent),
    "zero_groups": ("zero groups", percent),
}


def forks_section(landscape: Landscape, figure: Callable[..., str]) -> str:
    """The section; empty without forks. `figure` makes a place for a figure of a kind."""
    found = fork_curves(landscape)
    if found is None:
        return ""
    said = "".join(f"<p>{text(remark)}</p>" for remark in found.remarks())
    plot = figure("barrier and rise to the trunk over the epoch of the fork", kind="forks")
    rows = [
        [text(curve.kind), str(point.epoch), *(_cell(point.over_seeds(name), shown) for name, (_, shown) in columns)]
        for columns in [_COLUMNS.items()]
        for curve in found.curves
        for point in curve.points
    ]
    heads = ["fork", "epoch", *(title for title, _ in _COLUMNS.values())]
    caption = f"<p>{text(STYLE['forks']['levels'])} Ranges are the lowest and highest of the seeds.</p>"
    return f"<section><h2>Forks</h2>{said}{plot}{caption}{table('forks', heads, rows, words=1)}</section>\n"


def _cell(found: Range | None, shown: Callable[[float | None], str]) -> str:
    if found is None:
        return MISSING
    if found.low == found.high:
        return shown(found.mean)
    return f"{shown(found.mean)} <small>{shown(found.low)} to {shown(found.high)}</small>"
