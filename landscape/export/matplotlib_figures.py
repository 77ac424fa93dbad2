"""Pictures for papers, by matplotlib: the same scales, colours and labels as the interactive figures.

SVG is vector all through, with text as text, filled bands instead of pixels and coordinates to a hundredth of a point:
small enough for LaTeX.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import PercentFormatter

from valleyscope.landscape.colours import MAPS, colours_of
from valleyscope.landscape.figures.contour import point_colours, quantities_of, surface_scale, values_of
from valleyscope.landscape.figures.labels import labels_of, shown_points
from valleyscope.landscape.figures.profile import path_label, path_style
from valleyscope.landscape.figures.sampling import coarse_lattice, is_bend, spread, straight_lines
from valleyscope.landscape.figures.scale import Quantity
from valleyscope.landscape.figures.theme import quantity_title
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import TRAJECTORY, PathRecord, PlaneRecord, error_split, recorded

Format = Literal["png", "svg"]

_INKS: Final = STYLE["inks"]["light"]
_WHITE: Final = STYLE["white"]
_OUTLINE: Final = "#0c0e12"
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "valleyscope",
    "font.size": 9,
    "axes.linewidth": 0.6,
    "axes.edgecolor": _INKS["muted"],
    "axes.labelcolor": _INKS["text"],
    "xtick.color": _INKS["muted"],
    "ytick.color": _INKS["muted"],
}
_DASHES: Final = {"solid": "-", "dash": (0, (5, 3)), "dot": (0, (1, 1.6))}
# More points than this a side change nothing that can be seen in print, and make an SVG large.
_FINEST: Final = 101
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def write_pictures(landscape: Landscape, directory: Path, form: Format) -> list[Path]:
    """Write <plane>-<split>-<value> for each recorded quantity, profile, and paper for the first plane."""
    written = []
    with mpl.rc_context(_STYLE):
        for name, figure in _pictures(landscape):
            path = directory / f"{name}.{form}"
            with write_atomically(path) as file:
                file.write(_encoded(figure, form))
            written.append(path)
    return written


def _pictures(landscape: Landscape) -> Iterator[tuple[str, Figure]]:
    colours = colours_of(landscape.minima)
    planes = [plane for plane in landscape.planes.values() if plane.done.any()]
    for plane in planes:
        for split, value in quantities_of(plane):
            yield f"{plane.name}-{split}-{value}", _plane_picture(plane, split, value, colours)
    paths = [*landscape.curves.values(), *landscape.lines.values()]
    if paths:
        yield "profile", _profile_picture(paths, colours)
    if planes and paths and {("train", "loss"), ("test", "error")} <= set(quantities_of(planes[0])):
        yield "paper", _paper_picture(planes[0], paths, colours)


def _plane_picture(plane: PlaneRecord, split: str, value: Quantity, colours: Mapping[str, str]) -> Figure:
    shape = float(np.ptp(plane.y) / np.ptp(plane.x))
    figure = Figure(figsize=(4.6, float(np.clip(3.5 * shape + 0.8, 1.8, 6.5))), layout="constrained")
    draw_plane(figure.subplots(), plane, split, value, colours)
    return figure


def _profile_picture(paths: Sequence[PathRecord], colours: Mapping[str, str]) -> Figure:
    figure = Figure(figsize=(4.6, 3.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    draw_values(upper, paths, "train", "loss", colours)
    draw_values(lower, paths, error_split(paths), "error", colours)
    upper.set_xlabel("")
    figure.legend(*upper.get_legend_handles_labels(), loc="outside upper left", frameon=False, fontsize=7, ncols=2)
    return figure


def _paper_picture(plane: PlaneRecord, paths: Sequence[PathRecord], colours: Mapping[str, str]) -> Figure:
    shape = float(np.ptp(plane.y) / np.ptp(plane.x))
    above = float(np.clip(2.7 * shape, 1.3, 4.5))
    figure = Figure(figsize=(7.2, above + 2.9), layout="constrained")
    axes = figure.subplots(2, 2, height_ratios=(above, 1.7))
    draw_plane(axes[0, 0], plane, "train", "loss", colours)
    draw_plane(axes[0, 1], plane, "test", "error", colours)
    draw_values(axes[1, 0], paths, "train", "loss", colours)
    draw_values(axes[1, 1], paths, error_split(paths), "error", colours)
    figure.legend(
        *axes[1, 0].get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=7, ncols=3
    )
    return figure


def draw_plane(axes: Axes, plane: PlaneRecord, split: str, value: Quantity, colours: Mapping[str, str]) -> None:
    """Filled contours with curve, lines, trajectories and named points; a hatched ground where nothing is computed."""
    values = values_of(plane, split, value)
    scale = surface_scale(plane, values, value, True, None)
    rows, columns = spread(len(plane.y), _FINEST), spread(len(plane.x), _FINEST)
    if not plane.complete:
        rows, columns = coarse_lattice(plane.done) or (np.arange(len(plane.y)), np.arange(len(plane.x)))
        axes.patch.set(facecolor=_INKS["empty"], edgecolor=_INKS["hatch"], hatch="////")
    low, high = scale.range
    levels = np.unique(np.concatenate([[low], np.arange(*scale.levels().values()), [high]]))
    heights = np.ma.masked_invalid(scale.encode(values[np.ix_(rows, columns)]))
    bands = axes.contourf(plane.x[columns], plane.y[rows], heights, levels, cmap=MAPS[value], extend="both")
    # Without an edge of their own colour, neighbouring bands leave hairlines between them in most viewers.
    bands.set_edgecolor("face")
    bands.set_linewidth(0.3)
    ticks = scale.ticks()
    # An inset axis is as high as the frame, whatever equal units make of it.
    beside = axes.inset_axes((1.03, 0, 0.035, 1))
    bar = axes.figure.colorbar(bands, cax=beside, extendfrac=0, extendrect=True)
    bar.set_ticks(ticks["tickvals"], labels=ticks["ticktext"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, width=0.6)
    _draw_paths(axes, plane, colours)
    _draw_points(axes, plane, colours)
    axes.set(
        aspect="equal",
        xlim=(plane.x[0], plane.x[-1]),
        ylim=(plane.y[0], plane.y[-1]),
        xlabel=plane.unit,
        ylabel=plane.unit if np.ptp(plane.y) > 0.6 * np.ptp(plane.x) else "",
    )
    axes.set_title(quantity_title(split, value, log=True), fontsize=9, loc="left")


def draw_values(
    axes: Axes, paths: Sequence[PathRecord], split: str, value: Quantity, colours: Mapping[str, str]
) -> None:
    """One quantity along the paths, as in the interactive profile; an overflow leaves a gap."""
    for path in paths:
        if split not in path.splits or not recorded(path.splits[split][value]):
            continue
        values = path.splits[split][value]
        style = path_style(path, paths, colours)
        shown = np.where(np.isfinite(values), values, np.nan)
        line = {"color": style["color"], "linewidth": 0.55 * style["width"], "linestyle": _DASHES[style["dash"]]}
        axes.plot(path.t, shown, label=path_label(path), **line)
    axes.set(xlabel=STYLE["titles"]["t"], xlim=(paths[0].t[0], paths[0].t[-1]))
    axes.set_ylabel(quantity_title(split, value))
    axes.set_ylim(bottom=0)
    axes.grid(color=_INKS["grid"], linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if value == "error":
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _draw_paths(axes: Axes, plane: PlaneRecord, colours: Mapping[str, str]) -> None:
    paint = point_colours(plane, colours)
    outline = [Stroke(linewidth=2.6, foreground=_OUTLINE), Normal()]
    thin = [Stroke(linewidth=1.8, foreground=_OUTLINE), Normal()]
    for places in straight_lines(plane).values():
        axes.plot(*places[[0, -1]].T, color="white", linewidth=1.0, linestyle=(0, (4, 3)), path_effects=thin)
    for name, places in plane.paths.items():
        if name.startswith(TRAJECTORY):
            colour = paint.get(name.removeprefix(TRAJECTORY), "white")
            dots: dict[str, Any] = {"marker": "o", "markersize": 2.2, "markerfacecolor": colour, "markeredgewidth": 0.3}
            axes.plot(*places.T, color="white", linewidth=0.6, markeredgecolor="white", **dots)
        else:
            axes.plot(*places.T, color="white", linewidth=1.6, path_effects=outline)


def _draw_points(axes: Axes, plane: PlaneRecord, colours: Mapping[str, str]) -> None:
    paint, labels = point_colours(plane, colours), labels_of(plane)
    for name, place in shown_points(plane).items():
        colour = paint.get(name, _WHITE)
        face, edge = (_WHITE, colour) if plane.is_projected(name) else (colour, _WHITE)
        if is_bend(name):
            face, edge = _WHITE, _OUTLINE
        axes.plot(
            *place,
            marker="D" if is_bend(name) else "o",
            markersize=4.5 if is_bend(name) else 6.5,
            markerfacecolor=face,
            markeredgecolor=edge,
            markeredgewidth=1.2,
            linestyle="none",
            zorder=5,
        )
        label = labels.get(name)
        if label is None:
            continue
        axes.annotate(
            label.text,
            place,
            (0.65 * label.shift[0], 0.65 * label.shift[1]),
            textcoords="offset points",
            ha=label.anchor[0],
            va={"bottom": "bottom", "middle": "center", "top": "top"}[label.anchor[1]],
            fontsize=7,
            bbox={
                "boxstyle": "square,pad=0.2",
                "facecolor": "white",
                "alpha": 0.88,
                "edgecolor": paint.get(name, _INKS["axis"]),
            }
            | {"linewidth": 0.6},
            zorder=6,
        )


def _encoded(figure: Figure, form: Format) -> bytes:
    buffer = io.BytesIO()
    if form == "png":
        figure.savefig(buffer, format="png", dpi=220)
        return buffer.getvalue()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _NUMBER.sub(lambda match: f"{float(match[0]):.2f}", buffer.getvalue().decode()).encode()
