"""Accuracy of pruned networks over the multiply-adds that they keep, coloured by the rise of the loss from SGD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import plotly.graph_objects as go

from valleyscope.landscape.analysis.method_table import MethodRow
from valleyscope.landscape.figures.contour import colour_scale
from valleyscope.landscape.figures.theme import Theme, escaped, new_figure
from valleyscope.landscape.plot_style import STYLE

_LOOK: Final = STYLE["pareto"]
_ROOM: Final = _LOOK["room"]
_LABELS: Final = _LOOK["labels"]

Box = tuple[float, float, float, float]


def pareto(rows: Sequence[MethodRow], theme: Theme = "light") -> go.Figure:
    """One point for each row with accuracy and multiply-adds; its bar is the standard deviation over seeds.

    Networks with less than half of the best accuracy stand at the lower edge, with their number: the others need the
    room. A name that would cover others is left out; it stands beside the pointer.
    """
    shown = [row for row in rows if {"macs", "test_accuracy"} <= row.values.keys()]
    accuracies = [_mean(row, "test_accuracy") for row in shown]
    rises = [_mean(row, "rise") for row in shown]
    best = max([0, *accuracies])
    low = [accuracy < best / 2 for accuracy in accuracies]
    lowest = min([best, *(accuracy for accuracy, is_low in zip(accuracies, low, strict=True) if not is_low)])
    span = max(best - lowest, _ROOM["least"])
    bottom, top = max(0, lowest - _ROOM["below"] * span), best + _ROOM["above"] * span
    x = [_mean(row, "macs") for row in shown]
    y = [bottom if is_low else accuracy for accuracy, is_low in zip(accuracies, low, strict=True)]
    names = [
        f"{row.name} {100 * accuracy:.1f}%" if is_low else row.name
        for row, accuracy, is_low in zip(shown, accuracies, low, strict=True)
    ]
    deviations = [
        0 if is_low else row.values["test_accuracy"].deviation or 0 for row, is_low in zip(shown, low, strict=True)
    ]
    positions = _positions(x, y, names, bottom, top)
    trace = {
        "type": "scatter",
        "mode": "markers+text",
        "cliponaxis": False,
        "x": x,
        "y": y,
        "error_y": {**_LOOK["bars"], "type": "data", "array": deviations},
        "text": [escaped(name) if position else "" for name, position in zip(names, positions, strict=True)],
        "textposition": [position or "top center" for position in positions],
        "marker": {
            **_LOOK["marker"],
            "color": rises,
            "cmin": 0,
            "cmax": max([_ROOM["rise"], *(rise for rise, is_low in zip(rises, low, strict=True) if not is_low)]),
            "symbol": [_LOOK["symbols"][is_low] for is_low in low],
            "colorscale": colour_scale("loss"),
            "colorbar": _LOOK["colorbar"],
        },
        "customdata": [
            [accuracy, rise, escaped(row.name)] for row, accuracy, rise in zip(shown, accuracies, rises, strict=True)
        ],
        "hovertemplate": "<b>%{customdata[2]}</b><br>%{customdata[0]:.1%} test accuracy"
        "<br>%{x:.0%} of the multiply-adds<br>rise to SGD %{customdata[1]:.3g} nats<extra></extra>",
    }
    xaxis = {**_LOOK["xaxis"], "range": [0, _ROOM["right"]]}
    layout = {**_LOOK["layout"], "xaxis": xaxis, "yaxis": {**_LOOK["yaxis"], "range": [bottom, top]}}
    return new_figure([trace], layout, theme)


def _positions(x: list[float], y: list[float], names: list[str], bottom: float, top: float) -> list[str | None]:
    """On which side of its point each name stands: where it covers least of the points and of the names before.

    None where it would cover too much of them on every side.
    """
    width, height = _LOOK["frame"]
    mark = _LABELS["mark"]
    places = [
        (across / _ROOM["right"] * width, (top - up) / (top - bottom) * height) for across, up in zip(x, y, strict=True)
    ]
    taken: list[Box] = [(left - mark, up - mark, left + mark, up + mark) for left, up in places]
    chosen: list[str | None] = []
    for index, name in enumerate(names):
        others = [box for at, box in enumerate(taken) if at != index]
        boxes = {position: _label(*places[index], name, *side) for position, side in _LABELS["positions"].items()}
        faults = {
            position: _outside(box) + sum(_overlap(box, other) for other in others) for position, box in boxes.items()
        }
        best = min(faults, key=faults.__getitem__)
        fits = faults[best] <= _LABELS["covered"] * _area(boxes[best])
        if fits:
            taken.append(boxes[best])
        chosen.append(best if fits else None)
    return chosen


def _label(x: float, y: float, name: str, right: int, down: int) -> Box:
    half_width, half_height = len(name) * _LABELS["character"] / 2, _LABELS["height"] / 2
    middle, centre = x + right * (half_width + _LABELS["mark"]), y + down * (half_height + _LABELS["mark"])
    return (middle - half_width, centre - half_height, middle + half_width, centre + half_height)


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _outside(box: Box) -> float:
    """How much of a box lies outside the frame."""
    width, height = _LOOK["frame"]
    return _area(box) - _overlap(box, (0, 0, width, height))


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _mean(row: MethodRow, column: str) -> Any:
    """The mean of a column; SGD itself has no rise to SGD."""
    return row.values[column].mean if column in row.values else 0
