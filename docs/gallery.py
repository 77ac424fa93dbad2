"""Compute the landscapes of the gallery (app/experiments/gallery): `python docs/gallery.py [NAME ...]`, some minutes.

Fails if a landscape does not have the verdict that the index states. With `--check` nothing is written: the new values
must be equal to those that ship, bit by bit with the versions of constraints.txt on the same kind of processor.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console

from valleyscope.app.commands.run import run_in_terminal
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.experiments.gallery import GalleryEntry, gallery, gallery_entries
from valleyscope.landscape.storage.landscape_file import Landscape

MOST_BYTES = 300_000


def main() -> int:
    known = {entry.name: entry for entry in gallery_entries()}
    parser = argparse.ArgumentParser(description="compute the landscapes of the gallery")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--check", action="store_true", help="compare with those that ship, write nothing")
    parser.add_argument("--workers", type=int, help="parallel tasks (default: one per core)")
    options = parser.parse_args()
    for name in options.names or known:
        if name not in known:
            parser.error(f"{name!r} is not in the gallery: use one of {', '.join(known)}")
        landscape = computed(known[name], options.workers)
        if options.check:
            compare(landscape, gallery(name), name)
        else:
            ship(landscape, known[name])
    return 0


def computed(entry: GalleryEntry, workers: int | None) -> Landscape:
    with tempfile.TemporaryDirectory() as folder:
        if run_in_terminal(entry.spec(), Path(folder), workers=workers, console=Console()) != 0:
            raise SystemExit(f"{entry.name} could not be computed")
        landscape = Landscape.open(Path(folder) / LANDSCAPE)
    kind = (landscape.verdict or {}).get("kind")
    if kind != entry.verdict:
        raise SystemExit(f"{entry.name} is {kind!r}, but the index says {entry.verdict!r}")
    return landscape


def ship(landscape: Landscape, entry: GalleryEntry) -> None:
    path = entry.folder / LANDSCAPE
    path.parent.mkdir(exist_ok=True)
    landscape.name = entry.title
    landscape.save(path)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, more than {MOST_BYTES}: lower its resolution")
    print(f"{path}: {path.stat().st_size} bytes, {entry.verdict}")


def compare(found: Landscape, shipped: Landscape, name: str) -> None:
    for plane, record in shipped.planes.items():
        for split, grid in record.splits.items():
            np.testing.assert_array_equal(found.planes[plane].splits[split].loss, grid.loss, f"{name} {plane} {split}")
    if found.verdict != shipped.verdict:
        raise SystemExit(f"{name}: the verdict differs")
    print(f"{name}: equal")


if __name__ == "__main__":
    raise SystemExit(main())
