"""The map of a family of minima, and the order of its clusters."""

from __future__ import annotations

import numpy as np
import pytest

from tests.landscape.many_minima import hill, many_minima
from valleyscope.landscape.analysis.minima_map import clustered_order, minima_map, scaled


def test_points_of_a_plane_keep_their_distances() -> None:
    points = np.random.default_rng(3).normal(size=(9, 2)) * (3.0, 0.5)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    found = scaled(distances)
    again = np.linalg.norm(found.coordinates[:, None] - found.coordinates[None], axis=-1)
    np.testing.assert_allclose(again, distances, atol=1e-9)
    assert found.shown == pytest.approx(1.0)


def test_equal_points_stand_in_one_place() -> None:
    assert not scaled(np.zeros((4, 4))).coordinates.any()


def test_clusters_stand_side_by_side() -> None:
    """Even and odd minima are in two basins: no barrier inside, a high one between."""
    landscape = many_minima(6)
    found = minima_map(landscape)
    assert found is not None
    parities = [int(name[1:]) % 2 for name in found.order]
    assert parities in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    assert hill(0, 2) == 0.0
    assert found.distances[0, 1] == pytest.approx(5.0)


def test_the_order_names_every_minimum_once() -> None:
    square = np.random.default_rng(5).uniform(1, 2, (7, 7))
    assert sorted(clustered_order(square + square.T)) == list(range(7))


def test_a_missing_line_has_no_map() -> None:
    landscape = many_minima(4)
    del landscape.lines["m0-m1"]
    assert minima_map(landscape) is None
    assert minima_map(many_minima(2)) is None
