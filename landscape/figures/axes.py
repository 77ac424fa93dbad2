"""The axes of a plane: where they lead, whether one is stretched, and the notes above the frame.

Both axes have one unit. A plane that is very flat or very tall would hardly be seen so: then the shorter axis is
stretched by a whole number, and a note says it. A minimum that is farther off the plane than a tenth of the longer side
is not drawn, since the surface under it says nothing about it: a note names it and its distance.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from valleyscope.landscape.analysis.grid_sampling import is_bend
from valleyscope.landscape.figures.scale import Scale, significant
from valleyscope.landscape.figures.theme import Parts, Theme, escaped, themed
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import PlaneRecord

_RULES: Final = STYLE["axes"]
_DIRECTIONS: Final = {
    "around": ("a random direction", "another random direction"),
    "principal": ("first principal direction", "second principal direction"),
}


def stretch_of(plane: PlaneRecord) -> float:
    """Length of a unit on the vertical axis over one on the horizontal axis: 1, a whole number, or one over it."""
    shape = float(np.ptp(plane.y) / np.ptp(plane.x))
    if shape < _RULES["flattest"]:
        return float(math.ceil(_RULES["stretched_to"] / shape))
    if shape > 1 / _RULES["flattest"]:
        return 1.0 / float(math.ceil(_RULES["stretched_to"] * shape))
    return 1.0


def axis_titles(plane: PlaneRecord, x_break: str = ", ", y_break: str = "<br>") -> tuple[str, str]:
    """Where each axis leads, and its unit: "towards altsdp, distance in weight space"."""
    unit = escaped(plane.unit)
    across, up = _directions(plane)
    return f"{across}{x_break}{unit}" if across else unit, f"{up}{y_break}{unit}" if up else unit


def _directions(plane: PlaneRecord) -> tuple[str, str]:
    if plane.axes:
        return escaped(plane.axes[0]), escaped(plane.axes[1])
    if plane.kind in _DIRECTIONS:
        across, up = _DIRECTIONS[plane.kind]
        if plane.explained is None:
            return across, up
        first, second = (f"{100 * share:.1f} %" for share in plane.explained)
        return f"{across} ({first} of the squared distances)", f"{up} ({second})"
    known = [name for name in plane.defining if name in plane.points]
    if len(known) < 3 or len(plane.defining) != len(known):
        return "", ""
    start, end, third = (plane.points[name] for name in known[:3])
    across = f"towards {escaped(known[1])}" if end[0] > start[0] else ""
    return across, f"towards {escaped(known[2])}" if third[1] > start[1] else ""


def is_far(plane: PlaneRecord, name: str) -> bool:
    """Whether a point is too far off the plane to be drawn on it."""
    return bool(plane.distances.get(name, 0.0) > _RULES["far"] * max(np.ptp(plane.x), np.ptp(plane.y)))


def notes_of(plane: PlaneRecord, scale: Scale, heights: dict[str, float]) -> list[str]:
    """What the picture says above its frame; ``heights`` has the value at each minimum that is drawn."""
    far = [name for name in plane.points if not is_bend(name) and is_far(plane, name)]
    notes = []
    if len(far) > _RULES["most_named"]:
        notes.append(f"{len(far)} minima are far off this plane")
    elif far:
        notes.append(", ".join(f"{escaped(name)}: {significant(plane.distances[name])} off this plane" for name in far))
    ratio = stretch_of(plane)
    if ratio != 1:
        axis, factor = ("vertical", ratio) if ratio > 1 else ("horizontal", 1 / ratio)
        notes.append(f"{axis} axis stretched {significant(factor)}×")  # noqa: RUF001
    above = [f"{escaped(name)} ({scale.label(value)})" for name, value in heights.items() if value > scale.high]
    if above:
        notes.append(f"above the clip: {', '.join(above)}")
    return notes


def note_annotations(notes: list[str], theme: Theme, x: float = 0.0) -> list[Parts]:
    """The notes as lines above a frame whose left edge is at ``x`` of the paper."""
    look, room, shift = themed(STYLE["note"], theme), STYLE["notes"]["room"], STYLE["notes"]["shift"]
    return [
        {**look, "x": x, "text": text, "yshift": shift + room * (len(notes) - 1 - index)}
        for index, text in enumerate(notes)
    ]


def room_of(notes: list[str]) -> int:
    """Pixels above a frame that its notes need."""
    room: int = STYLE["notes"]["room"] * len(notes)
    return room
