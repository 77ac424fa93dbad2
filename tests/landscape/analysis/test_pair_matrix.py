"""Barrier and rise between every two minima: equal to their closed form, in memory, file, CSV and report."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.landscape.many_minima import T, hill, many_minima
from valleyscope import pair_matrix, pair_verdict
from valleyscope.landscape.analysis.pair_verdict import MissingLine, UnknownPair
from valleyscope.landscape.export import export
from valleyscope.landscape.figures.matrix_cells import cell_colour, cell_ink, cell_mark, scale_end
from valleyscope.landscape.report import report_html
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape
from valleyscope.landscape.storage.matrix_record import ARRAYS
from valleyscope.landscape.storage.records import MinimumRecord

OLD = Path(__file__).parents[1] / "data" / "landscape-v1.h5"


def highest(one: int, other: int) -> float:
    """The maximum over the points of a line, from the parabola's own formula."""
    return max(0.002 * ((1 - t) * one + t * other) + 4 * t * (1 - t) * hill(one, other) for t in T.tolist())


def test_every_cell_has_the_closed_form_of_its_line_and_contains_it_in_its_interval() -> None:
    matrix = pair_matrix(many_minima(5))
    barriers, rises = (np.array(matrix.values(name), dtype=float) for name in ("barrier", "rise"))
    for one, other in combinations(range(5), 2):
        top = highest(one, other)
        assert barriers[one, other] == pytest.approx(top - 0.002 * other)
        assert rises[one, other] == pytest.approx(top - 0.002 * one)
    for name, square in (("barrier", barriers), ("rise", rises)):
        np.testing.assert_array_equal(square, square.T)
        assert np.isnan(square.diagonal()).all()
        low, high = (np.array(matrix.bounds(name, bound), dtype=float) for bound in ("low", "high"))
        away = ~np.eye(5, dtype=bool)
        assert (low[away] <= square[away]).all()
        assert (square[away] <= high[away]).all()


def test_any_pair_is_judged_in_either_direction_as_its_cell_says() -> None:
    landscape = many_minima(5)
    matrix = pair_matrix(landscape)
    for first, second, line in matrix:
        expected = "level valley" if (int(first[1]) - int(second[1])) % 2 == 0 else "separate"
        for pair in ((first, second), (second, first)):
            found = pair_verdict(landscape, *pair)
            assert (found["kind"], found["between"]) == (expected, list(pair))
            assert line is not None
            assert (found["line"]["barrier"], found["line"]["low"]) == (line.value, line.low)
            assert found["control"]["name"] not in pair
    assert pair_verdict(landscape, "m0", "m2") == landscape.verdict


def test_names_that_are_no_two_minima_and_lines_that_are_missing_are_named() -> None:
    landscape = many_minima(3)
    with pytest.raises(UnknownPair, match="between names 'x', which is not a minimum: use two of m0, m1, m2"):
        pair_verdict(landscape, "m0", "x")
    with pytest.raises(UnknownPair, match="between names 'm1' twice"):
        pair_verdict(landscape, "m1", "m1")
    del landscape.lines["m1-m2"]
    with pytest.raises(MissingLine, match="the line from m1 to m2"):
        pair_verdict(landscape, "m1", "m2")
    assert pair_matrix(landscape).values("rise")[1][2] is None


def test_the_file_has_plain_arrays_and_a_file_without_them_gives_the_same_matrix(tmp_path: Path) -> None:
    landscape = many_minima(4)
    landscape.save(tmp_path / "new.h5")
    with h5py.File(tmp_path / "new.h5") as file:
        assert [name.decode() for name in file["matrix/names"]] == ["m0", "m1", "m2", "m3"]
        assert {name: file[f"matrix/{name}"].dtype for name in ARRAYS} == dict.fromkeys(ARRAYS, np.dtype("f8"))
        np.testing.assert_array_equal(
            file["matrix/rise_high"][:], np.array(pair_matrix(landscape).bounds("rise", "high"), dtype=float)
        )
    again = Landscape.open(tmp_path / "new.h5")
    assert again.matrix is not None
    assert pair_matrix(again) == pair_matrix(landscape)
    again.matrix = None
    again.save(tmp_path / "without.h5")
    assert pair_matrix(Landscape.open(tmp_path / "without.h5")) == pair_matrix(landscape)


def test_a_file_of_the_first_version_gets_its_matrix_from_its_lines() -> None:
    old = Landscape.open(OLD)
    assert old.matrix is None
    matrix = pair_matrix(old)
    known = {(line.start, line.end): line.splits[matrix.split].loss for line in old.lines.values()}
    assert known
    for (start, end), loss in known.items():
        row, column = matrix.minima.index(start), matrix.minima.index(end)
        assert matrix.values("rise")[row][column] == pytest.approx(loss.max() - loss.min())


def test_the_verdict_on_24_minima_fits_into_the_file(tmp_path: Path) -> None:
    landscape = many_minima(24)
    landscape.save(tmp_path / "landscape.h5")
    again = Landscape.open(tmp_path / "landscape.h5")
    assert again.verdict == landscape.verdict
    assert len(again.verdict["paths"]) == 276  # type: ignore[index]


def test_a_matrix_of_the_wrong_shape_is_refused_by_name(tmp_path: Path) -> None:
    landscape = many_minima(3)
    landscape.save(tmp_path / "landscape.h5")
    with h5py.File(tmp_path / "landscape.h5", "r+") as file:
        del file["matrix/rise"]
        file["matrix/rise"] = np.zeros(3)
    with pytest.raises(DamagedLandscape, match=r"matrix/rise: is of shape \(3,\); give an array of shape \(3, 3\)"):
        Landscape.open(tmp_path / "landscape.h5")


def test_minima_whose_lines_share_a_name_are_not_saved_and_old_files_of_them_open(tmp_path: Path) -> None:
    names = ("sgd-adam", "sgd", "adam-sgd")
    landscape = many_minima(3, judged=False)
    old = tmp_path / "old.h5"
    landscape.save(old)
    with h5py.File(old, "r+") as file:  # as an earlier version wrote it
        del file.attrs["sha256"]
        for name, before in zip(names, ("m0", "m1", "m2"), strict=True):
            for group in ("minima", "trajectory"):
                file.move(f"{group}/{before}", f"{group}/{name}")
        for line in list(file["lines"]):
            del file[f"lines/{line}"]
        del file["planes/basins"]
    assert set(Landscape.open(old).minima) == set(names)
    landscape.minima = {name: MinimumRecord(name, "sgd") for name in names}
    with pytest.raises(ValueError, match="would have the name 'sgd-adam-sgd'; rename a minimum"):
        landscape.save(tmp_path / "new.h5")


def test_a_verdict_with_malformed_estimates_leaves_the_lines_without_intervals() -> None:
    landscape = many_minima(3)
    assert landscape.verdict is not None
    expected = pair_matrix(landscape).values("barrier")
    for wrong in (7, {"m0-m1": "x"}, {"m0-m1": {"barrier": "1"}}, {name: {} for name in landscape.lines}):
        landscape.verdict["paths"] = wrong
        found = pair_matrix(landscape)
        np.testing.assert_allclose(np.array(found.values("barrier"), dtype=float), np.array(expected, dtype=float))
        assert found.bounds("barrier", "high")[0][1] is None


def test_matrix_csv_has_both_directions_of_every_pair(tmp_path: Path) -> None:
    landscape = many_minima(4)
    export(landscape, tmp_path, ["csv"])
    with (tmp_path / "matrix.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    matrix = pair_matrix(landscape)
    assert len(rows) == 12
    for row in rows:
        place = matrix.minima.index(row["from"]), matrix.minima.index(row["to"])
        assert float(row["rise_low"]) == matrix.bounds("rise", "low")[place[0]][place[1]]
        assert float(row["barrier"]) == matrix.values("barrier")[place[0]][place[1]]


def test_the_report_has_the_matrix_of_three_minima_and_none_of_two() -> None:
    page = report_html(many_minima(3))
    assert "<h2>Between every two minima</h2>" in page
    assert page.count('<table class="heat">') == 2
    assert 'title="m0 to m1, interval: ' in page
    two = many_minima(2, judged=False)
    assert "Between every two minima" not in report_html(two)


def test_ink_is_readable_on_every_colour_and_marks_follow_the_interval() -> None:
    for value in np.linspace(0, 1, 500).tolist():
        colour = cell_colour(value, 1.0)
        parts = np.array(colour) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        luminance = float(linear @ [0.2126, 0.7152, 0.0722])
        ratio = (luminance + 0.05) / 0.05 if cell_ink(colour) == "#000000" else 1.05 / (luminance + 0.05)
        assert ratio >= 4.5
    assert cell_colour(np.inf, 1.0) == cell_colour(1.0, 1.0) == (0xFD, 0xE7, 0x25)
    assert scale_end([None, 0.1, np.inf], 0.05) == 0.2
    marks = [cell_mark(0.04, 0.03, high, 0.05) for high in (None, 0.05, 0.06)]
    assert marks == ["within", "within", "near"]
    assert cell_mark(0.07, 0.051, 0.09, 0.05) == cell_mark(0.07, None, None, 0.05) == "above"
