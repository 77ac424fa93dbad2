"""Pictures for papers, by matplotlib: the same scales, colours and labels as the interactive figures.

SVG is vector all through, with text as text, filled bands instead of pixels and coordinates to a hundredth of a point:
small enough for LaTeX.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import PercentFormatter

from valleyscope.landscape.analysis.fork_curves import fork_curves
from valleyscope.landscape.analysis.grid_sampling import coarse_lattice, is_bend, spread, straight_lines
from valleyscope.landscape.claim import Claim, Level, claim_of, computed_planes
from valleyscope.landscape.colours import MAPS, colours_of
from valleyscope.landscape.export.forks_picture import forks_picture
from valleyscope.landscape.figures.axes import axis_titles, notes_of, stretch_of
from valleyscope.landscape.figures.colour_bar_marks import mark_places
from valleyscope.landscape.figures.contour import (
    minima_values,
    point_colours,
    quantities_of,
    surface_scale,
    values_of,
)
from valleyscope.landscape.figures.labels import labels_of, roomiest, shown_points
from valleyscope.landscape.figures.paper import profile_paths
from valleyscope.landscape.figures.profile import path_label, path_style
from valleyscope.landscape.figures.scale import Quantity, Scale
from valleyscope.landscape.figures.theme import quantity_title, unescaped
from valleyscope.landscape.figures.tolerance_contour import (
    floor_lines,
    floor_text,
    labelled_line,
    tolerance_lines,
    tolerance_text,
)
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, PathRecord, PlaneRecord, error_split, recorded

Format = Literal["png", "svg", "pdf"]

_INKS: Final = STYLE["inks"]["light"]
_WHITE: Final = STYLE["white"]
_OUTLINE: Final = "#0c0e12"
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # text stays text, which journals ask for
    "svg.hashsalt": "valleyscope",
    "font.size": 9,
    "axes.linewidth": 0.6,
    "axes.edgecolor": _INKS["muted"],
    "axes.labelcolor": _INKS["text"],
    "xtick.color": _INKS["muted"],
    "ytick.color": _INKS["muted"],
}
_STYLE_LOCK: Final = threading.Lock()  # the style of matplotlib is one for all threads
_DASHES: Final = {"solid": "-", "dash": (0, (5, 3)), "dot": (0, (1, 1.6)), "dashdot": (0, (5, 2, 1, 2))}
# More points than this a side change nothing that can be seen in print, and make an SVG large.
_FINEST: Final = 101
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def write_pictures(landscape: Landscape, directory: Path, form: Format) -> list[Path]:
    """Write <plane>-<split>-<value> for each recorded quantity, profile, and paper for the plane of the claim."""
    written = []
    with _STYLE_LOCK, mpl.rc_context(_STYLE):
        for name, figure in _pictures(landscape):
            path = directory / f"{name}.{form}"
            with write_atomically(path) as file:
                file.write(_encoded(figure, form))
            written.append(path)
    return written


def paper_picture(landscape: Landscape, form: Format) -> bytes | None:
    """The figure of the paper as the bytes of a file; None while its plane and paths are not computed."""
    with _STYLE_LOCK, mpl.rc_context(_STYLE):
        figure = next((figure for name, figure in _pictures(landscape, only="paper")), None)
        return None if figure is None else _encoded(figure, form)


def _pictures(landscape: Landscape, only: str | None = None) -> Iterator[tuple[str, Figure]]:
    colours, claim = colours_of(landscape.minima), claim_of(landscape)
    planes = computed_planes(landscape)
    for plane in planes if only is None else ():
        for split, value in quantities_of(plane):
            yield f"{plane.name}-{split}-{value}", _plane_picture(plane, split, value, colours, claim)
    paths = profile_paths(landscape)
    if paths and only is None:
        yield "profile", _profile_picture(paths, colours)
    if only is None and (curves := fork_curves(landscape)) is not None:
        yield "forks", forks_picture(curves)
    if planes and paths and {("train", "loss"), ("test", "error")} <= set(quantities_of(planes[0])):
        yield "paper", _paper_picture(planes[0], paths, colours, claim)


def _plane_picture(
    plane: PlaneRecord, split: str, value: Quantity, colours: Mapping[str, str], claim: Claim | None
) -> Figure:
    figure = Figure(figsize=(4.8, float(np.clip(3.3 * _shape(plane) + 1.1, 2.2, 6.8))), layout="constrained")
    draw_plane(figure.subplots(), plane, split, value, colours, claim)
    return figure


def _profile_picture(paths: Sequence[PathRecord], colours: Mapping[str, str]) -> Figure:
    figure = Figure(figsize=(4.6, 3.6), layout="constrained")
    if any(recorded(values.error) for path in paths for values in path.splits.values()):
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        draw_values(lower, paths, error_split(paths), "error", colours)
    else:
        upper, lower = figure.subplots(), None
    draw_values(upper, paths, "train", "loss", colours)
    if lower is not None:
        upper.set_xlabel("")
    figure.legend(*upper.get_legend_handles_labels(), loc="outside upper left", frameon=False, fontsize=7, ncols=2)
    return figure


def _shape(plane: PlaneRecord) -> float:
    """Height over width of the frame."""
    return float(np.ptp(plane.y) / np.ptp(plane.x)) * stretch_of(plane)


def _paper_picture(
    plane: PlaneRecord, paths: Sequence[PathRecord], colours: Mapping[str, str], claim: Claim | None
) -> Figure:
    above = float(np.clip(2.6 * _shape(plane), 1.3, 4.5))
    figure = Figure(figsize=(7.2, above + 3.1), layout="constrained")
    axes = figure.subplots(2, 2, height_ratios=(above, 1.7))
    draw_plane(axes[0, 0], plane, "train", "loss", colours, claim)
    draw_plane(axes[0, 1], plane, "test", "error", colours, claim)
    draw_values(axes[1, 0], paths, "train", "loss", colours)
    draw_values(axes[1, 1], paths, error_split(paths), "error", colours)
    figure.legend(
        *axes[1, 0].get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=7, ncols=3
    )
    return figure


def draw_plane(
    axes: Axes,
    plane: PlaneRecord,
    split: str,
    value: Quantity,
    colours: Mapping[str, str],
    claim: Claim | None = None,
) -> None:
    """Filled contours with curve, lines, trajectories, named points and the tolerance contour of a claim.

    The ground is hatched where nothing is computed.
    """
    values = values_of(plane, split, value)
    level = None if claim is None else claim.level(plane, split, value)
    scale = surface_scale(plane, values, value, False, None, level)
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
    beside = axes.inset_axes((1.08, 0, 0.035, 1))
    bar = axes.figure.colorbar(bands, cax=beside, extendfrac=0, extendrect=True)
    bar.set_ticks(ticks["tickvals"], labels=ticks["ticktext"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, width=0.6)
    minima = minima_values(plane, values)
    _mark_bar(bar.ax, scale, minima, point_colours(plane, colours))
    if level is not None:
        _draw_tolerance(axes, plane, values, level, scale)
    _draw_paths(axes, plane, colours)
    _draw_points(axes, plane, colours)
    across, up = axis_titles(plane, y_break="\n")
    axes.set(
        aspect=stretch_of(plane),
        xlim=(plane.x[0], plane.x[-1]),
        ylim=(plane.y[0], plane.y[-1]),
        xlabel=unescaped(across),
        ylabel=unescaped(up),
    )
    notes = [unescaped(note) for note in notes_of(plane, scale, minima)]
    axes.set_title(
        "\n".join([quantity_title(split, value, loss_unit=plane.loss_unit), *notes]),
        fontsize=8 if notes else 9,
        loc="left",
    )


def _draw_tolerance(axes: Axes, plane: PlaneRecord, values: Floats, level: Level, scale: Scale) -> None:
    """The tolerance contour, and that around what is level with the foot of a slope, dark on a light halo."""
    named: list[tuple[Any, str]] = []
    contours: tuple[tuple[list[Floats], Callable[[Level, Scale], str], float, Any], ...] = (
        (tolerance_lines(plane, values, level), tolerance_text, 1.2, "-"),
        (floor_lines(plane, values, level), floor_text, 0.9, (0, (2, 2))),
    )
    for lines, text_of, width, dashes in contours:
        halo = [Stroke(linewidth=width + 1.4, foreground=_WHITE), Normal()]
        for line in lines:
            axes.plot(*line.T, color=_OUTLINE, linewidth=width, linestyle=dashes, path_effects=halo)
        if not lines:
            continue
        text = text_of(level, scale)
        place = roomiest(plane, text, labelled_line(plane, lines), named)
        named.append((place, text))
        box = {"boxstyle": "square,pad=0.2", "facecolor": _WHITE, "alpha": 0.88, "edgecolor": _OUTLINE}
        axes.annotate(text, place, ha="center", va="center", fontsize=6.5, bbox=box | {"linewidth": 0.6}, zorder=4)


def _mark_bar(bar: Axes, scale: Scale, heights: Mapping[str, float], colours: Mapping[str, str]) -> None:
    """A dot beside the colour bar at the value of each minimum."""
    for share, slot, name in mark_places(scale, heights):
        dot: dict[str, Any] = {"marker": "o", "markersize": 3.6, "markeredgecolor": _INKS["text"], "clip_on": False}
        place = (-0.4 - 0.7 * slot, share)
        bar.plot(*place, transform=bar.transAxes, markerfacecolor=colours.get(name, _WHITE), markeredgewidth=0.5, **dot)


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
    axes.set_ylabel(quantity_title(split, value, loss_unit=paths[0].loss_unit))
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
    # The canvas grows with what is drawn: the layout does not know how wide the labels of a colour bar are.
    whole: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.08}
    if form == "png":
        figure.savefig(buffer, format="png", dpi=220, **whole)
        return buffer.getvalue()
    if form == "pdf":
        figure.savefig(buffer, format="pdf", metadata={"CreationDate": None}, **whole)
        return buffer.getvalue()
    figure.savefig(buffer, format="svg", metadata={"Date": None}, **whole)
    return _NUMBER.sub(lambda match: f"{float(match[0]):.2f}", buffer.getvalue().decode()).encode()
