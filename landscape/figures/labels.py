"""Where the labels of named points go: beside their point, inside the frame, clear of each other.

The frame is measured in pixels of a small screen, so that what fits there fits everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from valleyscope.landscape.analysis.grid_sampling import is_bend, straight_lines
from valleyscope.landscape.figures.axes import is_far, stretch_of
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import TRAJECTORY, Coordinates, Floats, PlaneRecord

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
    """The named points within the frame, without those far off the plane and the bends of curves drawn elsewhere."""
    x, y = plane.x, plane.y
    return {
        name: place
        for name, place in plane.points.items()
        if x[0] <= place[0] <= x[-1] and y[0] <= place[1] <= y[-1] and belongs(name, plane) and not is_far(plane, name)
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
    order = sorted(points, key=plane.is_projected)
    places = {name: _pixel(plane, points[name]) for name in order}
    return arranged(places, _texts(points, plane), _frame(plane), [name for name in order if plane.is_projected(name)])


def arranged(
    places: Mapping[str, Coordinates], texts: Mapping[str, str], frame: Box, spare: Collection[str]
) -> dict[str, Label]:
    """Labels at places in pixels, in their order; those that can be spared are left out where there is no room."""
    taken = [_around(place, _RULES["mark"]) for place in places.values()]
    chosen: dict[str, Label] = {}
    for own, (name, place) in enumerate(places.items()):
        others = taken[:own] + taken[own + 1 :]
        candidates = [Label(texts[name], tuple(each["anchor"]), tuple(each["shift"])) for each in _RULES["positions"]]
        boxes = [_box(place, label.text, label.anchor, label.shift) for label in candidates]
        faults = [(_outside(box, frame), sum(_overlap(box, other) for other in others)) for box in boxes]
        best = faults.index(min(faults))
        if name in spare and any(faults[best]):
            continue
        taken.append(boxes[best])
        chosen[name] = candidates[best]
    return chosen


def roomiest(
    plane: PlaneRecord, text: str, line: Floats, others: Sequence[tuple[Coordinates, str]] = ()
) -> Coordinates:
    """The place of a line where a label is inside the frame, and clear of named points, their labels and the paths.

    ``others`` are more labels to be clear of, each by its place and text.
    """
    points = shown_points(plane)
    taken = [_around(_pixel(plane, place), _RULES["mark"]) for place in points.values()]
    taken += [
        _box(_pixel(plane, points[name]), label.text, label.anchor, label.shift)
        for name, label in labels_of(plane).items()
    ]
    curves = [places for name, places in plane.paths.items() if not name.startswith(TRAJECTORY)]
    for path in (*straight_lines(plane).values(), *curves):
        taken += [_around(_pixel(plane, place), _RULES["path"]) for place in path.tolist()]
    taken += [_box(_pixel(plane, place), words, ("center", "middle"), (0.0, 0.0)) for place, words in others]
    places: list[Coordinates] = [(x, y) for x, y in line[:: -(-len(line) // _RULES["places"])].tolist()]
    boxes = [_box(_pixel(plane, place), text, ("center", "middle"), (0.0, 0.0)) for place in places]
    faults = [(_outside(box, _frame(plane)), sum(_overlap(box, other) for other in taken)) for box in boxes]
    return places[faults.index(min(faults))]


def _frame(plane: PlaneRecord) -> Box:
    """The frame in pixels of a small screen."""
    width, height = _pixel(plane, (plane.x[-1], plane.y[-1]))
    return 0.0, 0.0, width, height


def _pixel(plane: PlaneRecord, place: Coordinates) -> Coordinates:
    ratio = stretch_of(plane)
    width, height = plane.x[-1] - plane.x[0], ratio * (plane.y[-1] - plane.y[0])
    scale = _FRAME / max(width, height)
    return float((place[0] - plane.x[0]) * scale), float((place[1] - plane.y[0]) * ratio * scale)


def _around(place: Coordinates, reach: float) -> Box:
    x, y = place
    return x - reach, y - reach, x + reach, y + reach


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
