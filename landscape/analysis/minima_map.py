"""A family of minima at one look: in which order a matrix shows its clusters, and a map in two dimensions.

The order is that of the leaves of average-linkage clustering. The map is classical scaling (Torgerson 1952): the double
centred squares of the dissimilarities, their two largest eigenvectors. Dissimilar are minima that are far apart in
weight space, or that have a high barrier between them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from valleyscope.landscape.analysis.pair_matrix import PairMatrix, pair_matrix
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.map_record import MinimaMap, Scaled
from valleyscope.landscape.storage.records import Floats, between

FEWEST: Final = 3


def minima_map(landscape: Landscape) -> MinimaMap | None:
    """Order and map of the minima; None with fewer than three, or while the line between two of them is missing."""
    matrix = pair_matrix(landscape)
    names = matrix.minima
    if len(names) < FEWEST:
        return None
    distances, barriers = _distances(landscape, names), _barriers(matrix)
    if not (np.isfinite(distances).all() and np.isfinite(barriers).all()):
        return None
    order = tuple(names[index] for index in clustered_order(barriers))
    return MinimaMap(names, order, distances, {"distance": scaled(distances), "barrier": scaled(barriers)})


def clustered_order(dissimilarity: Floats) -> list[int]:
    """The leaves of average-linkage clustering, so that similar rows stand side by side.

    >>> far = np.array([[0, 9, 1, 8], [9, 0, 9, 2], [1, 9, 0, 8], [8, 2, 8, 0.0]])
    >>> clustered_order(far)
    [0, 2, 1, 3]
    """
    clusters = [[index] for index in range(len(dissimilarity))]
    near = np.where(np.eye(len(clusters)), np.inf, dissimilarity)
    while len(clusters) > 1:
        one, other = sorted(divmod(int(np.argmin(near)), len(clusters)))
        sizes = len(clusters[one]), len(clusters[other])
        near[one] = near[:, one] = np.average(near[[one, other]], axis=0, weights=sizes)
        near = np.delete(np.delete(near, other, 0), other, 1)
        clusters[one] += clusters.pop(other)
    return clusters[0]


def scaled(dissimilarity: Floats) -> Scaled:
    """Classical scaling to two dimensions; distances of points in a plane are kept exactly.

    Barriers need not obey the triangle inequality: negative eigenvalues are left out, and count as not shown.
    """
    count = len(dissimilarity)
    centring = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ dissimilarity**2 @ centring)
    largest = np.argsort(values)[::-1][:2]
    kept = np.clip(values[largest], 0.0, None)
    coordinates = vectors[:, largest] * np.sqrt(kept)
    # The sign of an eigenvector is arbitrary: the first point that differs from zero is on the positive side.
    for column in coordinates.T:
        leading = column[np.abs(column) > 1e-9 * max(1.0, float(np.abs(column).max()))]
        if leading.size and leading[0] < 0:
            column *= -1
    total = float(np.abs(values).sum())
    return Scaled(coordinates, float(kept.sum()) / total if total else 1.0)


def _distances(landscape: Landscape, names: tuple[str, ...]) -> Floats:
    """Distances in weight space: the lengths of the straight lines; NaN where there is none."""
    found = np.zeros((len(names), len(names)))
    for row, first in enumerate(names):
        for column in range(row + 1, len(names)):
            path = between(landscape.lines, first, names[column])
            ends = [np.nan] * 2 if path is None else np.interp([0.0, 1.0], path.t, path.arc)
            found[row, column] = found[column, row] = float(ends[1] - ends[0])
    return found


def _barriers(matrix: PairMatrix) -> Floats:
    found = np.array(matrix.values("barrier"), dtype=np.float64)
    np.fill_diagonal(found, 0.0)
    return found
