"""A map of minima: similar ones stand close to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go

from valleyscope.landscape.analysis.minima_map import MinimaMap
from valleyscope.landscape.figures.theme import Theme, escaped, new_figure
from valleyscope.landscape.plot_style import STYLE

_LOOK: Final = STYLE["minima_map"]


def minima_map_figure(found: MinimaMap, kind: str, colours: Mapping[str, str], theme: Theme = "light") -> go.Figure:
    """One point a minimum, by distances in weight space or by barriers; both axes have one scale."""
    if kind not in found.scaled:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(found.scaled)}")
    places = found.scaled[kind].coordinates
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers+text",
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "text": [escaped(name) for name in found.minima],
        **_LOOK["text"],
        "marker": {**_LOOK["marker"], "color": [colours[name] for name in found.minima]},
        "hovertemplate": "%{text}<extra></extra>",
    }
    title = {"text": _LOOK["titles"][kind]}
    axes = {axis: {**_LOOK[axis], "title": title} for axis in ("xaxis", "yaxis")}
    return new_figure([trace], {**_LOOK["layout"], **axes}, theme)
