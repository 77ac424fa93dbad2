"""How the minima came about: one quantity of their training over the epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.theme import Theme, escaped, log_axis, new_figure
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import MinimumRecord

_LOOK: Final = STYLE["training"]
_LEGEND: Final = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"}
QUANTITIES: Final[Mapping[str, Any]] = _LOOK["quantities"]


def training(
    minima: Iterable[MinimumRecord],
    quantity: str = "loss",
    log: bool | None = None,
    theme: Theme = "light",
    colours: Mapping[str, str] | None = None,
    title: str | None = None,
) -> go.Figure:
    """One quantity of all minima on a shared axis of epochs; train solid, test dotted."""
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity is {quantity!r}; choose one of {', '.join(QUANTITIES)}")
    shown, records = QUANTITIES[quantity], list(minima)
    paint = colours or colours_of(minimum.name for minimum in records)
    traces, lists = [], []
    for minimum in records:
        for split, column in shown["columns"].items():
            values = minimum.epochs.get(column, np.empty(0))
            lists.append(values)
            if not np.isfinite(values).any():
                continue
            colour, label = paint[minimum.name], escaped(minimum.name)
            number = STYLE["hover"]["error" if shown.get("percent") else "loss"]
            trace = {
                "mode": "markers" if len(values) == 1 else "lines",
                "x": minimum.epochs.get("epoch", np.arange(1.0, len(values) + 1)),
                "y": np.where(np.isfinite(values), values, np.nan),
                "line": {"color": colour, "width": _LOOK["width"], "dash": _LOOK["dashes"][split]},
                "marker": {"color": colour, "size": _LOOK["marker"]},
                "hovertemplate": f"%{{y{number}}} {label}{f', {split}' if split else ''}<extra></extra>",
            }
            legend = {"name": minimum.name, "legendgroup": minimum.name, "showlegend": split != "test"}
            traces.append({"type": "scatter", **trace, **legend})
    linear = {"type": "linear", "rangemode": "tozero" if shown.get("zero") else "normal", "nticks": 6}
    as_log = shown.get("log", False) if log is None else log
    percent = {"tickformat": "~%"} if shown.get("percent") else {}
    layout = {
        "xaxis": {"title": {"text": STYLE["titles"]["epoch"]}, **_epoch_ticks(records)},
        "yaxis": {**(log_axis(lists) if as_log else linear), **percent},
        **{"legend": _LEGEND, "hovermode": "x unified", "showlegend": True},
    }
    return new_figure(traces, layout, theme, shown["title"] if title is None else title)


def _epoch_ticks(minima: Iterable[MinimumRecord]) -> dict[str, int]:
    """There is no half of an epoch: as long as there are few, each has a tick."""
    last = max((float(minimum.epochs.get("epoch", np.ones(1))[-1:].sum()) for minimum in minima), default=1.0)
    return {"tick0": 0, "dtick": 1} if last <= _LOOK["few_epochs"] else {"nticks": 6}
