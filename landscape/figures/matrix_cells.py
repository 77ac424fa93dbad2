"""How a matrix of barriers or rises is painted: colour, ink and mark of each cell.

Colour is linear from zero to the highest value, at least four tolerances. The same rules are in
static/plots/matrix-cells.js.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, Literal

from valleyscope.landscape.plot_style import STYLE

Mark = Literal["within", "near", "above"]

_STOPS: Final = [tuple(int(stop[at : at + 2], 16) for at in (1, 3, 5)) for stop in STYLE["maps"]["loss"]["stops"]]


def scale_end(values: Iterable[float | None], tolerance: float) -> float:
    """The value of the last colour."""
    least: float = STYLE["claim"]["least_room"] * tolerance
    return max([least, *(value for value in values if value is not None and math.isfinite(value))])


def cell_colour(value: float, end: float) -> tuple[int, int, int]:
    """Red, green and blue of a value on a scale from 0 to ``end``."""
    place = min(max(value / end, 0.0), 1.0) * (len(_STOPS) - 1)
    index = min(int(place), len(_STOPS) - 2)
    share = place - index
    red, green, blue = (
        math.floor(low + share * (high - low) + 0.5) for low, high in zip(_STOPS[index], _STOPS[index + 1], strict=True)
    )
    return red, green, blue


def cell_ink(colour: tuple[int, int, int]) -> str:
    """Black or white, whichever has more contrast on a colour: at least 4.5 to 1 (WCAG 2.2, relative luminance)."""
    parts = [part / 255 for part in colour]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def cell_mark(value: float, low: float | None, high: float | None, tolerance: float) -> Mark:
    """Whether a value is surely within the tolerance, surely above, or near: its interval contains the tolerance."""
    if (value if high is None else high) <= tolerance:
        return "within"
    return "above" if (value if low is None else low) > tolerance else "near"
