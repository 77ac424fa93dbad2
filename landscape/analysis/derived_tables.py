"""What a file has for other programs, though it follows from its lines and minima: matrices, map and forks."""

from __future__ import annotations

from valleyscope.landscape.analysis.fork_curves import fork_curves
from valleyscope.landscape.analysis.minima_map import minima_map
from valleyscope.landscape.analysis.pair_matrix import pair_matrix
from valleyscope.landscape.storage.landscape_file import Landscape


def enter_derived_tables(landscape: Landscape) -> None:
    """Compute them anew."""
    landscape.matrix = pair_matrix(landscape).to_record()
    landscape.aligned_matrix = pair_matrix(landscape, aligned=True).to_record() if landscape.aligned else None
    landscape.minima_map = minima_map(landscape)
    forks = fork_curves(landscape)
    landscape.forks = None if forks is None else forks.to_record()
