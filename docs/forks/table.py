"""Prints the table of forks of a finished experiment as Markdown: means over seeds, with the lowest and highest.

valley run docs/forks/digits.yaml --out DIR
python docs/forks/table.py DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from valleyscope.landscape.analysis.fork_curves import ForkCurves, Range, fork_curves
from valleyscope.landscape.storage.landscape_file import Landscape


def losses(found: Range | None) -> str:
    return "" if found is None else f"{found.mean:.4f} ({found.low:.4f} to {found.high:.4f})"


def markdown(found: ForkCurves) -> Iterator[str]:
    yield "| fork | epoch | barrier | rise | train loss | test accuracy | zero groups | seeds |"
    yield "|" + "---|" * 8
    for curve in found.curves:
        for point in curve.points:
            means = {name: point.over_seeds(name) for name in ("train_loss", "test_accuracy", "zero_groups")}
            loss, accuracy, zero = (None if values is None else values.mean for values in means.values())
            cells = [
                curve.kind,
                str(point.epoch),
                *(losses(point.over_seeds(quantity)) for quantity in ("barrier", "rise")),
                "" if loss is None else f"{loss:.4f}",
                *("" if share is None else f"{100 * share:.1f} %" for share in (accuracy, zero)),
                str(len(point.forks)),
            ]
            yield f"| {' | '.join(cells)} |"
    yield ""
    if found.unrelated is not None:
        yield f"The barrier to a network from another initialisation is {found.unrelated.value:.3f} nats."
    yield from (f"- {remark}" for remark in found.remarks())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of a finished run")
    found = fork_curves(Landscape.open(parser.parse_args().folder / "landscape.h5"))
    if found is None:
        parser.error("this experiment has no forks")
    print(*markdown(found), sep="\n")


if __name__ == "__main__":
    main()
