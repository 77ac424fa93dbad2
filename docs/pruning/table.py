"""Prints the table of a finished comparison of pruning methods as Markdown, and writes it as CSV.

    valley run docs/pruning/digits.yaml --out DIR
    python docs/pruning/table.py DIR --csv docs/pruning/digits.csv

The last column is the verdict on each network and the SGD network of its seed. Training times are left out: they are
wall times, and say little of a machine that does other work; `benchmarks/pruning.py` measures them.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from valleyscope.landscape.analysis.method_table import MethodRow, method_table, remarks, seed_of
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


def verdicts(landscape: Landscape, row: MethodRow) -> str:
    """The kinds of verdict on the networks of a row, with how often each occurs."""
    found: Counter[str] = Counter()
    for name in row.minima:
        number = seed_of(name)[1]
        sgd = "sgd" if number == 1 else f"sgd_s{number}"
        if name != sgd and any({line.start, line.end} == {sgd, name} for line in landscape.lines.values()):
            found[pair_verdict(landscape, sgd, name)["kind"]] += 1
    if len(found) == 1 and len(row.minima) == 1:
        return next(iter(found))
    return ", ".join(f"{kind} ({count})" for kind, count in found.most_common())


def cell(row: MethodRow, column: str) -> str:
    spread = row.values.get(column)
    if spread is None:
        return ""
    if column in PERCENT:
        text = f"{100 * spread.mean:.1f}"
        return f"{text} %" if spread.deviation is None else f"{text} ± {100 * spread.deviation:.1f} %"
    return f"{spread.mean:.4f}" if spread.deviation is None else f"{spread.mean:.4f} ± {spread.deviation:.4f}"


def markdown(landscape: Landscape) -> Iterator[str]:
    rows = method_table(landscape)
    yield "| network | seeds | " + " | ".join(SHOWN.values()) + " | verdict |"
    yield "|" + "---|" * (len(SHOWN) + 3)
    for row in rows:
        cells = [row.name, str(len(row.minima)), *(cell(row, column) for column in SHOWN), verdicts(landscape, row)]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield from (f"- {remark}" for remark in remarks(rows))


def networks(landscape: Landscape) -> Iterator[dict[str, Any]]:
    """One row a network, for the spreadsheet."""
    for row in method_table(landscape):
        for name in row.minima:
            single = next(iter(method_table(_alone(landscape, name))))
            values = {column: spread.mean for column, spread in single.values.items() if column != "time"}
            one = MethodRow(row.name, row.method, row.wish, (name,))
            ended = landscape.minima[name].pruning.get("threshold_ended") or {}
            yield {
                "network": name,
                "method": row.method,
                "wish": row.wish,
                "seed": seed_of(name)[1] - 1,
                **{column: float(f"{value:.6g}") for column, value in values.items()},
                "threshold_ended_epoch": ended.get("epoch"),
                "threshold": None if not ended else float(f"{ended['threshold']:.6g}"),
                "verdict": verdicts(landscape, one),
            }


def _alone(landscape: Landscape, name: str) -> Landscape:
    """The landscape with one network and the SGD network of its seed, whose table has the numbers of that network."""
    number = seed_of(name)[1]
    sgd = "sgd" if number == 1 else f"sgd_s{number}"
    found = Landscape(landscape.name, spec=landscape.spec)
    names = [name] if name == sgd else [name, sgd]
    found.minima = {key: landscape.minima[key] for key in names}
    found.lines, found.verdict = landscape.lines, landscape.verdict
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="output of valley run")
    parser.add_argument("--csv", type=Path, help="file for the numbers of each network")
    options = parser.parse_args()
    landscape = Landscape.open(options.directory / "landscape.h5")
    print(*markdown(landscape), sep="\n")
    if options.csv is not None:
        rows = list(networks(landscape))
        columns = list(dict.fromkeys(column for row in rows for column in row))
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
