"""The matrices of minimal filtering, by Toom and Cook.

m outputs of a filter with r taps need m r products. Multiplying polynomials through their values at n = m + r - 1
points and transposing gives them from n products (Winograd 1980; Lavin and Gray 2016):

    y = A^T ((G g) * (B^T d)),

with d the n inputs, g the taps, and * element by element.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import torch
from torch import Tensor

# Points by their number, without the one at infinity. They decide the rounding error: with these, n = 6 in two
# dimensions has 1e-6 of the output; the usual points 0, 1, -1, 2 and -2 have 2.3e-6, a plain sum 2e-7.
_POINTS = {
    3: (Fraction(0), Fraction(1), Fraction(-1)),
    5: (Fraction(0), Fraction(2, 3), Fraction(-2, 3), Fraction(3, 2), Fraction(-3, 2)),
    7: (Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), Fraction(1, 2), Fraction(-1, 2)),
}


@cache
def matrices(outputs: int, taps: int) -> tuple[Tensor, Tensor, Tensor]:
    """A^T, G and B^T in float64, from exact fractions.

    >>> after, kernel, before = matrices(2, 3)
    >>> d, g = torch.tensor([1.0, 2.0, 3.0, 4.0]).double(), torch.tensor([5.0, 6.0, 7.0]).double()
    >>> after @ ((kernel @ g) * (before @ d))
    tensor([38., 56.], dtype=torch.float64)
    """
    count = outputs + taps - 1
    after = list(zip(*_powers(count, outputs), strict=True))
    before = list(zip(*_inverse(_powers(count, count)), strict=True))
    after_matrix, kernel_matrix, before_matrix = (
        torch.tensor([[float(value) for value in row] for row in matrix], dtype=torch.float64)
        for matrix in (after, _powers(count, taps), before)
    )
    return after_matrix, kernel_matrix, before_matrix


def outputs_at_once(length: int, taps: int) -> int:
    """The number of outputs m, 2 or 4, that needs the fewest products for this length; more would lose accuracy."""
    return min((2, 4), key=lambda outputs: (products(length, outputs, taps), outputs))


def products(length: int, outputs: int, taps: int) -> int:
    """Products for ``length`` outputs along an axis, m at once; the last m may reach beyond the end."""
    return -(-length // outputs) * (outputs + taps - 1)


def _powers(count: int, columns: int) -> list[list[Fraction]]:
    """1, p, p^2, ... for all points; the last point is infinity, where only the highest power counts."""
    finite = [[point**power for power in range(columns)] for point in _POINTS[count - 1]]
    return [*finite, [Fraction(0)] * (columns - 1) + [Fraction(1)]]


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """The inverse by Gauss and Jordan, exactly."""
    size = len(matrix)
    rows = [row + [Fraction(int(column == place)) for column in range(size)] for place, row in enumerate(matrix)]
    for column in range(size):
        pivot = next(place for place in range(column, size) if rows[place][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for place in range(size):
            if place != column:
                factor = rows[place][column]
                rows[place] = [value - factor * other for value, other in zip(rows[place], rows[column], strict=True)]
    return [row[size:] for row in rows]
