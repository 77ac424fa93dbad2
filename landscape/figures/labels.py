"""Where the labels of named points go: beside their point, inside the frame, clear of each other.

The frame is measured in pixels of a small screen, so that what fits there fits everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from valleyscope.landscape.figures.sampling import is_bend
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import Coordinates, PlaneRecord

_RULES: Final = STYLE["labels"]
_FRAME: Final[float] = _RULES["frame"]

Horizontal = Literal["left", "center", "right"]
Vertical = Literal["bottom", "middle", "top"]


@dataclass(frozen=True)
class Label:
    """The text of a label, the corner or edge of it that is tied to the point, and its shift in pixels."""

    text: str
    anchor: tuple[Horizontal, Vertical]
    shift: tuple[float, float]


Box = tuple[float, float, float, float]


def shown_points(plane: PlaneRecord) -> dict[str, Coordinates]:
    """The named points that lie within the frame, without the bends of curves that are not drawn on the plane."""
    x, y = plane.x, plane.y
    return {
        name: place
        for name, place in plane.points.items()
        if x[0] <= place[0] <= x[-1] and y[0] <= place[1] <= y[-1] and belongs(name, plane)
    }


def belongs(name: str, plane: PlaneRecord) -> bool:
    """Whether a named point says something about this plane: all but the bends of curves that are drawn elsewhere."""
    curve, dot, _ = name.partition(".bend")
    return not dot or name in plane.defining or curve in plane.paths


def labels_of(plane: PlaneRecord) -> dict[str, Label]:
    """Labels of the named points within the frame.

    A point off the plane is named only where there is room: its label must not cover those that matter more.
    """
    points = shown_points(plane)
    texts = _texts(points, plane)
    width, height = plane.x[-1] - plane.x[0], plane.y[-1] - plane.y[0]
    scale = _FRAME / max(width, height)
    frame: Box = (0.0, 0.0, width * scale, height * scale)
    order = sorted(points, key=plane.is_projected)
    places = {name: ((points[name][0] - plane.x[0]) * scale, (points[name][1] - plane.y[0]) * scale) for name in order}
    mark = _RULES["mark"]
    taken: list[Box] = [(x - mark, y - mark, x + mark, y + mark) for x, y in places.values()]
    chosen: dict[str, Label] = {}
    for own, (name, place) in enumerate(places.items()):
        others = taken[:own] + taken[own + 1 :]
        candidates = [Label(texts[name], tuple(each["anchor"]), tuple(each["shift"])) for each in _RULES["positions"]]
        boxes = [_box(place, label.text, label.anchor, label.shift) for label in candidates]
        faults = [(_outside(box, frame), sum(_overlap(box, other) for other in others)) for box in boxes]
        best = faults.index(min(faults))
        if plane.is_projected(name) and any(faults[best]):
            continue
        taken.append(boxes[best])
        chosen[name] = candidates[best]
    return chosen


def _texts(points: Mapping[str, Coordinates], plane: PlaneRecord) -> dict[str, str]:
    bends = [name for name in points if is_bend(name)]
    short = {name: "bend" if name in bends and len(bends) == 1 else name for name in points}
    return {name: f"{short[name]} (projected)" if plane.is_projected(name) else short[name] for name in points}


def _box(place: Coordinates, text: str, anchor: tuple[Horizontal, Vertical], shift: tuple[float, float]) -> Box:
    width, height = _RULES["character"] * len(text) + _RULES["padding"], _RULES["height"]
    left = place[0] + shift[0] - {"left": 0.0, "center": width / 2, "right": width}[anchor[0]]
    bottom = place[1] + shift[1] - {"bottom": 0.0, "middle": height / 2, "top": height}[anchor[1]]
    return left, bottom, left + width, bottom + height


def _outside(box: Box, frame: Box) -> float:
    over = (frame[0] - box[0], frame[1] - box[1], box[2] - frame[2], box[3] - frame[3])
    return sum(max(amount, 0.0) for amount in over)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0
