"""A map of minima: similar ones stand close to each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import plotly.graph_objects as go

from valleyscope.landscape.figures.labels import arranged
from valleyscope.landscape.figures.theme import Theme, escaped, new_figure, themed
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.map_record import MinimaMap
from valleyscope.landscape.storage.records import Coordinates, Floats

_LOOK: Final = STYLE["minima_map"]
_ANYWHERE: Final = (-math.inf, -math.inf, math.inf, math.inf)


def minima_map_figure(found: MinimaMap, kind: str, colours: Mapping[str, str], theme: Theme = "light") -> go.Figure:
    """One point a minimum, by distances in weight space or by barriers; both axes have one scale."""
    if kind not in found.scaled:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(found.scaled)}")
    places = found.scaled[kind].coordinates
    groups = standing_together(found.minima, places)
    hover = {name: ", ".join(group) for group in groups.values() for name in group}
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "text": [escaped(hover[name]) for name in found.minima],
        "marker": {**_LOOK["marker"], "color": [colours[name] for name in found.minima]},
        "hovertemplate": "%{text}<extra></extra>",
    }
    title = {"text": _LOOK["titles"][kind]}
    axes = {axis: {**_LOOK[axis], "title": title} for axis in ("xaxis", "yaxis")}
    layout = {**_LOOK["layout"], "annotations": _labels(found, places, groups, theme), **axes}
    return new_figure([trace], layout, theme)


def standing_together(names: tuple[str, ...], places: Floats) -> dict[str, list[str]]:
    """Minima whose points nearly cover each other, by the first of them."""
    pixels = _pixels(names, places)
    groups: dict[str, list[str]] = {}
    for name in names:
        near = (leader for leader in groups if math.dist(pixels[leader], pixels[name]) < _LOOK["together"])
        groups.setdefault(next(near, name), []).append(name)
    return groups


def _labels(found: MinimaMap, places: Floats, groups: Mapping[str, list[str]], theme: Theme) -> list[dict[str, Any]]:
    """One label for all that stand together; hovering names those for which there is no room."""
    look, pixels = themed(STYLE["label"], theme), _pixels(found.minima, places)
    texts = {name: _listed(group) for name, group in groups.items()}
    labels = arranged({name: pixels[name] for name in groups}, texts, _ANYWHERE, groups)
    return [
        {
            **look,
            **dict(zip(("x", "y"), places[found.minima.index(name)].tolist(), strict=True)),
            "text": escaped(label.text),
            **dict(zip(("xanchor", "yanchor", "xshift", "yshift"), (*label.anchor, *label.shift), strict=True)),
        }
        for name, label in labels.items()
    ]


def _listed(names: list[str]) -> str:
    """ "a, b, c", or "a, b and 3 more"."""
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def _pixels(names: tuple[str, ...], places: Floats) -> dict[str, Coordinates]:
    """Places on a small screen."""
    extent = float((places.max(0) - places.min(0)).max())
    scale = STYLE["labels"]["frame"] / extent if extent > 0 else 1.0
    return {name: (x * scale, y * scale) for name, (x, y) in zip(names, places.tolist(), strict=True)}
