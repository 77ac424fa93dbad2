"""Accuracy of pruned networks over the multiply-adds that they keep, coloured by the rise of the loss from SGD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import plotly.graph_objects as go

from valleyscope.landscape.analysis.method_table import MethodRow
from valleyscope.landscape.figures.theme import Theme, escaped, new_figure
from valleyscope.landscape.plot_style import STYLE

_LOOK: Final = STYLE["pareto"]


def pareto(rows: Sequence[MethodRow], theme: Theme = "light") -> go.Figure:
    """One point for each row with accuracy and multiply-adds; its bar is the standard deviation over seeds."""
    shown = [row for row in rows if {"macs", "test_accuracy"} <= row.values.keys()]
    rises = [_mean(row, "rise") for row in shown]
    trace = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [_mean(row, "macs") for row in shown],
        "y": [_mean(row, "test_accuracy") for row in shown],
        "error_y": {
            "type": "data",
            "array": [row.values["test_accuracy"].deviation or 0 for row in shown],
            "thickness": 1,
            "width": 0,
        },
        "text": [escaped(row.name) for row in shown],
        **_LOOK["text"],
        "marker": {**_LOOK["marker"], "color": rises, "cmin": 0, "colorbar": _LOOK["colorbar"]},
        "customdata": rises,
        "hovertemplate": "<b>%{text}</b><br>%{y:.1%} test accuracy<br>%{x:.0%} of the multiply-adds"
        "<br>rise to SGD %{customdata:.3g} nats<extra></extra>",
    }
    layout = {**_LOOK["layout"], "xaxis": _LOOK["xaxis"], "yaxis": _LOOK["yaxis"]}
    return new_figure([trace], layout, theme)


def _mean(row: MethodRow, column: str) -> Any:
    """The mean of a column; SGD itself has no rise to SGD."""
    return row.values[column].mean if column in row.values else 0
