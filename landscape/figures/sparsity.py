"""Which layers of which minimum are sparse: kept and zero groups, one bar a layer and minimum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import plotly.graph_objects as go

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.theme import Parts, Theme, escaped, new_figure
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import MinimumRecord

_LOOK: Final = STYLE["sparsity"]
_LEGEND: Final = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
_LEGEND_ROOM: Final = 24


def sparsity(
    minima: Iterable[MinimumRecord], theme: Theme = "light", colours: Mapping[str, str] | None = None
) -> go.Figure:
    """Share of groups that are exactly zero (filled) and kept (pale), layer by layer, first layer on top."""
    records = [minimum for minimum in minima if minimum.layers]
    paint = colours or colours_of(minimum.name for minimum in records)
    layers = {layer.name for minimum in records for layer in minimum.layers}
    height = _LOOK["frame"] + len(layers) * (len(records) * _LOOK["bar"] + _LOOK["between"])
    margin = _LOOK["layout"]["margin"]
    layout = {
        **_LOOK["layout"],
        **{"xaxis": _LOOK["xaxis"], "yaxis": _LOOK["yaxis"], "showlegend": True, "legend": _LEGEND},
        "height": height + _LEGEND_ROOM,
        "margin": {**margin, "t": margin["t"] + _LEGEND_ROOM},
    }
    return new_figure([bar for minimum in records for bar in _bars(minimum, paint[minimum.name])], layout, theme)


def _bars(minimum: MinimumRecord, colour: str) -> list[Parts]:
    name, layers = minimum.name, minimum.layers
    zero = [layer.zero_groups / layer.groups if layer.groups else 0.0 for layer in layers]
    shared = {
        **{"type": "bar", "orientation": "h", "name": name, "legendgroup": name, "offsetgroup": name},
        "y": [escaped(layer.name) for layer in layers],
        "customdata": [[layer.zero_groups, layer.groups] for layer in layers],
        "hovertemplate": f"<b>%{{y}}</b>, {name}<br>%{{customdata[0]}} of %{{customdata[1]}} groups are zero"
        "<extra></extra>",
    }
    kept = {
        "x": [1 - share for share in zero],
        "base": zero,
        "marker": {"color": colour, "opacity": _LOOK["kept"]},
        "text": [f"{layer.zero_groups} of {layer.groups}" for layer in layers],
        "showlegend": False,
        **_LOOK["text"],
    }
    return [{**shared, "x": zero, "marker": {"color": colour}}, {**shared, **kept}]
