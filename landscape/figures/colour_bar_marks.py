"""Marks beside a colour bar: a dot at the value of each minimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from valleyscope.landscape.figures.scale import Scale
from valleyscope.landscape.figures.theme import Parts, Theme, themed
from valleyscope.landscape.plot_style import STYLE

_LOOK: Final = STYLE["contour"]


def bar_marks(
    scale: Scale,
    heights: Mapping[str, float],
    colours: Mapping[str, str],
    theme: Theme,
    bar: Mapping[str, Any],
) -> list[Parts]:
    """Shapes beside a standing colour bar, which begins at the paper's ``bar["y"]`` and is ``bar["len"]`` long."""
    look, edge = _LOOK["bar_marks"], _LOOK["bar"]["xpad"]
    foot, length = (bar["y"], bar["len"]) if "len" in bar else (0.0, 1.0)
    at = {"xref": "paper", "yref": "paper", "xsizemode": "pixel", "ysizemode": "pixel", "xanchor": bar.get("x", 1)}
    shapes: list[Parts] = []
    for share, slot, name in mark_places(scale, heights):
        centre, half = edge - look["from_bar"] - look["step"] * slot, look["size"] / 2
        shapes.append(
            {
                **{
                    "type": "circle",
                    **at,
                    "yanchor": foot + length * share,
                    "fillcolor": colours.get(name, STYLE["white"]),
                },
                **{"x0": centre - half, "x1": centre + half, "y0": -half, "y1": half},
                "line": themed(look["line"], theme),
            }
        )
    return shapes


def mark_places(scale: Scale, heights: Mapping[str, float]) -> list[tuple[float, int, str]]:
    """For each minimum, lowest first: its share of the bar's length, its slot away from the bar, and its name."""
    look = _LOOK["bar_marks"]
    places: list[tuple[float, int, str]] = []
    for name in sorted(heights, key=lambda name: heights[name]):
        share = scale.share(heights[name])
        near = sum(abs(share - other) < look["near"] for other, _, _ in places)
        places.append((share, min(near, look["slots"] - 1), name))
    return places
