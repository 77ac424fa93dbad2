"""Curves of forks: barrier and rise to the trunk over the epoch, with the range of the seeds."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.landscape.fork_cases import EPOCHS, KINDS, SLOPE, UNRELATED, forked, hill, straight
from valleyscope.landscape.analysis.fork_curves import fork_curves, kind_of
from valleyscope.landscape.analysis.pair_matrix import line_estimate
from valleyscope.landscape.export import export
from valleyscope.landscape.report import report_html
from valleyscope.landscape.storage.landscape_file import Landscape


def test_a_point_is_the_mean_over_seeds_with_the_lowest_and_highest() -> None:
    found = fork_curves(forked())
    assert found is not None
    assert [curve.kind for curve in found.curves] == list(KINDS)
    for curve in found.curves:
        assert [point.epoch for point in curve.points] == list(EPOCHS)
        for number, point in enumerate(curve.points):
            low, high = (hill(curve.kind, number, seed) for seed in (0, 1))
            barrier, rise = point.over_seeds("barrier"), point.over_seeds("rise")
            assert barrier is not None
            assert rise is not None
            assert (barrier.mean, barrier.low, barrier.high) == pytest.approx(((low + high) / 2, low, high))
            assert rise.mean == pytest.approx((low + high) / 2 + SLOPE)
            assert barrier.count == 2
    assert found.unrelated is not None
    assert found.unrelated.value == pytest.approx(UNRELATED)


def test_a_curve_settles_where_no_later_fork_of_any_seed_has_a_barrier() -> None:
    found = fork_curves(forked())
    assert found is not None
    sgd, altsdp = found.curves
    assert (sgd.settled, altsdp.settled) == (None, 20)  # 0.8/64 + 0.01 is below 0.05, 0.8/16 + 0.01 is not
    assert found.remarks() == [
        "sgd: forks at epoch 20 still have a barrier of up to 0.11 nats to their trunk.",
        "altsdp: from epoch 20 on, no fork has a barrier above 0.05 nats to its trunk.",
    ]


def test_a_single_seed_has_the_interval_of_its_line() -> None:
    landscape = forked()
    landscape.minima = {name: found for name, found in landscape.minima.items() if not name.endswith("_s2")}
    paths = {"sgd-sgd_e0": {"barrier": 0.8, "low": 0.7, "high": 0.95, "rise": {"value": 0.8, "low": 0.7, "high": 0.9}}}
    landscape.verdict = {"paths": paths, "split": "train"}
    found = fork_curves(landscape)
    assert found is not None
    line = line_estimate(landscape, landscape.lines["sgd-sgd_e0"], "train")
    assert line is not None
    barrier = found.curves[0].points[0].over_seeds("barrier")
    assert barrier is not None
    assert (barrier.low, barrier.high) == ((line.low, line.high) if line.low is not None else (line.value, line.value))


def test_forks_without_a_line_yet_have_no_numbers() -> None:
    landscape = forked()
    landscape.lines = {}
    found = fork_curves(landscape)
    assert found is not None
    assert found.curves[0].points[0].over_seeds("barrier") is None
    assert found.curves[0].settled is None
    assert "not measured yet" in found.remarks()[0]
    assert fork_curves(Landscape("none")) is None


def test_the_kind_of_a_fork_is_its_name_without_epoch_and_seed() -> None:
    assert [kind_of(*given) for given in (("altsdp_e5", 5), ("altsdp_e5_s3", 5), ("late_e5", 9))] == [
        "altsdp",
        "altsdp",
        "late_e5",
    ]


def test_file_and_tables_have_every_fork(tmp_path: Path) -> None:
    landscape = forked()
    found = fork_curves(landscape)
    assert found is not None
    landscape.forks = found.to_record()
    landscape.save(tmp_path / "landscape.h5")
    again = Landscape.open(tmp_path / "landscape.h5").forks
    assert again is not None
    assert again.texts == landscape.forks.texts
    for column, values in landscape.forks.columns.items():
        np.testing.assert_array_equal(again.columns[column], values)
    written = {path.name: path for path in export(landscape, tmp_path, ["csv", "svg"])}
    rows = list(csv.DictReader(written["forks.csv"].open()))
    assert len(rows) == 2 * len(KINDS) * len(EPOCHS)
    row = next(row for row in rows if row["name"] == "altsdp_e5_s2")
    assert (row["trunk"], row["kind"], float(row["barrier"])) == ("sgd_s2", "altsdp", pytest.approx(0.06))
    assert "epoch of the fork" in written["forks.svg"].read_text()
    assert "<h2>Forks</h2>" in report_html(landscape)


def test_an_overflow_is_no_mean() -> None:
    landscape = forked()
    landscape.lines["sgd-sgd_e0"] = straight("sgd", "sgd_e0", np.inf)
    found = fork_curves(landscape)
    assert found is not None
    barrier = found.curves[0].points[0].over_seeds("barrier")
    assert barrier is not None
    assert (barrier.mean, barrier.count) == (pytest.approx(hill("sgd", 0, 1)), 1)
