"""Loss and error along the paths between minima: the straight line dashed, the fitted curve solid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.theme import Theme, axis_title, new_figure
from valleyscope.landscape.storage import records
from valleyscope.landscape.storage.records import Floats, PathRecord, PathValues, recorded


def profile(
    *paths: PathRecord,
    loss_split: str = "train",
    error_split: str | None = None,
    log: bool = False,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
) -> go.Figure:
    """Loss (above) and error (below) along the paths, on one axis of t.

    The error is that of ``error_split``: by default test, or train where no test error was recorded. A path has the
    colour of the minimum where it ends. The loss is linear unless ``log``, since a barrier is a
    difference. A value that overflowed is drawn at the top of what did not.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09, row_heights=[0.58, 0.42])
    new_figure(theme, figure=figure)
    draw_profile(figure, paths, (loss_split, error_split or records.error_split(paths)), log, colours, ("", "2"))
    figure.update_layout(
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        margin={"t": 16},
        hovermode="x unified",
    )
    figure.update_xaxes(showticklabels=False, title=None, row=1, col=1)
    return figure


def draw_profile(
    figure: go.Figure,
    paths: Sequence[PathRecord],
    splits: tuple[str, str],
    log: bool,
    colours: Mapping[str, str] | None,
    axes: tuple[str, str],
) -> None:
    """Draw the loss of the first split on axes x<axes[0]>, the error of the second on x<axes[1]>."""
    if not paths:
        raise ValueError("a profile needs at least one path")
    paint = colours or colours_of(end for path in paths for end in (path.start, path.end))
    for split, quantity, axis in zip(splits, ("loss", "error"), axes, strict=True):
        top = _highest(path.splits[split] for path in paths if split in path.splits) if quantity == "loss" else 1.0
        for path in paths:
            if split not in path.splits or not recorded(path.splits[split][quantity]):
                continue
            values = path.splits[split][quantity]
            figure.add_trace(
                _trace(path, values, quantity, split, min(top, 1e300), path_style(path, paths, paint), axis)
            )
        figure.update_layout(
            {
                f"xaxis{axis}": {"range": [paths[0].t[0], paths[0].t[-1]], "title": axis_title("t along the path")},
                f"yaxis{axis}": {
                    "title": axis_title(f"{split} loss, nats" if quantity == "loss" else f"{split} error"),
                    "type": "log" if log and quantity == "loss" else "linear",
                    "rangemode": "tozero",
                }
                | ({"tickformat": ".0%"} if quantity == "error" else {}),
            }
        )


def path_label(path: PathRecord) -> str:
    """How a legend calls a path.

    >>> t = np.linspace(0, 1, 3)
    >>> path_label(PathRecord("valley", "bezier", "sgd", "altsdp", t, t, {}))
    'curve valley: sgd to altsdp'
    """
    what = "line" if path.kind == "line" else f"curve {path.name}"
    return f"{what}: {path.start} to {path.end}"


def _trace(
    path: PathRecord, values: Floats, quantity: str, split: str, top: float, style: dict[str, Any], axis: str
) -> Any:
    number = ":.3g" if quantity == "loss" else ":.1%"
    return go.Scatter(
        x=path.t,
        y=np.minimum(values, top),
        customdata=values,
        mode="lines",
        line=style,
        name=path_label(path),
        legendgroup=path_label(path),
        showlegend=quantity == "loss",
        hovertemplate=f"%{{customdata{number}}} {split} {quantity}, {path_label(path)}<extra></extra>",
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
    )


def path_style(path: PathRecord, paths: Sequence[PathRecord], paint: Mapping[str, str]) -> dict[str, Any]:
    """Solid for curves, dashed for lines; dotted for a line that ends where an earlier one does."""
    before = paths[: [other.name for other in paths].index(path.name)]
    straight = "dot" if any(other.kind == "line" and other.end == path.end for other in before) else "dash"
    return {
        "color": paint.get(path.end, "#7F7F7F"),
        "width": 1.8 if path.kind == "line" else 2.4,
        "dash": straight if path.kind == "line" else "solid",
    }


def _highest(values: Iterable[PathValues]) -> float:
    finite = [value.loss[np.isfinite(value.loss)] for value in values]
    return max((float(part.max()) for part in finite if part.size), default=1.0)
