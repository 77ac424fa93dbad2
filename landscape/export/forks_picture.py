"""The curves of forks for papers, by matplotlib: the same places and colours as the interactive figure."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from valleyscope.landscape.analysis.fork_curves import ForkCurve, ForkCurves
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.forks import LOOK, epoch_ticks, levels_of, place_of
from valleyscope.landscape.plot_style import STYLE

_INKS: Final = STYLE["inks"]["light"]
_DASHES: Final[dict[str, Any]] = {"dash": (0, (5, 3)), "dot": (0, (1, 1.6))}


def forks_picture(found: ForkCurves) -> Figure:
    """Barrier and rise over the epoch of the fork, side by side."""
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    paint = colours_of(curve.kind for curve in found.curves)
    ticks = epoch_ticks(found)
    for axes, panel in zip(figure.subplots(1, 2), LOOK["panels"], strict=True):
        for curve in found.curves:
            _draw(axes, curve, panel["quantity"], paint[curve.kind])
        if panel["quantity"] == "barrier":
            for value, line in levels_of(found):
                axes.axhline(value, color=line["color"], linewidth=0.7, linestyle=_DASHES[line["dash"]])
        axes.set_xticks(ticks["tickvals"], ticks["ticktext"])
        axes.set(xlabel=LOOK["xaxis"]["title"]["text"], ylabel=panel["yaxis"]["title"]["text"])
        axes.set_ylim(bottom=0)
        axes.grid(color=_INKS["grid"], linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", frameon=False, fontsize=7, ncols=4)
    return figure


def _draw(axes: Axes, curve: ForkCurve, quantity: str, colour: str) -> None:
    known = [(point, over) for point in curve.points if (over := point.over_seeds(quantity)) is not None]
    places, means = [place_of(point.epoch) for point, _ in known], [over.mean for _, over in known]
    bars = [[over.mean - over.low for _, over in known], [over.high - over.mean for _, over in known]]
    look: dict[str, Any] = {"color": colour, "linewidth": 1.2, "markersize": 3.6, "capsize": 1.5, "elinewidth": 0.7}
    axes.errorbar(places, means, yerr=bars, marker="o", label=curve.kind, **look)
    for point in curve.points:
        values = [one.value for fork in point.forks if (one := fork.estimate(quantity)) is not None]
        if len(values) > 1:
            axes.plot([place_of(point.epoch)] * len(values), values, ".", color=colour, markersize=2.4, alpha=0.6)
