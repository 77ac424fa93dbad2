"""What all figures share. The values are in static/plots/style.json; the rules are those of static/plots/theme.js."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import numpy as np
import plotly.graph_objects as go

from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import Floats

Theme = Literal["light", "dark"]
Parts = dict[str, Any]

CONFIG: Final[Mapping[str, Any]] = {**STYLE["config"], "responsive": True}
_TITLE: Final = {"x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"} | {
    "pad": {"t": 10},
    "font": {"size": 13},
}
_TITLE_ROOM: Final = 28


def themed(part: Any, theme: Theme) -> Any:
    """A part of the style in the inks of a theme: "$muted" stands for the ink of that name."""
    if theme not in STYLE["inks"]:
        raise ValueError(f"theme is {theme!r}; choose light or dark")
    inks = STYLE["inks"][theme]
    return json.loads(re.sub(r'"\$(\w+)"', lambda found: json.dumps(inks[found[1]]), json.dumps(part)))


def new_figure(data: list[Parts], layout: Mapping[str, Any], theme: Theme, title: str = "") -> go.Figure:
    """A figure in our style. All that depends on the theme is in its template, never in a trace."""
    style = themed(STYLE, theme)
    axis, side, bar = style["axis"], style["scene_axis"], [{"colorbar": style["bar"]}]
    template = {
        "data": {"contour": bar, "heatmap": bar, "surface": bar, "bar": [{"insidetextfont": style["bar_text"]}]},
        "layout": {
            **style["layout"],
            **{"xaxis": axis, "yaxis": axis, "scene": {"xaxis": side, "yaxis": side, "zaxis": side}},
        },
    }
    whole = {"template": template, "margin": STYLE["margin"], **layout}
    if title:
        whole |= {
            "title": {"text": title, **_TITLE},
            "margin": {**whole["margin"], "t": whole["margin"]["t"] + _TITLE_ROOM},
        }
    return go.Figure({"data": data, "layout": whole})


def quantity_title(split: str, value: str, log: bool = False, loss_unit: str = "nats") -> str:
    titles = STYLE["titles"]
    name = titles[value] if value != "loss" or loss_unit == "nats" else titles[value].partition(",")[0]
    return f"{split} {name}{titles['log'] if log and value == 'loss' else ''}"


def heading(text: str, x: float, y: float, theme: Theme) -> Parts:
    """A text above one of several pictures."""
    return {"text": text, "x": x, "y": y, **themed(STYLE["heading"], theme)}


def log_axis(lists: Iterable[Floats]) -> Parts:
    """A logarithmic axis: powers of ten, or what plotly chooses where hardly one of them would be seen."""
    values = np.concatenate([*lists, np.empty(0)])
    values = values[np.isfinite(values) & (values > 0)]
    wide = values.size > 0 and values.max() >= STYLE["scale"]["log_axis"] * values.min()
    return {"type": "log", **({"dtick": 1} if wide else {"nticks": 6})}


def escaped(text: str) -> str:
    """Text that plotly shows as it is: it would read tags and fields in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")


def unescaped(text: str) -> str:
    """The text that plotly would show."""
    return text.replace("% {", "%{").replace("&lt;", "<").replace("&amp;", "&")
