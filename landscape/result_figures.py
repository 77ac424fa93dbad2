"""Figures of what the functions of the library return, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from valleyscope.landscape.figures import CONFIG, contour, paper_figure, profile
from valleyscope.landscape.figures.theme import new_figure
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, PathRecord, PathValues, PlaneRecord

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from valleyscope.landscape.analysis.profiles import Profile
    from valleyscope.landscape.analysis.surfaces import Surface
    from valleyscope.landscape.recorder import Trajectories
    from valleyscope.landscape.storage.landscape_file import Landscape


def surface_figure(
    surface: Surface, split: str | None = None, value: Literal["loss", "error"] = "loss", **options: Any
) -> Figure:
    """A contour of a surface with the points and the trajectory of its plane; by default of its first split."""
    plane = surface.plane
    trajectory = None if plane is None else plane.trajectory
    paths = {} if trajectory is None else {f"{TRAJECTORY}run": trajectory}
    return contour(_record(surface, paths), split or next(iter(surface.splits)), value, **options)


def trajectories_figure(
    found: Trajectories, surface: Surface | None, split: str | None, titles: tuple[str, str], **options: Any
) -> Figure:
    """Runs on their common plane, over the contour of a surface if there is one."""
    if surface is None:
        traces = [
            {
                **{"type": "scatter", "mode": "lines+markers", "x": path[:, 0], "y": path[:, 1], "name": name},
                "customdata": found.distances[name],
                "hovertemplate": f"{name}, snapshot %{{pointNumber}}<br>%{{customdata:.3g}} off the plane"
                "<extra></extra>",
            }
            for name, path in found.paths.items()
        ]
        figure = new_figure(traces, {"showlegend": True}, options.get("theme", "light"))
        figure.update_yaxes(scaleanchor="x")
    else:
        record = _record(surface, {f"{TRAJECTORY}{name}": path for name, path in found.paths.items()})
        figure = contour(record, split or next(iter(surface.splits)), **options)
    figure.update_xaxes(title_text=titles[0])
    figure.update_yaxes(title_text=titles[1])
    return figure


def _record(surface: Surface, paths: dict[str, Floats]) -> PlaneRecord:
    plane = surface.plane
    return PlaneRecord(
        "plane",
        "through" if plane is None else plane.kind,
        surface.x,
        surface.y,
        np.ones((len(surface.y), len(surface.x)), dtype=bool),
        dict(surface.splits),
        points={} if plane is None else dict(plane.points),
        paths=paths,
        defining=() if plane is None else tuple(plane.points),
        note="" if plane is None else plane.note,
        loss_unit=surface.unit,
    )


def profile_figure(found: Profile, **options: Any) -> Figure:
    """Loss and, where there is one, error along a path."""
    splits = {name: PathValues(values.loss, values.error) for name, values in found.splits.items()}
    unit = next(iter(found.splits.values())).unit
    record = PathRecord("path", found.kind, "start", "end", found.t, found.arc, splits, loss_unit=unit)
    split = options.pop("loss_split", "train" if "train" in splits else next(iter(splits)))
    return profile(record, loss_split=split, **options)


def landscape_html(landscape: Landscape) -> str:
    """The verdict and the picture of a landscape as HTML for a notebook; plotly.js is inside."""
    sentence = escape(str((landscape.verdict or {}).get("sentence", "No verdict.")))
    head = f"<p><b>{escape(landscape.name)}</b>: {sentence}</p>"
    if not any(plane.done.any() for plane in landscape.planes.values()):
        return head
    figure: str = paper_figure(landscape).to_html(full_html=False, include_plotlyjs=True, config=dict(CONFIG))
    return head + figure
