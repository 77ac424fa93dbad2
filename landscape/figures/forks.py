"""Barrier and rise between a run and its forks over the epoch of the fork: means over seeds, and single seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import plotly.graph_objects as go

from valleyscope.landscape.analysis.fork_curves import ForkCurve, ForkCurves
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.theme import Parts, Theme, escaped, new_figure
from valleyscope.landscape.plot_style import STYLE

LOOK: Final = STYLE["forks"]


def forks(found: ForkCurves, theme: Theme = "light") -> go.Figure:
    """A panel for each quantity; a bar spans the seeds, or is the interval of the only one."""
    paint = colours_of(curve.kind for curve in found.curves)
    traces = [trace for panel in LOOK["panels"] for curve in found.curves for trace in _curve(curve, panel, paint)]
    ticks = epoch_ticks(found)
    layout = {**LOOK["layout"], "shapes": [*_levels(found)]}
    for panel in LOOK["panels"]:
        layout |= {
            f"xaxis{panel['axis']}": {**LOOK["xaxis"], **ticks, **panel["xaxis"]},
            f"yaxis{panel['axis']}": {**LOOK["yaxis"], **panel["yaxis"]},
        }
    return new_figure(traces, layout, theme)


def place_of(epoch: float) -> float:
    """Where an epoch stands: early ones, in which most changes, have more room."""
    return math.log2(1 + epoch)


def epoch_ticks(found: ForkCurves) -> Parts:
    epochs = sorted({point.epoch for curve in found.curves for point in curve.points})
    return {"tickvals": [place_of(epoch) for epoch in epochs], "ticktext": [str(epoch) for epoch in epochs]}


def levels_of(found: ForkCurves) -> Iterator[tuple[float, Parts]]:
    """Levels to compare with: the tolerance, and the barrier to another initialisation."""
    yield found.tolerance, LOOK["tolerance"]
    if found.unrelated is not None and math.isfinite(found.unrelated.value):
        yield found.unrelated.value, LOOK["unrelated"]


def _levels(found: ForkCurves) -> Iterator[Parts]:
    for value, line in levels_of(found):
        yield {
            "type": "line",
            "xref": "x domain",
            "x0": 0,
            "x1": 1,
            "yref": "y",
            "y0": value,
            "y1": value,
            "line": line,
        }


def _curve(curve: ForkCurve, panel: Any, paint: dict[str, str]) -> Iterator[Parts]:
    quantity, axes = panel["quantity"], {"xaxis": f"x{panel['axis']}", "yaxis": f"y{panel['axis']}"}
    known = [(point, over) for point in curve.points if (over := point.over_seeds(quantity)) is not None]
    colour, label = paint[curve.kind], escaped(curve.kind)
    yield {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [place_of(point.epoch) for point, _ in known],
        "y": [over.mean for _, over in known],
        "error_y": {
            **LOOK["bars"],
            "type": "data",
            "symmetric": False,
            "array": [over.high - over.mean for _, over in known],
            "arrayminus": [over.mean - over.low for _, over in known],
        },
        "customdata": [point.epoch for point, _ in known],
        "name": label,
        "legendgroup": label,
        "showlegend": quantity == "barrier",
        "line": {**LOOK["line"], "color": colour},
        "marker": {**LOOK["marker"], "color": colour},
        "hovertemplate": f"<b>{label}</b>, fork at epoch %{{customdata}}<br>{quantity} %{{y:.3g}} nats<extra></extra>",
        **axes,
    }
    single = [
        (point.epoch, fork.name, one.value)
        for point in curve.points
        for fork in point.forks
        if len(point.forks) > 1 and (one := fork.estimate(quantity)) is not None and math.isfinite(one.value)
    ]
    if single:
        yield {
            "type": "scatter",
            "mode": "markers",
            "x": [place_of(epoch) for epoch, *_ in single],
            "y": [value for *_, value in single],
            "text": [escaped(name) for _, name, _ in single],
            "legendgroup": label,
            "showlegend": False,
            "marker": {**LOOK["single"], "color": colour},
            "hovertemplate": f"%{{text}}<br>{quantity} %{{y:.3g}} nats<extra></extra>",
            **axes,
        }
