"""The contour of a plane: the surface from above, with its minima, curve, lines and trajectories."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.analysis.grid_sampling import Indices, coarse_lattice, is_bend, sample, straight_lines
from valleyscope.landscape.claim import Claim, Level
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.axes import axis_titles, note_annotations, notes_of, room_of, stretch_of
from valleyscope.landscape.figures.colour_bar_marks import bar_marks
from valleyscope.landscape.figures.estimates import doubtful_trace
from valleyscope.landscape.figures.labels import labels_of, shown_points
from valleyscope.landscape.figures.scale import Quantity, Scale, scale_for, significant
from valleyscope.landscape.figures.theme import Parts, Theme, new_figure, quantity_title, themed
from valleyscope.landscape.figures.tolerance_contour import (
    floor_label,
    floor_lines,
    joined,
    tolerance_label,
    tolerance_lines,
)
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, PlaneRecord, recorded

_LOOK: Final = STYLE["contour"]
_PLACE: Final = STYLE["hover"]["place"]
_OFF: Final = "<br>%{customdata:.3g} off this plane"


@dataclass(frozen=True)
class View:
    """What of a plane is shown, and how."""

    split: str
    value: Quantity
    log: bool = False
    clip: float | None = None
    theme: Theme = "light"
    colours: Mapping[str, str] | None = None
    claim: Claim | None = None

    def level(self, plane: PlaneRecord) -> Level | None:
        return None if self.claim is None else self.claim.level(plane, self.split, self.value)


def contour(
    plane: PlaneRecord,
    split: str = "train",
    value: Quantity = "loss",
    log: bool = False,
    clip: float | None = None,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
    title: str | None = None,
    claim: Claim | None = None,
) -> go.Figure:
    """Filled contours of one quantity on a plane, equal units on both axes unless a note says otherwise.

    Colours are linear, in nats or percent, or logarithmic for a loss with ``log``. They end at ``clip`` (in nats, or as
    a fraction); without one, a little above the highest of the paths that the ``claim`` is about (``claim_of`` of a
    landscape). With a claim the tolerance contour is drawn. Dots beside the colour bar are the minima. Points that are
    not computed yet stay hatched; while a surface is being computed its known points are drawn as cells.
    """
    parts = contour_parts(plane, View(split, value, log, clip, theme, colours, claim))
    traces, room = parts.pop("traces"), parts.pop("room")
    margin = {**_LOOK["margin"], "t": _LOOK["margin"]["t"] + room}
    layout = {"margin": margin, "hovermode": "closest", "dragmode": "zoom", **parts}
    shown = quantity_title(split, value, log, plane.loss_unit) if title is None else title
    return new_figure(traces, layout, theme, shown)


def contour_parts(plane: PlaneRecord, view: View, suffix: str = "", bar: Mapping[str, Any] | None = None) -> Parts:
    """Traces, annotations, shapes, images and axes of a contour, on the axes x<suffix> and y<suffix>.

    ``room`` is how many pixels its notes take above the frame.
    """
    bar = bar or {}
    values = values_of(plane, view.split, view.value)
    level = view.level(plane)
    scale = surface_scale(plane, values, view.value, view.log, view.clip, level)
    colours = point_colours(plane, view.colours)
    lines = [] if level is None else tolerance_lines(plane, values, level)
    floor = [] if level is None else floor_lines(plane, values, level)
    traces = [
        *_surface(plane, values, scale, bar),
        *doubtful_trace(plane, view.split, view.value),
        *_tolerance(lines, "tolerance"),
        *_tolerance(floor, "floor"),
        *_paths(plane, colours),
        *_points(plane, colours),
    ]
    label = [] if level is None else tolerance_label(plane, lines, level, scale, view.theme)
    label += [] if level is None else floor_label(plane, floor, level, scale, view.theme, label)
    heights = minima_values(plane, values)
    notes = notes_of(plane, scale, heights)
    across, up = axis_titles(plane)
    axes = {"xref": f"x{suffix}", "yref": f"y{suffix}"}
    return {
        "traces": [trace | {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "showlegend": False} for trace in traces],
        "annotations": [
            *(each | axes for each in label),
            *_labels(plane, view, colours, suffix),
            *note_annotations(notes, view.theme, bar.get("left", 0.0)),
        ],
        "shapes": bar_marks(scale, heights, colours, view.theme, bar),
        "images": [] if plane.complete else [_hatching(plane, view.theme, suffix)],
        "room": room_of(notes),
        "xaxis": {"title": {"text": across}, **_LOOK["axis"], "range": plane.x[[0, -1]]},
        "yaxis": {
            **{"title": {"text": up}, **_LOOK["axis"], "range": plane.y[[0, -1]]},
            **{"scaleanchor": f"x{suffix}", "scaleratio": stretch_of(plane)},
        },
    }


def minima_values(plane: PlaneRecord, values: Floats) -> dict[str, float]:
    """The value at each minimum that is drawn on the plane and lies on it."""
    shown = {name: place for name, place in shown_points(plane).items() if not is_bend(name)}
    found = {
        name: float(sample(plane.x, plane.y, values, np.array([place]))[0])
        for name, place in shown.items()
        if not plane.is_projected(name)
    }
    return {name: value for name, value in found.items() if np.isfinite(value)}


def values_of(plane: PlaneRecord, split: str, value: Quantity) -> Floats:
    if split not in plane.splits:
        raise ValueError(f"plane {plane.name!r} has no split {split!r}; it has {', '.join(plane.splits)}")
    values = plane.splits[split][value]
    if plane.done.any() and not recorded(values):
        raise ValueError(f"the {value} of split {split!r} was not recorded on plane {plane.name!r}")
    return values


def quantities_of(plane: PlaneRecord) -> list[tuple[str, Quantity]]:
    """The quantities that were recorded on a plane, by split."""
    both: tuple[Quantity, ...] = ("loss", "error")
    return [(split, value) for split, grid in plane.splits.items() for value in both if recorded(grid[value])]


def surface_scale(
    plane: PlaneRecord, values: Floats, value: Quantity, log: bool, clip: float | None, level: Level | None = None
) -> Scale:
    """The colour scale of a plane, from the lines and curves drawn on it and from the level of a claim."""
    curves = [places for name, places in plane.paths.items() if not name.startswith(TRAJECTORY)]
    drawn = [*straight_lines(plane).values(), *curves]
    along = [sample(plane.x, plane.y, values, places) for places in drawn]
    return scale_for(values, value, log, clip, np.concatenate(along) if along else (), level)


def point_colours(plane: PlaneRecord, colours: Mapping[str, str] | None) -> Mapping[str, str]:
    return {**colours_of(name for name in plane.points if not is_bend(name)), **(colours or {})}


def colour_scale(quantity: Quantity) -> list[tuple[float, str]]:
    stops = STYLE["maps"][quantity]["stops"]
    return list(zip(np.linspace(0, 1, len(stops)), stops, strict=True))


def hover_values(plane: PlaneRecord, rows: Indices, columns: Indices) -> Parts:
    """All recorded values at each point, and the template that shows them in real units."""
    shown = quantities_of(plane)
    lines = [
        f"{split} {value} %{{customdata[{index}]{STYLE['hover'][value]}}}" for index, (split, value) in enumerate(shown)
    ]
    stack = [plane.splits[split][value][np.ix_(rows, columns)] for split, value in shown]
    for index, (split, value) in enumerate(shown):
        if plane.splits[split].is_estimated:
            lines[index] += f" ± %{{customdata[{len(stack)}]{STYLE['hover'][value]}}}"
            stack.append(plane.splits[split][f"{value}_error"][np.ix_(rows, columns)])
    return {
        "customdata": np.stack(stack, axis=-1).astype(np.float32) if stack else None,
        "hovertemplate": "<br>".join([_PLACE, *lines]) + "<extra></extra>",
    }


def grid_of(plane: PlaneRecord, heights: Floats, rows: Indices, columns: Indices) -> Parts:
    """Coordinates and heights of some rows and columns."""
    return {"x": plane.x[columns], "y": plane.y[rows], "z": heights[np.ix_(rows, columns)].astype(np.float32)}


def _surface(plane: PlaneRecord, values: Floats, scale: Scale, bar: Mapping[str, Any]) -> list[Parts]:
    """Colours that run smoothly with fine contour lines once all is computed, and cells until then."""
    low, high = scale.range
    place = {key: entry for key, entry in bar.items() if key != "left"}
    bar = {**_LOOK["bar"], **place, **scale.ticks()}
    look = {"colorscale": colour_scale(scale.quantity), "zmin": low, "zmax": high, "colorbar": bar, "showscale": True}
    rows, columns = np.arange(len(plane.y)), np.arange(len(plane.x))
    heights = scale.encode(values)

    def cells(down: Indices, across: Indices, **more: Any) -> Parts:
        grid = grid_of(plane, heights, down, across) | hover_values(plane, down, across)
        return {"type": "heatmap", **grid, "hoverongaps": False, **look, **more}

    if plane.complete:
        # Contours of a fine grid take plotly.js too long; lines need no more than every few points.
        thin = max(plane.shape) // _LOOK["fine"] + 1
        lines = {"type": "contour", **grid_of(plane, heights, rows[::thin], columns[::thin]), "line": _LOOK["line"]}
        levels = scale.levels()
        if thin == 1:
            return [lines | {"contours": {**levels, "coloring": "heatmap"}} | look | hover_values(plane, rows, columns)]
        quiet = {"contours": {**levels, "coloring": "none"}, "showscale": False, "hoverinfo": "skip"}
        return [cells(rows, columns, zsmooth=_LOOK["smooth"]), lines | quiet]
    lattice = coarse_lattice(plane.done)
    coarse = [] if lattice is None else [cells(*lattice)]
    return [*coarse, cells(rows, columns, showscale=not coarse)]


def _tolerance(lines: list[Floats], name: str) -> list[Parts]:
    """The tolerance contour, or that around what is level, dark on a light halo."""
    if not lines:
        return []
    places = joined(lines)
    shared = {"type": "scatter", "x": places[:, 0], "y": places[:, 1], "name": name, "mode": "lines"}
    return [{**shared, "line": _LOOK[look], "hoverinfo": "skip"} for look in (f"{name}_halo", name)]


def _paths(plane: PlaneRecord, colours: Mapping[str, str]) -> list[Parts]:
    """Straight lines dashed, curves solid, white on a thin dark outline; trajectories in their minimum's colour."""
    traces: list[Parts] = []
    for (start, end), places in straight_lines(plane, 2).items():
        traces += _outlined(places, f"straight line from {start} to {end}", _LOOK["straight"])
    for name, places in plane.paths.items():
        if not name.startswith(TRAJECTORY):
            traces += _outlined(places, f"curve {name}", _LOOK["curve"])
            continue
        minimum, offsets = name.removeprefix(TRAJECTORY), plane.offsets.get(name)
        far = "" if offsets is None else _OFF
        trace: Parts = {
            "mode": "lines+markers",
            "line": _LOOK["trajectory"],
            "marker": {**_LOOK["snapshot"], "color": colours.get(minimum, STYLE["white"])},
            "hovertemplate": f"training of {minimum}, snapshot %{{pointNumber}}<br>{_PLACE}{far}<extra></extra>",
        }
        if offsets is not None:
            trace["customdata"] = offsets
        traces.append({"type": "scatter", "x": places[:, 0], "y": places[:, 1], "name": name, **trace})
    return traces


def _outlined(places: Floats, name: str, line: Parts) -> list[Parts]:
    shared = {"type": "scatter", "x": places[:, 0], "y": places[:, 1], "name": name, "mode": "lines"}
    outline = {**line, "color": STYLE["outline"], "width": line["width"] + _LOOK["outline"]}
    return [{**shared, "line": look, "hoverinfo": "skip"} for look in (outline, line)]


def _points(plane: PlaneRecord, colours: Mapping[str, str]) -> list[Parts]:
    traces = []
    for name, (x, y) in shown_points(plane).items():
        colour, off = colours.get(name, STYLE["white"]), ""
        marker = {**_LOOK["bend" if is_bend(name) else "minimum"], "color": colour}
        if plane.is_projected(name):
            hollow = _LOOK["projected"]
            marker |= {"color": hollow["color"], "line": {"color": colour, "width": hollow["width"]}}
            off = f"<br>projected: {significant(plane.distances[name])} off the plane"
        hover = f"<b>{name}</b><br>{_PLACE}{off}<extra></extra>"
        trace = {"type": "scatter", "x": [x], "y": [y], "name": name, "mode": "markers"}
        traces.append({**trace, "marker": marker, "hovertemplate": hover})
    return traces


def _labels(plane: PlaneRecord, view: View, colours: Mapping[str, str], suffix: str) -> list[Parts]:
    look, labels = themed(STYLE["label"], view.theme), labels_of(plane)
    if len(labels) > STYLE["labels"]["most"]:
        labels = {name: found for name, found in labels.items() if not (is_bend(name) or plane.is_projected(name))}
    return [
        {
            **look,
            **dict(zip(("x", "y"), plane.points[name], strict=True)),
            **{"xref": f"x{suffix}", "yref": f"y{suffix}", "text": label.text},
            **dict(zip(("xanchor", "yanchor", "xshift", "yshift"), (*label.anchor, *label.shift), strict=True)),
            "bordercolor": colours.get(name, look["bordercolor"]),
        }
        for name, label in labels.items()
    ]


def _hatching(plane: PlaneRecord, theme: Theme, suffix: str) -> Parts:
    """A hatched ground under the surface, seen where nothing is computed."""
    width, height = float(np.ptp(plane.x)), float(np.ptp(plane.y))
    up = max(int(600 * height / width + 0.5), 1)
    picture = _LOOK["hatching"].format(**STYLE["inks"][theme], height=up)
    return {
        "source": "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode(),
        **{"xref": f"x{suffix}", "yref": f"y{suffix}", "x": plane.x[0], "y": plane.y[-1]},
        **{"sizex": width, "sizey": height, "sizing": "stretch", "layer": "below"},
    }
