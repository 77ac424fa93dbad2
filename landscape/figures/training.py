"""How the minima came about: one quantity of their training over the epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.theme import Theme, axis_title, new_figure
from valleyscope.landscape.storage.records import MinimumRecord, recorded


@dataclass(frozen=True)
class Quantity:
    """A column of the training record, or a pair for train and test, and how it is shown."""

    title: str
    columns: Mapping[str, str]
    log: bool = False
    percent: bool = False


QUANTITIES: Final[Mapping[str, Quantity]] = {
    "loss": Quantity("loss, nats (test dotted)", {"train": "train_loss", "test": "test_loss"}, log=True),
    "accuracy": Quantity("accuracy (test dotted)", {"train": "train_accuracy", "test": "test_accuracy"}, percent=True),
    "sparsity": Quantity("sparsity (zero parameters)", {"": "sparsity"}, percent=True),
    "zero_groups": Quantity("groups that are zero", {"": "zero_groups"}, percent=True),
    "threshold": Quantity("accumulated threshold G", {"": "threshold"}),
    "angle": Quantity("angle, degrees", {"": "angle"}),
    "learning_rate": Quantity("learning rate", {"": "learning_rate"}, log=True),
}


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
    figure = new_figure(theme, shown.title if title is None else title)
    for minimum in records:
        for split, column in shown.columns.items():
            values = minimum.epochs.get(column)
            if values is None or not recorded(values):
                continue
            label = f"{minimum.name}, {split}" if split else minimum.name
            number = ":.1%" if shown.percent else ":.3g"
            figure.add_trace(
                go.Scatter(
                    x=minimum.epochs.get("epoch", np.arange(1.0, len(values) + 1)),
                    y=np.where(np.isfinite(values), values, np.nan),
                    mode="lines",
                    line={"color": paint[minimum.name], "width": 1.8, "dash": "dot" if split == "test" else "solid"},
                    name=minimum.name,
                    legendgroup=minimum.name,
                    showlegend=split != "test",
                    hovertemplate=f"%{{y{number}}} {label}<extra></extra>",
                )
            )
    as_log = shown.log if log is None else log
    figure.update_layout(
        xaxis={"title": axis_title("epoch")},
        yaxis={"type": "log" if as_log else "linear", "rangemode": "normal" if as_log else "tozero"}
        | ({"tickformat": ".0%"} if shown.percent else _log_ticks(figure) if as_log else {})
        | ({"rangemode": "normal"} if quantity == "accuracy" else {}),
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"},
        hovermode="x unified",
        showlegend=True,
    )
    return figure


def _log_ticks(figure: go.Figure) -> dict[str, Any]:
    """Powers of ten, or what plotly chooses where hardly one of them would be seen."""
    drawn = np.concatenate([np.asarray(trace.y, dtype=float) for trace in figure.data] or [np.empty(0)])
    values = drawn[np.isfinite(drawn) & (drawn > 0)]
    wide = values.size > 0 and values.max() >= 20 * values.min()
    return {"dtick": 1} if wide else {"nticks": 6}
