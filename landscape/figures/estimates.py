"""What figures and captions say of an estimated surface: its errors, and where they are larger than asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import Grid, Mask, PlaneRecord

_LOOK = STYLE["contour"]["doubtful"]
_NEGLIGIBLE = _LOOK["negligible"]


def doubtful(plane: PlaneRecord, split: str, value: str) -> Mask:
    """The points whose standard error is larger than asked for: of a loss relative to it, of an error as it is.

    A loss below a thousandth of the range of losses is compared with that. Twice the accuracy is normal for single
    points: it is met on average over the points.
    """
    grid: Grid = plane.splits[split]
    accuracy = plane.estimate.get("accuracy")
    if accuracy is None or not grid.is_estimated:
        return np.zeros(plane.shape, dtype=bool)
    errors, values = grid[f"{value}_error"], grid[value]
    known = plane.done & np.isfinite(values)
    if not known.any():
        return known
    scale = np.ones(plane.shape)
    if value == "loss":
        scale = np.maximum(np.abs(values), _NEGLIGIBLE * float(np.ptp(values[known])))
    with np.errstate(invalid="ignore"):
        found: Mask = known & (errors > _LOOK["factor"] * accuracy * scale)
    return found


def doubtful_trace(plane: PlaneRecord, split: str, value: str) -> list[dict[str, Any]]:
    """Marks on the points whose error is larger than asked for."""
    rows, columns = np.nonzero(doubtful(plane, split, value))
    if not len(rows):
        return []
    place = {"x": plane.x[columns], "y": plane.y[rows]}
    return [{"type": "scatter", **place, "name": "less certain", **_LOOK["trace"], "hoverinfo": "skip"}]


def estimate_sentence(plane: PlaneRecord) -> str | None:
    """How a surface was estimated, for its caption."""
    about = plane.estimate
    if not about or not any(grid.is_estimated for grid in plane.splits.values()):
        return None
    share, accuracy = 100 * plane.evaluated, 100 * about["accuracy"]
    sentence = (
        f"Estimated to {accuracy:.3g} % of the loss from {share:.2g} % of all pairs of a sample and a point; "
        "paths and verdict are exact. Crosses: less certain than asked for."
    )
    return f"{sentence} {about['note'][0].upper()}{about['note'][1:]}." if about.get("note") else sentence
