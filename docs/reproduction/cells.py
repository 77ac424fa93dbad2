"""The cells of results.csv: a number of the paper, ours, and the difference, with what made ours."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.reproduction.parts import FOLDER, Part
from valleyscope.app.experiments.spec import Spec
from valleyscope.landscape.analysis.method_table import method_table
from valleyscope.landscape.analysis.pair_matrix import line_estimate
from valleyscope.landscape.analysis.pair_verdict import judge_pair
from valleyscope.landscape.analysis.published import published_numbers
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord

# A column of paper.csv, ours, and what ours is multiplied by.
QUANTITIES = {
    "train_loss": ("train_loss", 1.0),
    "train_acc": ("train_accuracy", 100.0),
    "test_acc": ("test_accuracy", 100.0),
    "sparsity": ("sparsity", 1.0),
}


@dataclass(frozen=True)
class Cell:
    """One row of results.csv; `paper` or `ours` is None where there is none, and `low`, `high` are ours' interval."""

    table: str
    network: str
    quantity: str
    epoch: int | None = None
    paper: float | None = None
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    seed: int | None = None
    settings: str = ""

    @property
    def difference(self) -> float | None:
        return None if self.paper is None or self.ours is None else self.ours - self.paper

    def row(self) -> dict[str, str]:
        numbers = {name: _short(getattr(self, name)) for name in ("paper", "ours", "difference", "low", "high")}
        words = {"table": self.table, "network": self.network, "quantity": self.quantity}
        counts = {name: "" if (value := getattr(self, name)) is None else str(value) for name in ("epoch", "seed")}
        return {**words, "epoch": counts["epoch"], **numbers, "seed": counts["seed"], "settings": self.settings}


def cells(part: Part, landscape: Landscape | None) -> list[Cell]:
    """Every cell of a part, also those of the paper that nothing of ours stands beside yet."""
    spec = part.spec
    found = list(_table_cells(part, spec, landscape))
    if landscape is not None:
        found += _ends(part, spec, landscape)
        found += _paths(spec, landscape)
    if part.methods:
        found += _method_cells(part, spec, landscape)
    return found


def write_cells(path: Path, rows: list[Cell]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, Cell("", "", "").row(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(cell.row() for cell in rows)


def paper_rows() -> list[dict[str, str]]:
    """The paper's tables of training runs, and of settings."""
    with (FOLDER / "paper.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _table_cells(part: Part, spec: Spec, landscape: Landscape | None) -> Iterator[Cell]:
    networks = part.table.get("networks", {})
    for row in paper_rows():
        for network, key in networks.items():
            if row["table"] != part.table["name"] or not _is_row(row, key):
                continue
            epoch = int(row["epoch"])
            record = landscape.minima.get(network) if landscape else None
            for column, (quantity, scale) in QUANTITIES.items():
                ours = _at_epoch(record, epoch, quantity)
                yield Cell(
                    part.table["name"],
                    network,
                    column,
                    epoch,
                    paper=float(row[column]),
                    ours=None if ours is None else ours * scale,
                    **_made_by(spec, network),
                )


def _is_row(row: dict[str, str], key: dict[str, Any]) -> bool:
    numbers = all(float(row[name] or "nan") == float(key[name]) for name in ("c", "mu") if name in key)
    return row["method"] == key["method"] and numbers


def _at_epoch(record: MinimumRecord | None, epoch: int, quantity: str) -> float | None:
    """The value measured after an epoch; None if that epoch was not measured."""
    if record is None or quantity not in record.epochs:
        return None
    values = dict(zip(record.epochs["epoch"].tolist(), record.epochs[quantity].tolist(), strict=True))
    return values.get(float(epoch))


def _ends(part: Part, spec: Spec, landscape: Landscape) -> Iterator[Cell]:
    """Each network at its end; of a table of the paper, the groups that its columns do not count."""
    for name, record in landscape.minima.items():
        known = part.table.get("networks", {})
        for column in ("zero_groups",) if name in known else ("train_loss", "test_acc", "sparsity", "zero_groups"):
            quantity, scale = QUANTITIES.get(column, (column, 1.0))
            if quantity in record.final:
                ours = record.final[quantity] * scale
                epoch = int(record.final["epoch"])
                yield Cell("end of training", name, column, epoch, ours=ours, **_made_by(spec, name))


def _paths(spec: Spec, landscape: Landscape) -> Iterator[Cell]:
    """Barrier and rise of the train loss along every line and curve, in nats."""
    split = (landscape.verdict or {}).get("split", "train")
    for kind, paths in (("line", landscape.lines), ("curve", landscape.curves)):
        for path in paths.values():
            found = line_estimate(landscape, path, split)
            if found is None:
                continue
            ends = f"{path.start} to {path.end}"
            made = _made_by(spec, path.end)
            yield Cell(kind, ends, "barrier", None, ours=found.value, low=found.low, high=found.high, **made)
            if (rise := found.rise) is not None:
                yield Cell(kind, ends, "rise", None, ours=rise.value, low=rise.low, high=rise.high, **made)


def _method_cells(part: Part, spec: Spec, landscape: Landscape | None) -> Iterator[Cell]:
    """Points of accuracy lost and multiply-adds left, of each method in the paper's tables."""
    ours = _of_table(part) if landscape is None else _of_landscape(landscape)
    for published in published_numbers(**part.methods):
        table = published["source"].rpartition(", ")[2]
        method = published["method"]
        drop = 100 * (published["baseline_accuracy"] - published["pruned_accuracy"])
        network, lost, left = ours.get(method.lower(), ("", None, None))
        made = _made_by(spec, network)
        yield Cell(table, method, "accuracy_drop", paper=drop, ours=lost, **made)
        yield Cell(table, method, "multiply_adds", paper=published["macs"], ours=left, **made)


def _of_landscape(landscape: Landscape) -> dict[str, tuple[str, float, float]]:
    """The first network of each method, with means over seeds."""
    rows = method_table(landscape)
    sgd = next(row.values["test_accuracy"].mean for row in rows if row.name == "sgd")
    found = {}
    for row in reversed(rows):
        if {"test_accuracy", "macs"} <= row.values.keys():
            lost = 100 * (sgd - row.values["test_accuracy"].mean)
            found[row.method] = (row.minima[0], lost, row.values["macs"].mean)
    return found


def _of_table(part: Part) -> dict[str, tuple[str, float, float]]:
    """The same from the table beside the spec, which docs/pruning/table.py wrote; empty if there is none."""
    path = (FOLDER / part.spec_path).with_suffix(".csv")
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sgd = {row["seed"]: float(row["test_accuracy"]) for row in rows if row["method"] == "sgd"}
    pruned: dict[str, list[tuple[str, float, float]]] = {}
    for row in rows:
        if row["method"] != "sgd" and row["macs"] and row["seed"] in sgd:
            lost = 100 * (sgd[row["seed"]] - float(row["test_accuracy"]))
            pruned.setdefault(row["method"], []).append((row["network"], lost, float(row["macs"])))
    return {
        method: (runs[0][0], *(sum(run[column] for run in runs) / len(runs) for column in (1, 2)))
        for method, runs in pruned.items()
    }


def _made_by(spec: Spec, network: str) -> dict[str, Any]:
    """The seed of a network, and the settings of its training that are not defaults."""
    if network not in spec.minima:
        return {}
    settings = spec.minimum(network)
    given = settings.model_dump(mode="json", exclude_unset=True, exclude={"seed", "measure_every"})
    return {"seed": settings.seed, "settings": json.dumps(given)}


def kind_of_pair(landscape: Landscape, start: str, end: str) -> str:
    """The kind of verdict on two networks, judged from the stored line."""
    return str(judge_pair(landscape, start, end).to_json()["kind"])


def _short(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:.6g}" if abs(value) >= 5e-7 else "0"
