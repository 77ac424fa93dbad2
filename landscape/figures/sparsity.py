"""Which layers of which minimum are sparse: kept and zero groups, one bar a layer and minimum."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

import plotly.graph_objects as go

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.theme import Theme, axis_title, new_figure
from valleyscope.landscape.storage.records import MinimumRecord

_BAR = 18
# Traces do not know the theme: a grey that is legible on both grounds.
_COUNT = "#7a828c"


def sparsity(
    minima: Iterable[MinimumRecord], theme: Theme = "light", colours: Mapping[str, str] | None = None
) -> go.Figure:
    """Share of groups that are exactly zero (filled) and kept (pale), layer by layer, first layer on top."""
    records = [minimum for minimum in minima if minimum.layers]
    paint = colours or colours_of(minimum.name for minimum in records)
    figure = new_figure(theme)
    layers = list(dict.fromkeys(layer.name for minimum in records for layer in minimum.layers))
    for minimum in records:
        rows = {layer.name: layer for layer in minimum.layers}
        own = [rows[name] for name in layers if name in rows]
        zero = [layer.zero_groups / layer.groups if layer.groups else 0.0 for layer in own]
        shared = {"y": [html.escape(layer.name) for layer in own], "orientation": "h", "offsetgroup": minimum.name}
        hover = f"<b>%{{y}}</b>, {minimum.name}<br>%{{customdata[0]}} of %{{customdata[1]}} groups are zero"
        data = [[layer.zero_groups, layer.groups] for layer in own]
        common = {"customdata": data, "hovertemplate": hover + "<extra></extra>"}
        colour = paint[minimum.name]
        figure.add_bar(
            x=zero, marker={"color": colour}, name=minimum.name, legendgroup=minimum.name, **shared, **common
        )
        figure.add_bar(
            x=[1 - share for share in zero],
            base=zero,
            marker={"color": colour, "opacity": 0.18},
            text=[f"{layer.zero_groups} of {layer.groups}" for layer in own],
            textposition="inside",
            insidetextanchor="end",
            constraintext="none",
            textfont={"size": 10, "color": _COUNT},
            name=minimum.name,
            legendgroup=minimum.name,
            showlegend=False,
            **shared,
            **common,
        )
    figure.update_layout(
        barmode="group",
        bargap=0.28,
        bargroupgap=0.12,
        height=96 + len(layers) * (len(records) * _BAR + 12),
        xaxis={"range": [0, 1], "tickformat": ".0%", "title": axis_title("groups that are zero")},
        yaxis={"autorange": "reversed", "showgrid": False, "ticks": "", "type": "category"},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"},
        margin={"t": 28},
    )
    return figure
