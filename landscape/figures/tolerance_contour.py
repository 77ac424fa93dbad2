"""The tolerance contour: where the surface is as high as the higher end of the judged path plus the tolerance.

A path inside it has no barrier beyond the tolerance, whatever the colours show. It is traced by marching squares on the
real values, so it is the same on every colour scale. The same rules are in static/plots/tolerance-contour.js.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from valleyscope.landscape.analysis.grid_sampling import coarse_lattice
from valleyscope.landscape.claim import Level
from valleyscope.landscape.figures.labels import roomiest
from valleyscope.landscape.figures.scale import Scale
from valleyscope.landscape.figures.theme import Parts, Theme, themed
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import Coordinates, Floats, PlaneRecord

_LOOK: Final = STYLE["contour"]

Edge = tuple[int, int, bool]
"""Row and column of the first corner of a cell's edge, and whether the edge leads upwards."""


def tolerance_lines(plane: PlaneRecord, values: Floats, level: Level) -> list[Floats]:
    """The contour as lines of places (n, 2), on no more rows and columns than contour lines are drawn from."""
    return _lines_at(plane, values, level.value) if level.judged else []


def floor_lines(plane: PlaneRecord, values: Floats, level: Level) -> list[Floats]:
    """Of a slope: the contour around what is level with its foot."""
    return [] if level.floor is None else _lines_at(plane, values, level.floor)


def _lines_at(plane: PlaneRecord, values: Floats, height: float) -> list[Floats]:
    thin = max(plane.shape) // _LOOK["fine"] + 1
    rows, columns = np.arange(0, len(plane.y), thin), np.arange(0, len(plane.x), thin)
    if not plane.complete:
        rows, columns = coarse_lattice(plane.done) or (rows, columns)
    return level_lines(plane.x[columns], plane.y[rows], values[np.ix_(rows, columns)], height)


def tolerance_label(plane: PlaneRecord, lines: list[Floats], level: Level, scale: Scale, theme: Theme) -> list[Parts]:
    """The label of the contour, where it has most room on the line around the claim."""
    return label_on(plane, lines, tolerance_text(level, scale), theme)


def floor_label(
    plane: PlaneRecord, lines: list[Floats], level: Level, scale: Scale, theme: Theme, others: list[Parts]
) -> list[Parts]:
    """The label of the contour around what is level, clear of other labels."""
    return label_on(plane, lines, floor_text(level, scale), theme, others) if lines else []


def label_on(
    plane: PlaneRecord, lines: list[Floats], text: str, theme: Theme, others: Sequence[Parts] = ()
) -> list[Parts]:
    if not lines:
        return []
    beside = [((other["x"], other["y"]), other["text"]) for other in others]
    x, y = roomiest(plane, text, labelled_line(plane, lines), beside)
    return [{**themed(STYLE["label"], theme), "x": x, "y": y, "text": text, "xanchor": "center", "yanchor": "middle"}]


def tolerance_text(level: Level, scale: Scale) -> str:
    return f"tolerance: {scale.quantity} ≤ {scale.label(level.value)}"


def floor_text(level: Level, scale: Scale) -> str:
    assert level.floor is not None
    return f"level: {scale.quantity} ≤ {scale.label(level.floor)}"


def labelled_line(plane: PlaneRecord, lines: list[Floats]) -> Floats:
    """The line for a label: the nearest to the plane's first point, of those at least half as long as the longest."""
    longest = max(map(len, lines))
    long = sorted((line for line in lines if 2 * len(line) >= longest), key=len, reverse=True)
    first = next((plane.points[name] for name in plane.defining if name in plane.points), None)
    return long[0] if first is None else min(long, key=lambda line: float(np.hypot(*(line - first).T).min()))


def joined(lines: list[Floats]) -> Floats:
    """Several lines as one list of places, with NaN between them."""
    gap = np.full((1, 2), np.nan)
    return np.concatenate([part for line in lines for part in (line, gap)][:-1])


def level_lines(x: Floats, y: Floats, values: Floats, level: float) -> list[Floats]:
    """Lines along which bilinear values equal a level; none through cells with a corner that is not computed.

    >>> [line.tolist() for line in level_lines(np.arange(3.0), np.arange(2.0), np.array([[0, 1, 2], [0, 1, 2.0]]), 1.5)]
    [[[1.5, 0.0], [1.5, 1.0]]]
    """
    segments = _segments(values, level)
    neighbours: dict[Edge, list[int]] = {}
    for index, ends in enumerate(segments):
        for edge in ends:
            neighbours.setdefault(edge, []).append(index)
    used = [False] * len(segments)

    def follow(index: int, edge: Edge) -> list[Edge]:
        chain = [edge]
        while not used[index]:
            used[index] = True
            one, other = segments[index]
            edge = other if chain[-1] == one else one
            chain.append(edge)
            index = next((near for near in neighbours[edge] if not used[near]), index)
        return chain

    open_ends = [(index, edge) for index, ends in enumerate(segments) for edge in ends if len(neighbours[edge]) == 1]
    loops = [(index, ends[0]) for index, ends in enumerate(segments)]
    chains = [follow(index, edge) for index, edge in (*open_ends, *loops) if not used[index]]
    return [np.array([_crossing(x, y, values, level, edge) for edge in chain]) for chain in chains]


def _segments(values: Floats, level: float) -> list[tuple[Edge, Edge]]:
    """Pairs of edges that the contour crosses, cell by cell."""
    above = values > level
    corners = [above[:-1, :-1], above[:-1, 1:], above[1:, 1:], above[1:, :-1]]
    count = sum(corner.astype(int) for corner in corners)
    known = ~np.isnan(values)
    whole = known[:-1, :-1] & known[:-1, 1:] & known[1:, 1:] & known[1:, :-1]
    segments: list[tuple[Edge, Edge]] = []
    for row, column in np.argwhere((count > 0) & (count < 4) & whole).tolist():
        ring = [bool(corner[row, column]) for corner in corners]
        edges: list[Edge] = [
            (row, column, False),
            (row, column + 1, True),
            (row + 1, column, False),
            (row, column, True),
        ]
        crossed = [edge for edge, (a, b) in zip(edges, pairwise([*ring, ring[0]]), strict=True) if a != b]
        if len(crossed) == 4:
            # At a saddle the middle decides which two corners are cut off.
            middle = values[row : row + 2, column : column + 2].mean() > level
            crossed = crossed if middle == ring[0] else [crossed[0], crossed[3], crossed[1], crossed[2]]
        segments += [(crossed[n], crossed[n + 1]) for n in range(0, len(crossed), 2)]
    return segments


def _crossing(x: Floats, y: Floats, values: Floats, level: float, edge: Edge) -> Coordinates:
    row, column, upwards = edge
    ends = [(row, column), (row + 1, column) if upwards else (row, column + 1)]
    # From the lower end, which is finite: the upper one may be infinite.
    low, high = sorted(ends, key=lambda place: values[place])
    share = float((level - values[low]) / (values[high] - values[low]))
    across = x[low[1]] + share * (x[high[1]] - x[low[1]])
    return float(across), float(y[low[0]] + share * (y[high[0]] - y[low[0]]))
