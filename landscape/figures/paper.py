"""The paper's figure: train loss and test error on one plane side by side, and below them the profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.claim import claim_of, computed_planes
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.axes import stretch_of
from valleyscope.landscape.figures.contour import View, contour_parts, quantities_of
from valleyscope.landscape.figures.profile import ALIGNED, profile_parts
from valleyscope.landscape.figures.scale import Quantity
from valleyscope.landscape.figures.theme import Parts, Theme, heading, new_figure, quantity_title
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PathRecord, PlaneRecord

_LOOK: Final = STYLE["paper"]


def paper_figure(
    landscape: Landscape,
    plane: str | None = None,
    log: bool = False,
    clip: float | None = None,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
) -> go.Figure:
    """Contours of train loss and test error with the white curve, and the loss and error along curve and lines.

    A loss without errors is shown for two splits. Without a name the plane that shows the claim of the verdict is
    drawn. Needs a width of about 1100 pixels; on a narrow page put ``contour`` twice and ``profile`` under each other.
    """
    if not landscape.planes:
        raise ValueError(f"landscape {landscape.name!r} has no plane to draw")
    first = next(iter(computed_planes(landscape)), next(iter(landscape.planes.values())))
    name = first.name if plane is None else plane
    if name not in landscape.planes:
        raise ValueError(f"landscape {landscape.name!r} has no plane {name!r}; it has {', '.join(landscape.planes)}")
    record, paths = landscape.planes[name], profile_paths(landscape)
    paint = colours_of(landscape.minima) if colours is None else colours
    quantities = _shown(record)
    half = (1 - _LOOK["gap"]) / 2
    domains = [[left, left + half] for left in (0, half + _LOOK["gap"])]
    claim = claim_of(landscape)
    margin = {**_LOOK["margin"], "b": _LOOK["foot"] + _LOOK["legend_line"] * len(paths)}
    wanted = half * (_LOOK["width"] - margin["l"] - margin["r"]) * np.ptp(record.y) / np.ptp(record.x)
    wanted *= stretch_of(record)
    above = int(np.clip(wanted, _LOOK["lowest"], _LOOK["highest"]) + 0.5)
    total = above + (_LOOK["between"] + _LOOK["profile"] if paths else 0)
    size = {"width": _LOOK["width"], "height": total + margin["t"] + margin["b"]}
    layout: Parts = {"margin": margin, **size, "annotations": [], "images": [], "shapes": []}
    traces: list[Parts] = []

    def place(parts: Parts, suffix: str, across: list[float], up: list[float]) -> None:
        traces.extend(parts["traces"])
        layout[f"xaxis{suffix}"] = {**parts["xaxis"], "domain": across, "anchor": f"y{suffix}"}
        layout[f"yaxis{suffix}"] = {**parts["yaxis"], "domain": up, "anchor": f"x{suffix}"}

    bottom = 1 - above / total
    views = [
        View(split, value, log, clip if value == "loss" else None, theme, paint, claim) for split, value in quantities
    ]
    room = 0
    for view, suffix, (left, right) in zip(views, ("", "2"), domains, strict=False):
        bar: dict[str, Any] = {"x": right, "xanchor": "left", "y": bottom, "yanchor": "bottom", "len": above / total}
        parts = contour_parts(record, view, suffix, bar | {"left": left})
        place(parts, suffix, [left, right], [bottom, 1])
        title = heading(quantity_title(view.split, view.value, log, record.loss_unit), left, 1, theme)
        layout["annotations"] += [*parts["annotations"], title | {"yshift": title["yshift"] + parts["room"]}]
        layout["images"] += parts["images"]
        layout["shapes"] += parts["shapes"]
        room = max(room, parts["room"])
    layout["margin"] = {**margin, "t": margin["t"] + room}
    layout["height"] += room
    if paths:
        for (split, value), suffix, domain in zip(quantities, "34", domains, strict=False):
            parts = profile_parts(paths, split, value, False, paint, suffix)
            place(parts, suffix, domain, [0, _LOOK["profile"] / total])
        layout |= {"showlegend": True, "legend": {**_LOOK["legend"], "y": _LOOK["legend_place"] / total}}
    return new_figure(traces, layout, theme)


def _shown(plane: PlaneRecord) -> list[tuple[str, Quantity]]:
    """Train loss and test error; where no error was recorded, the losses of the first two splits."""
    there = quantities_of(plane)
    if not there or any(value == "error" for _, value in there):
        return [("train", "loss"), ("test", "error")]
    return there[:2]


def profile_paths(landscape: Landscape) -> list[PathRecord]:
    """The paths of a profile: curves first, then the straight lines, then those to aligned minima."""
    aligned = [replace(path, name=f"{path.name} aligned", kind=ALIGNED) for path in landscape.aligned.values()]
    return [*landscape.curves.values(), *landscape.lines.values(), *aligned]
