"""docs/reproduction.md and its data agree: every table and verdict follows from the committed landscapes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from docs.reproduction.__main__ import collected
from docs.reproduction.cells import Cell, cells, paper_rows, write_cells
from docs.reproduction.page import BLOCKS, OF_A_VALLEY, PAGE, refreshed, table_verdict
from docs.reproduction.parts import Part, cost, parts
from valleyscope.app.experiments.experiment_writer import LANDSCAPE, WORK
from valleyscope.app.experiments.gallery import gallery
from valleyscope.app.experiments.recipes import load_recipe
from valleyscope.app.experiments.spec import parse_spec, read_spec
from valleyscope.landscape.analysis.verdict_kind import VerdictKind
from valleyscope.training import build_model, load_dataset
from valleyscope.training.loop import Cancelled, train

LANDSCAPES = {"demo": gallery("demo")} | {
    name: landscape for name, part in parts().items() if (landscape := part.landscape()) is not None
}


def test_every_table_and_verdict_of_the_page_follows_from_the_committed_data() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall("<!-- made: ([a-z0-9-]+) -->", text)) == set(BLOCKS)
    assert refreshed(text) == text, "run python -m docs.reproduction --page"


def test_results_csv_of_every_part_follows_from_its_landscape(tmp_path: Path) -> None:
    for name, part in parts().items():
        if found := cells(part, part.landscape()):
            write_cells(tmp_path / "results.csv", found)
            kept = (part.folder / "results.csv").read_text(encoding="utf-8")
            assert (tmp_path / "results.csv").read_text(encoding="utf-8") == kept, name


def test_kept_landscapes_are_of_the_specs_beside_them_and_small() -> None:
    for part in parts().values():
        if (landscape := part.landscape()) is not None:
            assert parse_spec(landscape.spec).resolved() == part.spec.resolved(), part.name
            assert (part.folder / LANDSCAPE).stat().st_size < 1_500_000


@pytest.mark.parametrize("name", LANDSCAPES)
def test_barriers_in_the_cells_are_those_of_the_stored_losses(name: str) -> None:
    landscape = LANDSCAPES[name]
    part = parts().get(name, parts()["digits"])
    lines = [cell for cell in cells(part, landscape) if cell.table == "line"]
    assert len(lines) == 2 * len(landscape.lines)
    for cell in lines:
        start, end = cell.network.split(" to ")
        losses = landscape.lines[f"{start}-{end}"].splits["train"].loss
        lowest = max(losses[0], losses[-1]) if cell.quantity == "barrier" else np.min(losses)
        assert cell.ours == pytest.approx(np.max(losses) - lowest, abs=1e-6)  # losses are summed in float32


def test_every_row_of_the_papers_table_of_mnist_has_a_cell() -> None:
    rows = [row for row in paper_rows() if row["table"] == "detail-result-dnn"]
    found = cells(parts()["mnist"], None)
    assert len(rows) == 24
    assert len(found) == 4 * len(rows)
    given = sorted(float(row[column]) for row in rows for column in ("train_loss", "train_acc", "test_acc", "sparsity"))
    assert sorted(cell.paper for cell in found if cell.paper is not None) == given


def cell(difference: float | None, quantity: str = "sparsity") -> Cell:
    return Cell("t", "n", quantity, 10, paper=0.5, ours=None if difference is None else 0.5 + difference)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([cell(0.04), cell(-0.04), cell(0.19, "test_acc")], "holds"),
        ([cell(0.04), cell(0.0), cell(0.06)], "holds in part"),
        ([cell(0.3), cell(-0.3), cell(0.0)], "does not hold"),
        ([cell(0.0), cell(None)], "cannot tell here"),
        ([cell(None), cell(None)], "not run yet"),
    ],
)
def test_a_table_holds_where_its_cells_are_close(found: list[Cell], verdict: str) -> None:
    assert table_verdict(found).startswith(f"**{verdict}**")


def test_every_kind_of_verdict_says_whether_the_claim_holds() -> None:
    assert set(OF_A_VALLEY) == {kind.value for kind in VerdictKind}


def test_an_unfinished_run_keeps_the_epochs_that_it_reached(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [4]},
        "training": {"epochs": 6, "batch_size": 64, "lr": 0.1},
        "minima": {"sgd": {"optimizer": "sgd"}, "other": {"optimizer": "sgd", "seed": 5}},
    }
    spec, data = parse_spec(values), load_dataset("digits")
    reached: list[int] = []
    model = build_model(values["model"], data, seed=0)
    with pytest.raises(Cancelled):
        train(
            model,
            data,
            spec.minimum("sgd"),
            directory=tmp_path / WORK / "sgd",
            progress=lambda now: reached.append(now.epoch),
            report_every=0.0,
            cancelled=lambda: bool(reached) and reached[-1] >= 2,
        )
    landscape = collected(spec, tmp_path)
    assert list(landscape.minima) == ["sgd"]
    epochs = landscape.minima["sgd"].epochs
    assert epochs["epoch"].tolist() == [1.0, 2.0]
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    table = {"name": "detail-result-dnn", "networks": {"sgd": {"method": "sgd"}}}
    found = cells(Part("p", "p", "small", str(tmp_path / "spec.yaml"), table=table), landscape)
    assert {cell.ours for cell in found if cell.table == table["name"]} == {None}  # epoch 10 was not reached
    assert {cell.epoch for cell in found if cell.table == "end of training"} == {2}


@pytest.mark.parametrize("name", list(parts()))
def test_a_part_costs_what_its_own_network_does(name: str) -> None:
    part = parts()[name]
    found = cost(part.spec, part.data)
    assert 0 < found.core_hours < 24
    assert found.parameters is not None


def test_the_mnist_part_has_the_settings_of_the_recipes() -> None:
    spec = read_spec(parts()["mnist"].folder / "spec.yaml")
    for mu in ("51", "55", "60"):
        recipe = load_recipe(f"mnist-mu{mu}")
        ours, theirs = spec.minimum(f"altsdp{mu}"), recipe.minimum("altsdp")
        assert ours.model_dump(exclude={"measure_every"}) == theirs.model_dump(exclude={"measure_every"})
