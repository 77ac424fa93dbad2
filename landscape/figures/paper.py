"""The paper's figure: train loss and test error on one plane side by side, and below them the profile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.contour import draw_contour, surface_title
from valleyscope.landscape.figures.profile import draw_profile
from valleyscope.landscape.figures.theme import Theme, new_figure
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PathRecord, PlaneRecord

_WIDTH, _PROFILE, _BETWEEN = 1100, 220, 96


def paper_figure(
    landscape: Landscape,
    plane: str | None = None,
    log: bool = True,
    clip: float | None = None,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
) -> go.Figure:
    """Contours of train loss and test error with the white curve, and the loss and error along curve and lines.

    Without a name the first plane is shown. Needs a width of about 1100 pixels; on a narrow page put ``contour`` twice
    and ``profile`` under each other.
    """
    if not landscape.planes:
        raise ValueError(f"landscape {landscape.name!r} has no plane to draw")
    name = next(iter(landscape.planes)) if plane is None else plane
    if name not in landscape.planes:
        raise ValueError(f"landscape {landscape.name!r} has no plane {name!r}; it has {', '.join(landscape.planes)}")
    record = landscape.planes[name]
    paint = colours_of(landscape.minima) if colours is None else colours
    paths = profile_paths(landscape)
    above, below = _contour_height(record), _PROFILE if paths else 0
    total = above + below + (_BETWEEN if paths else 0)
    figure = make_subplots(
        rows=2 if paths else 1,
        cols=2,
        horizontal_spacing=0.14,
        vertical_spacing=_BETWEEN / total if paths else 0,
        row_heights=[above, below] if paths else None,
        subplot_titles=[surface_title("train", "loss", log), surface_title("test", "error")],
    )
    new_figure(theme, figure=figure)
    figure.update_annotations(font={"size": 13})
    draw_contour(figure, record, "train", "loss", log, clip, theme, paint, bar=_bar(figure, ""))
    draw_contour(figure, record, "test", "error", log, None, theme, paint, axes="2", bar=_bar(figure, "2"))
    figure.update_traces(showlegend=False)
    if paths:
        draw_profile(figure, paths, ("train", "test"), False, paint, ("3", "4"))
    margin = {"l": 56, "r": 64, "t": 40, "b": 96}
    figure.update_layout(
        width=_WIDTH,
        height=total + margin["t"] + margin["b"],
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": -52 / total, "yanchor": "top"},
        margin=margin,
    )
    return figure


def profile_paths(landscape: Landscape) -> list[PathRecord]:
    """The paths of a profile: curves first, then the straight lines."""
    return [*landscape.curves.values(), *landscape.lines.values()]


def _contour_height(plane: PlaneRecord) -> int:
    """Pixels that a plane needs to fill its half of the width at equal units."""
    return int(np.clip(0.37 * _WIDTH * np.ptp(plane.y) / np.ptp(plane.x), 160, 620))


def _bar(figure: go.Figure, axes: str) -> dict[str, float | str]:
    across, up = figure.layout[f"xaxis{axes}"].domain, figure.layout[f"yaxis{axes}"].domain
    return {"x": across[1], "y": up[0], "yanchor": "bottom", "len": up[1] - up[0]}
