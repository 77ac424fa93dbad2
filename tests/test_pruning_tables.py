"""The tables of docs/pruning.md are those of the committed numbers, and these keep what the page says of them."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from valleyscope.app.experiments.spec import read_spec

DOCS = Path(__file__).parents[1] / "docs"
SPECS = sorted(path.stem for path in (DOCS / "pruning").glob("*.yaml"))


def rows_of(name: str) -> list[dict[str, Any]]:
    return list(csv.DictReader((DOCS / "pruning" / f"{name}.csv").open(encoding="utf-8")))


def table() -> Any:
    spec = importlib.util.spec_from_file_location("pruning_table", DOCS / "pruning" / "table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SPECS)
def test_a_table_has_the_committed_numbers_in_the_order_of_its_spec(name: str) -> None:
    program, rows = table(), rows_of(name)
    minima = read_spec(DOCS / "pruning" / f"{name}.yaml").minima
    assert {row["network"] for row in rows} <= set(minima)
    lines = list(program.markdown(program.merged(rows, [], {"minima": minima})))
    assert len(lines) > 3
    assert "\n".join(lines) in (DOCS / "pruning.md").read_text(encoding="utf-8")


def test_new_rows_take_the_place_of_old_ones() -> None:
    program = table()
    old = [{"network": "sfp_50", "seed": "0", "loss": "1"}, {"network": "sgd", "seed": "0", "loss": "2"}]
    new = [{"network": "sfp_50_s2", "seed": 1, "loss": 3}, {"network": "sgd", "seed": 0, "loss": 4}]
    found = program.merged(old, new, {"minima": {"sgd": {}, "sfp_50": {}, "sgd_s2": {}, "sfp_50_s2": {}}})
    assert [(row["network"], row["loss"]) for row in found] == [("sgd", 4), ("sfp_50", "1"), ("sfp_50_s2", 3)]


def test_altsdp_on_digits_lands_on_its_wish_in_the_valley_of_sgd() -> None:
    rows = rows_of("digits")
    sgd, ours = ([row for row in rows if row["method"] == method] for method in ("sgd", "altsdp"))
    assert len(sgd) == len(ours) == 7
    for row in ours:
        assert 0.59 <= float(row["zero_groups"]) <= 0.61
        assert float(row["train_loss"]) <= 0.006
        assert float(row["barrier"]) < 0.01
        assert row["verdict"] == "level valley"
    assert mean(float(row["test_accuracy"]) for row in ours) >= mean(float(row["test_accuracy"]) for row in sgd) - 0.004
