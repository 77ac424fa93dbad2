"""The contour of a plane: the surface from above, with its minima, curve, lines and trajectories."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from valleyscope.landscape.colours import MAPS, colours_of
from valleyscope.landscape.figures.labels import labels_of, shown_points
from valleyscope.landscape.figures.sampling import Indices, coarse_lattice, is_bend, sample, straight_lines
from valleyscope.landscape.figures.scale import Quantity, Scale, scale_for
from valleyscope.landscape.figures.theme import Theme, axis_title, inks, new_figure
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, PlaneRecord, recorded

_DARK: Final = "rgba(12,14,18,0.75)"
_FINE: Final = 161


def contour(
    plane: PlaneRecord,
    split: str = "train",
    value: Quantity = "loss",
    log: bool = True,
    clip: float | None = None,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
    title: str | None = None,
) -> go.Figure:
    """Filled contours of one quantity on a plane, equal units on both axes.

    A loss is on a logarithmic colour scale with real values at its ticks, an error in percent. Colours end at ``clip``
    (in nats, or as a fraction); without one, at a level that shows the basins and the ridge. Points that are not
    computed yet stay hatched; while a surface is being computed its known points are drawn as cells.
    """
    figure = new_figure(theme, surface_title(split, value, log) if title is None else title)
    draw_contour(figure, plane, split, value, log, clip, theme, colours)
    figure.update_layout(margin={"l": 52, "r": 96, "b": 52}, hovermode="closest", showlegend=False)
    return figure


def surface_title(split: str, value: Quantity, log: bool = True) -> str:
    return f"{split} loss, nats{' (log scale)' if log else ''}" if value == "loss" else f"{split} error"


def draw_contour(
    figure: go.Figure,
    plane: PlaneRecord,
    split: str,
    value: Quantity,
    log: bool,
    clip: float | None,
    theme: Theme,
    colours: Mapping[str, str] | None = None,
    axes: str = "",
    bar: Mapping[str, Any] | None = None,
) -> None:
    """Draw the contour on the axes x<axes> and y<axes> of a figure, which may have several."""
    values = values_of(plane, split, value)
    scale = surface_scale(plane, values, value, log, clip)
    where = {"xaxis": f"x{axes}", "yaxis": f"y{axes}"}
    for trace in [*_surface(plane, values, scale, bar or {}), *_paths(plane, colours), *_points(plane, colours)]:
        figure.add_trace(trace.update(where))
    _frame(figure, plane, axes)
    _label(figure, plane, theme, colours, axes)
    if not plane.complete:
        figure.add_layout_image(_hatching(plane, theme, axes))


def values_of(plane: PlaneRecord, split: str, value: Quantity) -> Floats:
    if split not in plane.splits:
        raise ValueError(f"plane {plane.name!r} has no split {split!r}; it has {', '.join(plane.splits)}")
    values = plane.splits[split][value]
    if plane.done.any() and not recorded(values):
        raise ValueError(f"the {value} of split {split!r} was not recorded on plane {plane.name!r}")
    return values


def surface_scale(plane: PlaneRecord, values: Floats, value: Quantity, log: bool, clip: float | None) -> Scale:
    """The colour scale of a plane, wide enough for the lines and curves drawn on it."""
    curves = [places for name, places in plane.paths.items() if not name.startswith(TRAJECTORY)]
    drawn = [*straight_lines(plane).values(), *curves]
    along = [sample(plane.x, plane.y, values, places) for places in drawn]
    return scale_for(values, value, log, clip, np.concatenate(along) if along else ())


def point_colours(plane: PlaneRecord, colours: Mapping[str, str] | None) -> Mapping[str, str]:
    minima = [name for name in plane.points if not is_bend(name)]
    return colours_of(minima) if colours is None else {**colours_of(minima), **colours}


def hover_values(plane: PlaneRecord, rows: Indices, columns: Indices) -> tuple[NDArray[np.float32], str]:
    """All recorded values at each point, and the template that shows them in real units."""
    shown = [
        (split, quantity, grid[quantity])
        for split, grid in plane.splits.items()
        for quantity in ("loss", "error")
        if recorded(grid[quantity])
    ]
    lines = [
        f"{split} {quantity} %{{customdata[{index}]:{'.3g' if quantity == 'loss' else '.1%'}}}"
        for index, (split, quantity, _) in enumerate(shown)
    ]
    stack = np.stack([values for *_, values in shown], axis=-1) if shown else np.empty((*plane.shape, 0))
    return stack[np.ix_(rows, columns)].astype(np.float32), "<br>".join(lines) + "<extra></extra>"


def _surface(plane: PlaneRecord, values: Floats, scale: Scale, bar: Mapping[str, Any]) -> list[Any]:
    """Colours that run smoothly with fine contour lines once all is computed, and cells until then."""
    places, labels = scale.ticks()
    style = {
        "colorscale": MAPS[scale.quantity].capitalize(),
        "zmin": scale.range[0],
        "zmax": scale.range[1],
        "colorbar": {"tickvals": places, "ticktext": labels, "thickness": 12, "outlinewidth": 0, "xpad": 8, "ypad": 0}
        | dict(bar),
    }
    rows, columns = np.arange(len(plane.y)), np.arange(len(plane.x))
    heights = scale.encode(values)
    if plane.complete:
        # Contours of a fine grid cost plotly.js too long for a live page; its lines need no more than every few points.
        thin = max(plane.shape) // _FINE + 1
        lines = _contours(plane, heights, rows[::thin], columns[::thin], scale)
        if thin == 1:
            return [lines.update(style, overwrite=True).update(_hover(plane, rows, columns))]
        colours = _cells(plane, heights, rows, columns, {**style, "zsmooth": "best"})
        return [colours, lines.update({"contours": {"coloring": "none"}, "showscale": False, "hoverinfo": "skip"})]
    lattice = coarse_lattice(plane.done)
    coarse = [] if lattice is None else [_cells(plane, heights, *lattice, style)]
    return [*coarse, _cells(plane, heights, rows, columns, {**style, "showscale": not coarse})]


def _contours(plane: PlaneRecord, heights: Floats, rows: Indices, columns: Indices, scale: Scale) -> Any:
    start, end, size = scale.levels()
    return go.Contour(
        x=plane.x[columns],
        y=plane.y[rows],
        z=heights[np.ix_(rows, columns)].astype(np.float32),
        contours={"start": start, "end": end, "size": size, "coloring": "heatmap"},
        line={"width": 0.6, "color": "rgba(255,255,255,0.3)"},
    )


def _cells(plane: PlaneRecord, heights: Floats, rows: Indices, columns: Indices, style: Mapping[str, Any]) -> Any:
    return go.Heatmap(
        x=plane.x[columns],
        y=plane.y[rows],
        z=heights[np.ix_(rows, columns)].astype(np.float32),
        hoverongaps=False,
        **_hover(plane, rows, columns),
        **style,
    )


def _hover(plane: PlaneRecord, rows: Indices, columns: Indices) -> dict[str, Any]:
    data, template = hover_values(plane, rows, columns)
    return {"customdata": data, "hovertemplate": _coordinates() + template}


def _coordinates() -> str:
    return "x %{x:.3g}, y %{y:.3g}<br>"


def _paths(plane: PlaneRecord, colours: Mapping[str, str] | None) -> list[Any]:
    """Straight lines dashed, curves solid, white on a thin dark outline; trajectories in their minimum's colour."""
    paint = point_colours(plane, colours)
    traces: list[Any] = []
    for (start, end), places in straight_lines(plane).items():
        traces += _outlined(places[[0, -1]], f"straight line from {start} to {end}", dash="6px,5px", width=1.6)
    for name, places in plane.paths.items():
        if not name.startswith(TRAJECTORY):
            traces += _outlined(places, f"curve {name}", dash="solid", width=2.6)
            continue
        minimum = name.removeprefix(TRAJECTORY)
        colour = paint.get(minimum, "#ffffff")
        traces += [
            go.Scatter(
                x=places[:, 0],
                y=places[:, 1],
                mode="lines+markers",
                line={"color": "rgba(255,255,255,0.8)", "width": 1.2},
                marker={"size": 4.5, "color": colour, "line": {"color": "#ffffff", "width": 0.8}},
                hovertemplate=f"training of {minimum}, snapshot %{{pointNumber}}<br>{_coordinates()}<extra></extra>",
                name=name,
            )
        ]
    return traces


def _outlined(places: Floats, name: str, dash: str, width: float) -> list[Any]:
    shared = {"x": places[:, 0], "y": places[:, 1], "mode": "lines", "name": name}
    return [
        go.Scatter(**shared, line={"color": _DARK, "width": width + 1.8, "dash": dash}, hoverinfo="skip"),
        go.Scatter(**shared, line={"color": "#ffffff", "width": width, "dash": dash}, hoverinfo="skip"),
    ]


def _points(plane: PlaneRecord, colours: Mapping[str, str] | None) -> list[Any]:
    paint = point_colours(plane, colours)
    traces = []
    for name, place in shown_points(plane).items():
        off, colour = plane.is_projected(name), paint.get(name, "#ffffff")
        marker: dict[str, Any] = {
            "size": 9 if is_bend(name) else 12,
            "symbol": "diamond" if is_bend(name) else "circle",
        }
        if off:
            marker |= {"color": "rgba(255,255,255,0.9)", "line": {"color": colour, "width": 2.5}}
        else:
            marker |= {"color": colour, "line": {"color": _DARK if is_bend(name) else "#ffffff", "width": 1.8}}
        distance = f"<br>projected: {plane.distances[name]:.3g} off the plane" if off else ""
        traces.append(
            go.Scatter(
                x=[place[0]],
                y=[place[1]],
                mode="markers",
                marker=marker,
                hovertemplate=f"<b>{name}</b><br>{_coordinates().removesuffix('<br>')}{distance}<extra></extra>",
                name=name,
            )
        )
    return traces


def _frame(figure: go.Figure, plane: PlaneRecord, axes: str) -> None:
    """Equal units on both axes: the frame shrinks to the plane, the ranges stay."""
    shared = {"constrain": "domain", "showgrid": False, "mirror": True, "title": axis_title(plane.unit)}
    across = {"range": [plane.x[0], plane.x[-1]], **shared}
    up = {"range": [plane.y[0], plane.y[-1]], "scaleanchor": f"x{axes}", "scaleratio": 1, **shared}
    figure.update_layout({f"xaxis{axes}": across, f"yaxis{axes}": up})


def _label(figure: go.Figure, plane: PlaneRecord, theme: Theme, colours: Mapping[str, str] | None, axes: str) -> None:
    paint, ink = point_colours(plane, colours), inks(theme)
    for name, label in labels_of(plane).items():
        figure.add_annotation(
            x=plane.points[name][0],
            y=plane.points[name][1],
            xref=f"x{axes}",
            yref=f"y{axes}",
            text=label.text,
            showarrow=False,
            xanchor=label.anchor[0],
            yanchor=label.anchor[1],
            xshift=label.shift[0],
            yshift=label.shift[1],
            font={"size": 11, "color": ink.text},
            bgcolor=ink.pill,
            bordercolor=paint.get(name, ink.axis),
            borderwidth=1,
            borderpad=2,
        )


def _hatching(plane: PlaneRecord, theme: Theme, axes: str) -> dict[str, Any]:
    """A hatched ground under the surface, seen where nothing is computed."""
    ink = inks(theme)
    width, height = plane.x[-1] - plane.x[0], plane.y[-1] - plane.y[0]
    across = 600
    up = max(int(across * height / width), 1)
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{up}"><defs><pattern id="h" width="8" '
        f'height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" '
        f'fill="{ink.empty}"/><rect width="1.5" height="8" fill="{ink.hatch}"/></pattern></defs><rect width="100%" '
        f'height="100%" fill="url(#h)"/></svg>'
    )
    return {
        "source": "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode(),
        "xref": f"x{axes}",
        "yref": f"y{axes}",
        "x": plane.x[0],
        "y": plane.y[-1],
        "sizex": width,
        "sizey": height,
        "sizing": "stretch",
        "layer": "below",
    }
