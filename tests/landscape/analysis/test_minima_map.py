"""The map of a family of minima, and the order of its clusters."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from tests.landscape.many_minima import hill, many_minima
from valleyscope import Landscape
from valleyscope.landscape.analysis.derived_tables import enter_derived_tables
from valleyscope.landscape.analysis.minima_map import clustered_order, minima_map, scaled
from valleyscope.landscape.export.csv_tables import write_spreadsheets
from valleyscope.landscape.figures.minima_map import minima_map_figure
from valleyscope.landscape.report.page import report_html
from valleyscope.landscape.storage.map_record import KINDS, MinimaMap, Scaled


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


def test_the_clusters_of_scipy_are_consecutive_in_the_order() -> None:
    square = np.random.default_rng(5).uniform(1, 2, (9, 9))
    square = np.where(np.eye(9), 0, square + square.T)
    order = clustered_order(square)
    assert sorted(order) == list(range(9))
    for count in range(2, 9):
        labels = fcluster(linkage(squareform(square), "average"), count, "maxclust")[order]
        assert np.count_nonzero(np.diff(labels)) == count - 1


def test_the_map_is_in_the_file_the_tables_and_the_report(tmp_path: Path) -> None:
    landscape = many_minima(5)
    enter_derived_tables(landscape)
    landscape.save(tmp_path / "landscape.h5")
    found, again = minima_map(landscape), Landscape.open(tmp_path / "landscape.h5").minima_map
    assert found is not None
    assert again is not None
    assert again.to_json() == found.to_json()
    write_spreadsheets(landscape, tmp_path)
    rows = list(csv.DictReader((tmp_path / "map.csv").read_text().splitlines()))
    assert [row["minimum"] for row in rows] == list(found.minima)
    assert [float(row["barrier_y"]) for row in rows] == found.scaled["barrier"].coordinates[:, 1].tolist()
    assert [found.order[int(row["cluster_order"])] for row in rows] == list(found.minima)
    assert all(f'data-kind="map" data-by="{kind}"' in report_html(landscape) for kind in KINDS)


def test_minima_in_one_place_share_a_label() -> None:
    places = np.array([[0, 0], [0.01, 0], [10, 0], [10, 0.02], [10, 0], [10.01, 0], [5, 8.0]])
    names = tuple("abcdefg")
    found = MinimaMap(names, names, np.zeros((7, 7)), {kind: Scaled(places, 1.0) for kind in KINDS})
    drawn = minima_map_figure(found, "distance", dict.fromkeys(names, "#000000"))
    assert [label.text for label in drawn.layout.annotations] == ["a, b", "c, d and 2 more", "g"]
    assert drawn.data[0].text[5] == "c, d, e, f"


def test_a_missing_line_has_no_map() -> None:
    landscape = many_minima(4)
    del landscape.lines["m0-m1"]
    assert minima_map(landscape) is None
    assert minima_map(many_minima(2)) is None
