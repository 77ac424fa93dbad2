"""The surface of a plane in three dimensions, its height the value on the scale of the contour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.analysis.grid_sampling import coarse_lattice, is_bend, sample, straight_lines
from valleyscope.landscape.claim import Claim
from valleyscope.landscape.figures.axes import axis_titles, note_annotations, notes_of, room_of, stretch_of
from valleyscope.landscape.figures.contour import (
    colour_scale,
    grid_of,
    hover_values,
    minima_values,
    point_colours,
    surface_scale,
    values_of,
)
from valleyscope.landscape.figures.labels import labels_of, shown_points
from valleyscope.landscape.figures.scale import Quantity, Scale
from valleyscope.landscape.figures.theme import Parts, Theme, new_figure, quantity_title, themed
from valleyscope.landscape.figures.tolerance_contour import joined, tolerance_label, tolerance_lines
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, PlaneRecord

_LOOK: Final = STYLE["surface3d"]


def surface3d(
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
    """The surface with the curve, the lines, the tolerance contour and the named points standing on it.

    Scale, clip, colours and claim are those of ``contour``. Points off the plane are
    left out: they have a height of their own. A surface that is still being computed is drawn from the rows and columns
    that are known.
    """
    values = values_of(plane, split, value)
    level = None if claim is None else claim.level(plane, split, value)
    scale = surface_scale(plane, values, value, log, clip, level)
    heights = scale.encode(values)
    paint = point_colours(plane, colours)
    # Lines lie a little above the surface, so that they are not hidden by it.
    lift = _LOOK["lift"] * (scale.range[1] - scale.range[0])
    traces = [_surface(plane, heights, scale)]
    for places, line in _lines(plane, paint):
        trace = {"type": "scatter3d", "x": places[:, 0], "y": places[:, 1], "mode": "lines", "line": line}
        traces.append({**trace, "z": sample(plane.x, plane.y, heights, places) + lift, "hoverinfo": "skip"})
    # Markers stand on it: at half their height they would be cut by it.
    stand = _LOOK["stand"] * (scale.range[1] - scale.range[0])
    points, annotations = _points(plane, heights, stand, theme, paint)
    lines = [] if level is None else tolerance_lines(plane, values, level)
    if level is not None and lines:
        places, z = joined(lines), float(scale.encode([level.value])[0]) + lift
        trace = {"type": "scatter3d", "x": places[:, 0], "y": places[:, 1], "z": np.full(len(places), z)}
        traces.append({**trace, "mode": "lines", "line": _LOOK["tolerance"], "hoverinfo": "skip"})
        annotations += [label | {"z": z} for label in tolerance_label(plane, lines, level, scale, theme)]
    scene = {**_scene(plane, scale), "annotations": annotations}
    notes = notes_of(plane, scale, minima_values(plane, values))
    margin = {"l": 0, "r": 0, "t": room_of(notes), "b": 0}
    layout = {"margin": margin, "scene": scene, "annotations": note_annotations(notes, theme)}
    shown = quantity_title(split, value, log, plane.loss_unit) if title is None else title
    return new_figure(traces + points, layout, theme, shown)


def _surface(plane: PlaneRecord, heights: Floats, scale: Scale) -> Parts:
    thin = max(plane.shape) // _LOOK["finest"] + 1
    rows, columns = np.arange(0, len(plane.y), thin), np.arange(0, len(plane.x), thin)
    if not plane.complete:
        rows, columns = coarse_lattice(plane.done) or (rows, columns)
    return {
        "type": "surface",
        **grid_of(plane, heights, rows, columns),
        "colorscale": colour_scale(scale.quantity),
        **dict(zip(("cmin", "cmax"), scale.range, strict=True)),
        "showscale": True,
        "colorbar": {**_LOOK["bar"], **scale.ticks()},
        **_LOOK["surface"],
        **hover_values(plane, rows, columns),
    }


def _lines(plane: PlaneRecord, colours: Mapping[str, str]) -> list[tuple[Floats, Parts]]:
    drawn = [(places, _LOOK["straight"]) for places in straight_lines(plane).values()]
    for name, places in plane.paths.items():
        colour = colours.get(name.removeprefix(TRAJECTORY), STYLE["white"])
        trajectory = {**_LOOK["trajectory"], "color": colour}
        drawn.append((places, trajectory if name.startswith(TRAJECTORY) else _LOOK["curve"]))
    return drawn


def _points(
    plane: PlaneRecord, heights: Floats, stand: float, theme: Theme, colours: Mapping[str, str]
) -> tuple[list[Parts], list[Parts]]:
    """Markers of the named points, and their labels."""
    look, labels = themed(STYLE["label"], theme), labels_of(plane)
    traces, annotations = [], []
    for name, (x, y) in shown_points(plane).items():
        z = float(sample(plane.x, plane.y, heights, np.array([(x, y)]))[0]) + stand
        if plane.is_projected(name) or not np.isfinite(z):
            continue
        marker = {**_LOOK["bend" if is_bend(name) else "minimum"], "color": colours.get(name, STYLE["white"])}
        hover = f"<b>{name}</b><br>{STYLE['hover']['place']}<extra></extra>"
        trace = {"type": "scatter3d", "x": [x], "y": [y], "z": [z], "mode": "markers", "marker": marker}
        traces.append({**trace, "hovertemplate": hover})
        place = {"x": x, "y": y, "z": z, "yshift": _LOOK["label_shift"]}
        colour = colours.get(name, look["bordercolor"])
        annotations.append({**look, **place, "text": labels[name].text, "bordercolor": colour})
    return traces, annotations


def _scene(plane: PlaneRecord, scale: Scale) -> Parts:
    width, depth = float(np.ptp(plane.x)), float(np.ptp(plane.y)) * stretch_of(plane)
    across, up = (_LOOK["width"] * side / max(width, depth) for side in (width, depth))
    titles = axis_titles(plane, x_break="<br>")
    return {
        "aspectmode": "manual",
        "aspectratio": {"x": across, "y": up, "z": _LOOK["height"]},
        "camera": _LOOK["camera"],
        "dragmode": "turntable",
        "xaxis": {"title": {"text": titles[0]}, "nticks": 6, "range": plane.x[[0, -1]]},
        "yaxis": {"title": {"text": titles[1]}, "nticks": 6, "range": plane.y[[0, -1]]},
        "zaxis": {"title": {"text": STYLE["titles"][scale.quantity]}, **scale.ticks()},
    }
