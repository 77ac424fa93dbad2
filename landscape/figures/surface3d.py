"""The surface of a plane in three dimensions, its height the value on the scale of the contour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.colours import MAPS
from valleyscope.landscape.figures.contour import hover_values, point_colours, surface_scale, surface_title, values_of
from valleyscope.landscape.figures.labels import labels_of, shown_points
from valleyscope.landscape.figures.sampling import coarse_lattice, is_bend, sample, straight_lines
from valleyscope.landscape.figures.scale import Quantity, Scale
from valleyscope.landscape.figures.theme import Theme, inks, new_figure
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, PlaneRecord

_HEIGHT = 0.6


def surface3d(
    plane: PlaneRecord,
    split: str = "train",
    value: Quantity = "loss",
    log: bool = True,
    clip: float | None = None,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
    title: str | None = None,
) -> go.Figure:
    """The surface as a relief with the curve, the lines and the named points lying on it.

    Scale, clip and colours are those of ``contour``; both horizontal axes have the same unit. Points off the plane are
    left out: they have a height of their own. A surface that is still being computed is drawn from the rows and columns
    that are known.
    """
    values = values_of(plane, split, value)
    scale = surface_scale(plane, values, value, log, clip)
    heights = scale.encode(values)
    figure = new_figure(theme, surface_title(split, value, log) if title is None else title)
    figure.add_trace(_relief(plane, heights, scale))
    lift = 0.012 * (scale.range[1] - scale.range[0])
    for places, colour, width, dash in _lines(plane, colours):
        height = sample(plane.x, plane.y, heights, places) + lift
        figure.add_trace(
            go.Scatter3d(
                x=places[:, 0],
                y=places[:, 1],
                z=height,
                mode="lines",
                line={"color": colour, "width": width, "dash": dash},
                hoverinfo="skip",
            )
        )
    _add_points(figure, plane, heights, lift, theme, colours)
    _set_scene(figure, plane, scale, value)
    return figure


def _relief(plane: PlaneRecord, heights: Floats, scale: Scale) -> Any:
    rows, columns = np.arange(len(plane.y)), np.arange(len(plane.x))
    if not plane.complete:
        rows, columns = coarse_lattice(plane.done) or (rows, columns)
    data, template = hover_values(plane, rows, columns)
    places, labels = scale.ticks()
    return go.Surface(
        x=plane.x[columns],
        y=plane.y[rows],
        z=heights[np.ix_(rows, columns)].astype(np.float32),
        customdata=data,
        colorscale=MAPS[scale.quantity].capitalize(),
        cmin=scale.range[0],
        cmax=scale.range[1],
        colorbar={"tickvals": places, "ticktext": labels, "thickness": 12, "outlinewidth": 0, "len": 0.7},
        lighting={"ambient": 0.75, "diffuse": 0.5, "specular": 0.05, "roughness": 0.9},
        hovertemplate="x %{x:.3g}, y %{y:.3g}<br>" + template,
    )


def _lines(plane: PlaneRecord, colours: Mapping[str, str] | None) -> list[tuple[Floats, str, float, str]]:
    paint = point_colours(plane, colours)
    drawn = [(places, "#ffffff", 3.0, "dash") for places in straight_lines(plane).values()]
    for name, places in plane.paths.items():
        if name.startswith(TRAJECTORY):
            drawn.append((places, paint.get(name.removeprefix(TRAJECTORY), "#ffffff"), 3.0, "solid"))
        else:
            drawn.append((places, "#ffffff", 6.0, "solid"))
    return drawn


def _add_points(
    figure: go.Figure,
    plane: PlaneRecord,
    heights: Floats,
    lift: float,
    theme: Theme,
    colours: Mapping[str, str] | None,
) -> None:
    paint, ink, labels = point_colours(plane, colours), inks(theme), labels_of(plane)
    annotations = []
    for name, place in shown_points(plane).items():
        if plane.is_projected(name):
            continue
        height = float(sample(plane.x, plane.y, heights, np.array([place]))[0]) + lift
        if not np.isfinite(height):
            continue
        figure.add_trace(
            go.Scatter3d(
                x=[place[0]],
                y=[place[1]],
                z=[height],
                mode="markers",
                marker={
                    "size": 4 if is_bend(name) else 6,
                    "symbol": "diamond" if is_bend(name) else "circle",
                    "color": paint.get(name, "#ffffff"),
                    "line": {"color": "#ffffff", "width": 1.5},
                },
                hovertemplate=f"<b>{name}</b><br>x %{{x:.3g}}, y %{{y:.3g}}<extra></extra>",
            )
        )
        label = {"x": place[0], "y": place[1], "z": height, "text": labels[name].text, "showarrow": False}
        style = {"bgcolor": ink.pill, "bordercolor": paint.get(name, ink.axis), "borderwidth": 1, "borderpad": 2}
        annotations.append(label | style | {"yshift": 18, "font": {"size": 11, "color": ink.text}})
    figure.update_layout(scene={"annotations": annotations})


def _set_scene(figure: go.Figure, plane: PlaneRecord, scale: Scale, value: Quantity) -> None:
    width, depth = float(np.ptp(plane.x)), float(np.ptp(plane.y))
    longest = max(width, depth)
    places, labels = scale.ticks()
    figure.update_layout(
        showlegend=False,
        margin={"l": 0, "r": 0, "b": 0},
        scene={
            "aspectmode": "manual",
            "aspectratio": {"x": 1.3 * width / longest, "y": 1.3 * depth / longest, "z": _HEIGHT},
            "camera": {"eye": {"x": -0.65, "y": -1.15, "z": 1.85}, "center": {"x": 0, "y": 0, "z": -0.2}},
            "xaxis": {"title": {"text": plane.unit}, "range": [plane.x[0], plane.x[-1]], "nticks": 6},
            "yaxis": {"title": {"text": plane.unit}, "range": [plane.y[0], plane.y[-1]], "nticks": 6},
            "zaxis": {"title": {"text": value}, "tickvals": places, "ticktext": labels},
        },
    )
