"""Barrier and rise between every two of three or more minima as coloured tables, and the map of four or more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from valleyscope.landscape.analysis.minima_map import minima_map
from valleyscope.landscape.analysis.pair_matrix import QUANTITIES, PairMatrix, pair_matrix
from valleyscope.landscape.figures.matrix_cells import cell_colour, cell_ink, cell_mark, scale_end
from valleyscope.landscape.report.html_text import MISSING, barrier, interval, text
from valleyscope.landscape.report.tables import dot
from valleyscope.landscape.storage.landscape_file import Landscape

_FEWEST = 3
_MARKS = {"within": " \N{CHECK MARK}", "near": " ?", "above": ""}


def matrix_section(landscape: Landscape, colours: Mapping[str, str]) -> str:
    """Both squares; empty with fewer than three minima, whose lines the table of paths has."""
    if landscape.spec.get("forks"):  # lines from the trunks only, in the section of the forks
        return ""
    matrix = pair_matrix(landscape)
    if len(matrix.minima) < _FEWEST or not any(line for *_, line in matrix):
        return ""
    unit = ", in nats" if all(line.loss_unit == "nats" for line in landscape.lines.values()) else ""
    caption = (
        f"Of the {matrix.split} loss on the straight line{unit}. \N{CHECK MARK}: surely within the tolerance of "
        f"{matrix.tolerance:g}; ?: its interval contains the tolerance."
    )
    squares = "".join(f"<h3>{name.capitalize()}</h3>{_square(matrix, name, colours)}" for name in QUANTITIES)
    if landscape.aligned:
        other = pair_matrix(landscape, aligned=True)
        squares += "".join(
            f"<h3>{name.capitalize()}, aligned</h3>{_square(other, name, colours)}" for name in QUANTITIES
        )
        caption += " Aligned: the hidden units of the later of two minima are in the order of the earlier one."
    return f"<section><h2>Between every two minima</h2>{squares}<p>{text(caption)}</p></section>\n"


def drawn_map(landscape: Landscape) -> dict[str, Any] | None:
    """The map for the figures of the page; three minima lie in one plane, which has its picture."""
    found = None if landscape.spec.get("forks") else minima_map(landscape)
    return found.to_json() if found and len(found.minima) > _FEWEST else None


def map_section(landscape: Landscape, figure: Callable[..., str]) -> str:
    """The map by distances in weight space and by barriers; `figure` makes a place for a figure of a kind."""
    found = drawn_map(landscape)
    if found is None:
        return ""
    plots = "".join(
        figure(f"map of the minima by {by}", f"{title}: {found[by]['shown']:.0%} of the differences", kind="map", by=by)
        for by, title in (("distance", "By distance in weight space"), ("barrier", "By barrier"))
    )
    caption = "Minima that stand close are similar; the titles say which share of the differences two dimensions show."
    return f'<section><h2>Map of minima</h2><div class="pair">{plots}</div><p>{caption}</p></section>\n'


def _square(matrix: PairMatrix, quantity: str, colours: Mapping[str, str]) -> str:
    values = matrix.values(quantity)
    low, high = (matrix.bounds(quantity, bound) for bound in ("low", "high"))
    end = scale_end((value for row in values for value in row), matrix.tolerance)

    def cell(row: int, column: int) -> str:
        value = values[row][column]
        if value is None:
            return f"<td>{'' if row == column else MISSING}</td>"
        colour = cell_colour(value, end)
        style = f"background:rgb{colour};color:{cell_ink(colour)}".replace(" ", "")
        mark = _MARKS[cell_mark(value, low[row][column], high[row][column], matrix.tolerance)]
        title = _title(matrix.minima[row], matrix.minima[column], low[row][column], high[row][column])
        return f'<td style="{style}" title="{text(title)}">{barrier(value)}{mark}</td>'

    names = [dot(colours[name]) + text(name) for name in matrix.minima]
    top = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(cell(row, column) for column in range(len(names)))}</tr>'
        for row, name in enumerate(names)
    )
    frame = f'<div class="scroll" tabindex="0" role="region" aria-label="{quantity} between every two minima">'
    return f'{frame}<table class="heat"><thead><tr><td></td>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _title(first: str, second: str, low: float | None, high: float | None) -> str:
    bounds = interval(low, high)
    return f"{first} to {second}" + (f", interval: {bounds}" if bounds else "")
