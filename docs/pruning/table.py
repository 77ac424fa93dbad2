"""Prints the table of a comparison of pruning methods as Markdown, and keeps the numbers of each network as CSV.

    valley run docs/pruning/digits.yaml --out DIR
    python docs/pruning/table.py DIR --csv docs/pruning/digits.csv

The table is made from the rows of the CSV file, in the order of the spec: those of the networks in DIR, and those that
the file had of others. So a table can grow network by network (`networks.py`). The last column is the verdict on each
network and the SGD network of its seed. Training times are left out: they are wall times, and say little of a machine
that does other work; `benchmarks/pruning.py` measures them.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from valleyscope.landscape.analysis.method_table import method_table, seed_of
from valleyscope.landscape.analysis.pair_verdict import pair_verdict
from valleyscope.landscape.storage.landscape_file import Landscape

SHOWN = {
    "test_accuracy": "test accuracy",
    "train_loss": "train loss",
    "zero_groups": "zero groups",
    "macs": "multiply-adds left",
    "latency_32": "latency left, batch 32",
    "rise": "rise to SGD",
    "barrier": "barrier to SGD",
}
PERCENT = ("test_accuracy", "zero_groups", "macs", "latency_32")


Row = dict[str, Any]


def verdict(landscape: Landscape, name: str) -> str:
    """The kind of verdict on a network and the SGD network of its seed."""
    sgd = sgd_of(name)
    measured = name != sgd and any({line.start, line.end} == {sgd, name} for line in landscape.lines.values())
    return str(pair_verdict(landscape, sgd, name)["kind"]) if measured else ""


def sgd_of(name: str) -> str:
    number = seed_of(name)[1]
    return "sgd" if number == 1 else f"sgd_s{number}"


def cell(rows: Sequence[Row], column: str) -> str:
    """Mean and standard deviation over the networks of a method."""
    values = [float(row[column]) for row in rows if row.get(column) not in (None, "")]
    if not values:
        return ""
    scale, digits, unit = (100, 1, " %") if column in PERCENT else (1, 4, "")
    spread = f" ± {scale * stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{scale * mean(values):.{digits}f}{spread}{unit}"


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(seed_of(row["network"])[0], []).append(row)
    yield "| network | seeds | " + " | ".join(SHOWN.values()) + " | verdict |"
    yield "|" + "---|" * (len(SHOWN) + 3)
    for name, found in grouped.items():
        kinds = Counter(row["verdict"] for row in found if row["verdict"])
        only = next(iter(kinds), "") if len(found) == 1 else ""
        said = only or ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
        yield f"| {name} | {len(found)} | " + " | ".join(cell(found, column) for column in SHOWN) + f" | {said} |"


def networks(landscape: Landscape) -> Iterator[Row]:
    """The numbers of each network that is complete: SGD's, and those with a line to it."""
    for name, minimum in landscape.minima.items():
        row = next(iter(method_table(_alone(landscape, name))))
        values = {column: spread.mean for column, spread in row.values.items() if column != "time"}
        if name != sgd_of(name) and "rise" not in values:
            continue
        ended = minimum.pruning.get("threshold_ended") or {}
        yield {
            "network": name,
            "method": row.method,
            "wish": row.wish,
            "seed": seed_of(name)[1] - 1,
            **{column: float(f"{value:.6g}") for column, value in values.items()},
            "threshold_ended_epoch": ended.get("epoch"),
            "threshold": None if not ended else float(f"{ended['threshold']:.6g}"),
            "verdict": verdict(landscape, name),
        }


def _alone(landscape: Landscape, name: str) -> Landscape:
    """The landscape with one network and the SGD network of its seed, whose table has the numbers of that network."""
    sgd = sgd_of(name)
    found = Landscape(landscape.name, spec=landscape.spec)
    names = [name] if name == sgd else [name, sgd]
    found.minima = {key: landscape.minima[key] for key in names if key in landscape.minima}
    found.lines, found.verdict = landscape.lines, landscape.verdict
    return found


def merged(known: Iterable[Row], new: Iterable[Row], spec: Mapping[str, Any]) -> list[Row]:
    """The rows of both, new ones in the place of known ones, in the order of the spec: all seeds of a method."""
    rows = {row["network"]: row for row in (*known, *new)}
    names = [seed_of(name)[0] for name in spec["minima"]]
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return sorted(rows.values(), key=lambda row: (order[seed_of(row["network"])[0]], int(row["seed"])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="output of valley run, or of networks.py")
    parser.add_argument("--csv", type=Path, help="file for the numbers of each network; its other rows stay")
    options = parser.parse_args()
    landscape = Landscape.open(options.directory / "landscape.h5")
    known: list[Row] = []
    if options.csv is not None and options.csv.is_file():
        with options.csv.open(newline="", encoding="utf-8") as file:
            known = list(csv.DictReader(file))
    rows = merged(known, networks(landscape), landscape.spec)
    print(*markdown(rows), sep="\n")
    if options.csv is not None:
        columns = list(dict.fromkeys(column for row in rows for column in row))
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
