"""How much memory the vectors of an eigenvalue computation take, without torch: a service asks before it starts one."""

from __future__ import annotations

from typing import Final

DOUBLE_UP_TO: Final = 2_000_000
"""Networks with at most this many weights keep their eigenvectors in float64, others in their own data type."""


def basis_size(top: int, lowest: int) -> int:
    """The vectors of the basis in which this many eigenvalues are found."""
    return 4 * (top + lowest) + 40


def spectrum_bytes(dimension: int, top: int, lowest: int, probes: int) -> int:
    """Bytes of all vectors of ``curvature`` for a network of float32 weights.

    >>> spectrum_bytes(1000, top=1, lowest=0, probes=0)
    392000
    """
    vectors = min(dimension, basis_size(top, lowest)) + 1 + top + lowest
    return dimension * (vectors * (8 if dimension <= DOUBLE_UP_TO else 4) + (3 * probes + 3) * 8)
