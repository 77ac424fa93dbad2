"""Loss and error along the paths between minima: the straight line dashed, the fitted curve solid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.theme import Parts, Theme, log_axis, new_figure, quantity_title
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage import records
from valleyscope.landscape.storage.records import PathRecord, recorded

_LOOK: Final = STYLE["profile"]
ALIGNED: Final = "aligned"
"""The kind of a line to a minimum with its hidden units in another order, among the paths of a profile."""


def profile(
    *paths: PathRecord,
    loss_split: str = "train",
    error_split: str | None = None,
    log: bool = False,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
) -> go.Figure:
    """Loss (above) and error (below, where there is one) along the paths, on one axis of t.

    The error is that of ``error_split``: by default test, or train where no test error was recorded. A path has the
    colour of the minimum where it ends. The loss is linear unless ``log``, since a barrier is a
    difference. A value that overflowed is drawn at the top of what did not.
    """
    top, above, below, bottom = _LOOK["rows"]
    upper = profile_parts(paths, loss_split, "loss", log, colours)
    if not any(recorded(values.error) for path in paths for values in path.splits.values()):
        rest = {key: part for key, part in upper.items() if key != "traces"}
        return new_figure(upper["traces"], {**_LOOK["pair"], **rest}, theme)
    lower = profile_parts(paths, error_split or records.error_split(paths), "error", False, colours, "2")
    shared = {"title": {"text": ""}, "anchor": "y", "matches": "x2", "showticklabels": False}
    layout = {
        **_LOOK["pair"],
        "xaxis": {**upper["xaxis"], **shared},
        "yaxis": {**upper["yaxis"], "anchor": "x", "domain": [above, top]},
        "xaxis2": {**lower["xaxis"], "anchor": "y2"},
        "yaxis2": {**lower["yaxis"], "anchor": "x2", "domain": [bottom, below]},
    }
    return new_figure(upper["traces"] + lower["traces"], layout, theme)


def profile_parts(
    paths: Sequence[PathRecord],
    split: str,
    value: str,
    log: bool,
    colours: Mapping[str, str] | None,
    suffix: str = "",
) -> Parts:
    """Traces and axes of one quantity along the paths, on the axes x<suffix> and y<suffix>."""
    if not paths:
        raise ValueError("a profile needs at least one path")
    paint = colours or colours_of(end for path in paths for end in (path.start, path.end))
    shown = [path for path in paths if split in path.splits and recorded(path.splits[split][value])]
    lists = [path.splits[split][value] for path in shown]
    top = max((float(values[np.isfinite(values)].max(initial=-np.inf)) for values in lists), default=-np.inf)
    top = top if np.isfinite(top) else 1.0
    traces = []
    for path, values in zip(shown, lists, strict=True):
        label = path_label(path)
        trace = {
            **{"type": "scatter", "mode": "lines", "x": path.t, "y": np.minimum(values, top)},
            **{"name": label, "legendgroup": label, "showlegend": value == "loss", "customdata": values},
            "hovertemplate": f"%{{customdata{STYLE['hover'][value]}}} {split} {value}, {label}<extra></extra>",
        }
        where = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        traces.append(trace | {"line": path_style(path, paths, paint)} | where)
    linear = {"type": "linear", "rangemode": "tozero", "nticks": 6}
    format_ = {"tickformat": ".1%" if top < _LOOK["small_error"] else ".0%"} if value == "error" else {}
    scale = log_axis(lists) if log and value == "loss" else linear
    return {
        "traces": traces,
        "xaxis": {"title": {"text": STYLE["titles"]["t"]}, "range": paths[0].t[[0, -1]]},
        "yaxis": {"title": {"text": quantity_title(split, value, loss_unit=paths[0].loss_unit)}, **scale, **format_},
    }


def path_label(path: PathRecord) -> str:
    """How a legend calls a path.

    >>> t = np.linspace(0, 1, 3)
    >>> path_label(PathRecord("valley", "bezier", "sgd", "altsdp", t, t, {}))
    'curve valley: sgd to altsdp'
    """
    what = "line" if path.kind in ("line", ALIGNED) else f"curve {path.name}"
    return f"{what}: {path.start} to {path.end}" + (", aligned" if path.kind == ALIGNED else "")


def path_style(path: PathRecord, paths: Sequence[PathRecord], colours: Mapping[str, str]) -> Parts:
    """Solid for curves, dashed for lines, dotted where an earlier one has the same end; thin for aligned lines."""
    if path.kind == ALIGNED:
        return {**_LOOK["aligned_line"], "color": colours.get(path.end, STYLE["unnamed"])}
    before = paths[: [other.name for other in paths].index(path.name)]
    again = any(other.kind == "line" and other.end == path.end for other in before)
    look = _LOOK["curve"] if path.kind != "line" else _LOOK["later_line" if again else "line"]
    return {**look, "color": colours.get(path.end, STYLE["unnamed"])}
