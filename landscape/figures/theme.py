"""What all figures share: type, inks, axes and the options for plotly.js.

The data has the colour, the frame has none. Colours that depend on the theme stand in the layout only, never in a
trace, so that a page can change the theme by exchanging the layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import plotly.graph_objects as go

Theme = Literal["light", "dark"]

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

CONFIG: Final[Mapping[str, Any]] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "hoverClosest3d", "tableRotation"],
    "toImageButtonOptions": {"format": "svg"},
}


@dataclass(frozen=True)
class Inks:
    """The greys of one theme."""

    text: str
    muted: str
    grid: str
    axis: str
    panel: str
    pill: str
    empty: str
    hatch: str


INKS: Final[Mapping[Theme, Inks]] = {
    "light": Inks(
        "#1f2328", "#59636e", "#e7eaee", "#8d96a0", "#ffffff", "rgba(255,255,255,0.88)", "#eceef1", "#cfd4da"
    ),
    "dark": Inks("#e6e9ed", "#9da7b3", "#2b323b", "#68727e", "#12161b", "rgba(18,22,27,0.82)", "#20262d", "#363e48"),
}


def inks(theme: Theme) -> Inks:
    if theme not in INKS:
        raise ValueError(f"theme is {theme!r}; choose light or dark")
    return INKS[theme]


def new_figure(theme: Theme, title: str = "", figure: go.Figure | None = None) -> go.Figure:
    """An empty figure (or the given one) in the house style."""
    figure = go.Figure() if figure is None else figure
    figure.update_layout(
        template=_template(inks(theme)),
        title=title_style(title),
        margin={"l": 56, "r": 16, "t": 36 if title else 12, "b": 48},
        autosize=True,
    )
    return figure


def title_style(text: str) -> dict[str, Any]:
    return {"text": text, "x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"} | {
        "pad": {"t": 10},
        "font": {"size": 13},
    }


def axis_title(text: str) -> dict[str, Any]:
    return {"text": text, "standoff": 8}


def _template(ink: Inks) -> go.layout.Template:
    axis = {
        "gridcolor": ink.grid,
        "linecolor": ink.axis,
        "tickcolor": ink.axis,
        "ticks": "outside",
        "ticklen": 4,
        "tickfont": {"size": 11, "color": ink.muted},
        "title": {"font": {"size": 12, "color": ink.muted}},
        "zeroline": False,
        "showline": True,
        "automargin": True,
    }
    space = {
        "showbackground": False,
        "gridcolor": ink.grid,
        "linecolor": ink.axis,
        "tickfont": {"size": 10, "color": ink.muted},
        "title": {"font": {"size": 11, "color": ink.muted}},
        "zeroline": False,
        "showspikes": False,
    }
    layout = go.Layout(
        font={"family": FONT, "size": 12, "color": ink.text},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis=axis,
        yaxis=axis,
        scene={"xaxis": space, "yaxis": space, "zaxis": space},
        legend={"font": {"size": 11, "color": ink.text}, "bgcolor": "rgba(0,0,0,0)"},
        hoverlabel={
            "bgcolor": ink.panel,
            "bordercolor": ink.axis,
            "font": {"family": FONT, "size": 12, "color": ink.text},
            "align": "left",
        },
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": ink.muted, "activecolor": ink.text},
    )
    return go.layout.Template(layout=layout)
