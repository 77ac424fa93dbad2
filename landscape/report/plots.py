"""The figures of the report: drawn once, with a layout for light and one for dark pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape import figures
from valleyscope.landscape.figures.contour import surface_title
from valleyscope.landscape.figures.sampling import spread
from valleyscope.landscape.figures.scale import Quantity
from valleyscope.landscape.figures.theme import Theme
from valleyscope.landscape.figures.training import QUANTITIES
from valleyscope.landscape.report.words import text
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid, PlaneRecord, recorded

_FINEST: Final = 201


@dataclass(frozen=True)
class Plot:
    """A figure of the page: its data once, its layout in both themes, height over width of what it draws.

    The title is text of the page, not of the figure: it wraps, and a reader of the screen finds it.
    """

    key: str
    title: str
    label: str
    data: list[Any]
    layouts: Mapping[Theme, Any]
    shape: float | None = None
    height: int = 320

    @property
    def html(self) -> str:
        shape = "" if self.shape is None else f' data-shape="{self.shape:.4f}"'
        title = f"<figcaption>{text(self.title)}</figcaption>" if self.title else ""
        return (
            f'<figure>{title}<div class="plot" id="plot-{text(self.key)}" role="img" aria-label="{text(self.label)}" '
            f'data-height="{self.height}"{shape}></div></figure>'
        )

    def to_json(self) -> str:
        layouts = ",".join(f'"{theme}":{json.dumps(layout)}' for theme, layout in self.layouts.items())
        # A less-than sign inside JSON could end the script element that holds it.
        return f'{{"data":{json.dumps(self.data)},"layouts":{{{layouts}}}}}'.replace("<", "\\u003c")


def plane_plots(plane: PlaneRecord, colours: Mapping[str, str]) -> list[Plot]:
    """Train loss and test error of a plane, or whatever of the two was recorded."""
    record = thinned(plane)
    shape = float(np.ptp(plane.y) / np.ptp(plane.x))
    return [
        _plot(
            f"{plane.name}-{split}-{value}",
            surface_title(split, value),
            f"{split} {value} on the plane {plane.name}",
            partial(figures.contour, record, split, value, colours=colours, title=""),
            shape,
        )
        for split, value in shown_quantities(plane)
    ]


def relief_plots(landscape: Landscape, colours: Mapping[str, str]) -> list[Plot]:
    """The first quantity of every plane in three dimensions."""
    plots = []
    for plane in landscape.planes.values():
        if not plane.done.any():
            continue
        split, value = shown_quantities(plane)[0]
        title = f"plane {plane.name}: {split} {value}"
        plots.append(
            _plot(
                f"{plane.name}-3d",
                title,
                f"{title} in three dimensions",
                partial(figures.surface3d, thinned(plane), split, value, colours=colours, title=""),
                height=480,
            )
        )
    return plots


def profile_plot(landscape: Landscape, colours: Mapping[str, str]) -> Plot:
    paths = figures.profile_paths(landscape)
    label = "loss and error along the paths between the minima"
    return _plot("profile", "", label, partial(figures.profile, *paths, colours=colours), height=460)


def training_plots(landscape: Landscape, colours: Mapping[str, str]) -> list[Plot]:
    """Loss, accuracy and sparsity over the epochs, as far as they were measured."""
    minima = list(landscape.minima.values())
    measured = [
        quantity
        for quantity in ("loss", "accuracy", "sparsity")
        if any(recorded(minimum.epochs.get(column, np.empty(0))) for minimum in minima for column in _columns(quantity))
    ]
    return [
        _plot(
            f"training-{quantity}",
            QUANTITIES[quantity].title,
            f"{quantity} over the epochs",
            partial(figures.training, minima, quantity, colours=colours, title=""),
        )
        for quantity in measured
    ]


def sparsity_plot(landscape: Landscape, colours: Mapping[str, str]) -> Plot | None:
    minima = [minimum for minimum in landscape.minima.values() if minimum.layers]
    if not minima:
        return None
    draw = partial(figures.sparsity, minima, colours=colours)
    return _plot("layers", "", "groups that are zero, by layer", draw, height=int(draw().layout.height))


def shown_quantities(plane: PlaneRecord) -> list[tuple[str, Quantity]]:
    """Train loss and test error where recorded; else the first that is."""
    wanted: list[tuple[str, Quantity]] = [("train", "loss"), ("test", "error")]
    every: list[tuple[str, Quantity]] = [(split, value) for split in plane.splits for value in ("loss", "error")]
    there = [pair for pair in every if recorded(plane.splits[pair[0]][pair[1]])]
    return [pair for pair in wanted if pair in there] or there[:2]


def thinned(plane: PlaneRecord) -> PlaneRecord:
    """The plane with about 201 points a side at most: as many as a page can show."""
    rows, columns = spread(len(plane.y), _FINEST), spread(len(plane.x), _FINEST)
    cells = np.ix_(rows, columns)
    grids = {split: Grid(grid.loss[cells], grid.error[cells]) for split, grid in plane.splits.items()}
    rest = {"x": plane.x[columns], "y": plane.y[rows], "done": plane.done[cells], "splits": grids}
    return PlaneRecord(**{**vars(plane), **rest})


def _columns(quantity: str) -> list[str]:
    return list(QUANTITIES[quantity].columns.values())


def _plot(
    key: str, title: str, label: str, draw: Callable[..., go.Figure], shape: float | None = None, height: int = 320
) -> Plot:
    light, dark = (json.loads(draw(theme=theme).to_json()) for theme in ("light", "dark"))
    return Plot(key, title, label, light["data"], {"light": light["layout"], "dark": dark["layout"]}, shape, height)
