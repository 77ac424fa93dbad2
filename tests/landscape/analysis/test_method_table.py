"""The table of pruning methods: means and spreads over seeds, lines to the SGD network of the same seed, remarks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from valleyscope.landscape.analysis.method_table import method_table, remarks
from valleyscope.landscape.analysis.published import published_beside
from valleyscope.landscape.export.csv_tables import write_spreadsheets
from valleyscope.landscape.report.page import report_html
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord, PathRecord, PathValues, line_name


def network(name: str, optimizer: str, accuracy: float, seconds: float = 10.0, **pruning: object) -> MinimumRecord:
    settings = {"sparsity": 0.5} if pruning else {}
    final = {"test_accuracy": accuracy, "train_loss": 0.1, "zero_groups": 0.5 if pruning else 0.0, "seconds": seconds}
    return MinimumRecord(name, optimizer, settings, final=final, pruning=dict(pruning))


def straight(start: str, end: str, losses: list[float]) -> PathRecord:
    t = np.linspace(0, 1, len(losses))
    values = PathValues(np.array(losses), np.zeros(len(losses)))
    return PathRecord(line_name(start, end), "line", start, end, t, t, {"train": values})


def compared() -> Landscape:
    minima = [
        network("sgd", "sgd", 0.98),
        network("altsdp_50", "altsdp", 0.96, 12.0, method="altsdp", macs=0.4),
        network("one-shot_50", "one-shot", 0.97, 1.0, method="one-shot", macs=0.6, collapsed=False),
        network("sgd_s2", "sgd", 0.96, 20.0),
        network("altsdp_50_s2", "altsdp", 0.94, 24.0, method="altsdp", macs=0.5),
        network("one-shot_50_s2", "one-shot", 0.10, 1.0, method="one-shot", macs=0.6, collapsed=True),
    ]
    for minimum in minima:
        if "one-shot" in minimum.name:
            minimum.settings["of"] = "sgd"
    lines = [
        straight("sgd", "altsdp_50", [0.0, 0.1, 0.05]),
        straight("sgd_s2", "altsdp_50_s2", [0.0, 0.3, 0.05]),
        straight("sgd", "one-shot_50", [0.0, 0.1, 0.2]),
    ]
    landscape = Landscape("methods", spec={"methods": ["altsdp", "one-shot"], "sparsities": [0.5]})
    landscape.minima = {minimum.name: minimum for minimum in minima}
    landscape.lines = {line.name: line for line in lines}
    return landscape


def test_a_row_is_a_method_at_a_share_with_its_mean_and_deviation_over_seeds() -> None:
    rows = {row.name: row for row in method_table(compared())}
    assert list(rows) == ["sgd", "altsdp_50", "one-shot_50"]
    ours = rows["altsdp_50"]
    assert (ours.method, ours.wish, ours.minima) == ("altsdp", 0.5, ("altsdp_50", "altsdp_50_s2"))
    accuracy = ours.values["test_accuracy"]
    assert (accuracy.mean, accuracy.count) == (pytest.approx(0.95), 2)
    assert accuracy.deviation == pytest.approx(np.std([0.96, 0.94], ddof=1))
    assert ours.values["macs"].mean == pytest.approx(0.45)


def test_barrier_and_rise_are_those_of_the_line_to_the_sgd_network_of_the_same_seed() -> None:
    rows = {row.name: row for row in method_table(compared())}
    assert rows["altsdp_50"].values["barrier"].mean == pytest.approx((0.05 + 0.25) / 2)
    assert rows["altsdp_50"].values["rise"].mean == pytest.approx((0.1 + 0.3) / 2)
    assert (rows["one-shot_50"].values["rise"].mean, rows["one-shot_50"].values["rise"].count) == (
        pytest.approx(0.2),
        1,
    )
    assert "rise" not in rows["sgd"].values


def test_training_time_is_over_that_of_sgd_which_a_cut_of_its_network_needs_too() -> None:
    rows = {row.name: row for row in method_table(compared())}
    assert rows["altsdp_50"].values["time"].mean == pytest.approx(1.2)
    assert rows["one-shot_50"].values["time"].mean == pytest.approx((1.1 + 21 / 20) / 2)


def test_latency_is_that_of_the_compact_network_over_that_of_the_whole_one() -> None:
    landscape = compared()

    def timed(before: float, after: float) -> dict[str, object]:
        sides = {"before": {"median": before}, "after": {"median": after}}
        return {"smaller": True, "latency": {"1": sides, "32": sides}}

    landscape.minima["altsdp_50"].compact = timed(0.004, 0.001)
    landscape.minima["altsdp_50_s2"].compact = timed(0.004, 0.003)
    landscape.minima["one-shot_50"].compact = {"smaller": False}
    landscape.minima["one-shot_50_s2"].compact = {"smaller": False, "refused": "layer `a` cannot be traced"}
    rows = {row.name: row for row in method_table(landscape)}
    assert rows["altsdp_50"].values["latency_32"].mean == pytest.approx(0.5)
    assert rows["altsdp_50"].values["latency_1"].count == 2
    assert (rows["one-shot_50"].values["latency_1"].mean, rows["one-shot_50"].values["latency_1"].count) == (1.0, 1)
    assert "latency_1" not in rows["sgd"].values


def test_published_numbers_stand_in_report_and_spreadsheet_as_not_ours(tmp_path: Path) -> None:
    landscape = compared()
    assert published_beside(landscape.spec) == []
    assert "not ours" not in report_html(landscape)
    landscape.spec |= {"dataset": "cifar10", "model": {"name": "resnet56"}}
    assert "Published, not ours" in report_html(landscape)
    write_spreadsheets(landscape, tmp_path)
    rows = list(csv.DictReader((tmp_path / "published.csv").open()))
    # the paper's table: DCP 93.80 to 93.49 % with half of the FLOPs, AltSDP 93.80 to 93.90 % with 55 % fewer
    found = {
        row["method"]: tuple(float(row[key]) for key in ("baseline_accuracy", "pruned_accuracy", "macs"))
        for row in rows
    }
    assert found["DCP"] == (0.938, 0.9349, 0.5)
    assert {"CP", "AMC", "DCP", "CCP"} <= set(found)
    assert all("Structured Directional Pruning" in row["source"] for row in rows)


def test_remarks_name_collapsed_networks_and_simple_methods_that_do_as_well() -> None:
    landscape = compared()
    said = remarks(method_table(landscape))
    assert "Collapsed, no better than guessing: one-shot_50 (1 of 2 seeds)." in said
    landscape.minima["one-shot_50_s2"].final["test_accuracy"] = 0.97
    assert any("one-shot_50 does as well as altsdp_50" in remark for remark in remarks(method_table(landscape)))
    for name in ("one-shot_50", "one-shot_50_s2"):
        landscape.minima[name].final["test_accuracy"] = 0.5
    assert not any("does as well" in remark for remark in remarks(method_table(landscape)))


def test_other_landscapes_have_no_table() -> None:
    assert method_table(Landscape("plain", minima={"sgd": network("sgd", "sgd", 0.9)})) == []


def test_losses_without_accuracy_have_a_table_and_no_figure_of_accuracy() -> None:
    landscape = compared()
    assert 'data-kind="pareto"' in report_html(landscape)
    for minimum in landscape.minima.values():
        del minimum.final["test_accuracy"]
    page = report_html(landscape)
    assert 'data-kind="pareto"' not in page
    assert "one-shot_50" in page
