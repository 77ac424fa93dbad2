"""The table of pruning methods: means and spreads over seeds, lines to the SGD network of the same seed, remarks."""

from __future__ import annotations

import numpy as np
import pytest

from valleyscope.landscape.analysis.method_table import method_table, remarks
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


def test_remarks_name_collapsed_networks_and_simple_methods_that_do_as_well() -> None:
    landscape = compared()
    said = remarks(method_table(landscape))
    assert "one-shot_50 collapsed in 1 of 2 seeds: it is no better than guessing." in said
    landscape.minima["one-shot_50_s2"].final["test_accuracy"] = 0.97
    assert any("one-shot_50 does as well as altsdp_50" in remark for remark in remarks(method_table(landscape)))
    for name in ("one-shot_50", "one-shot_50_s2"):
        landscape.minima[name].final["test_accuracy"] = 0.5
    assert not any("does as well" in remark for remark in remarks(method_table(landscape)))


def test_other_landscapes_have_no_table() -> None:
    assert method_table(Landscape("plain", minima={"sgd": network("sgd", "sgd", 0.9)})) == []
