"""Run a reproduction of the paper, or list them: `make reproduce`, `make reproduce PART=mnist`.

A part is run by `valley run` in OUT/<part>, where the same command continues it. What is finished is kept beside
parts.yaml: <part>/results.csv (every cell: the paper's number, ours, the difference), landscape.h5 and SVG figures,
and the tables of docs/reproduction.md are made anew. `--collect` keeps what an unfinished run has so far.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from docs.reproduction.cells import cells, write_cells
from docs.reproduction.page import PAGE, refreshed
from docs.reproduction.parts import FOLDER, Part, cost, parts
from valleyscope.app.commands.run import run_in_terminal
from valleyscope.app.experiments.experiment_writer import LANDSCAPE, WORK
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.settings import Settings
from valleyscope.landscape.export import export
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import LayerRecord, MinimumRecord
from valleyscope.training.dataset_sources import data_root
from valleyscope.training.epochs import Epoch
from valleyscope.training.state import STATE_FILE

MOST_BYTES = 1_500_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", metavar="PART", help=f"one of {', '.join(parts())}; without it, list them")
    parser.add_argument("--out", type=Path, default=Path("reproduction-out"), help="folder of the runs")
    parser.add_argument("--photographs", default="cifar10", help="data set that the photographs are taken from")
    parser.add_argument("--workers", type=int, help="parallel tasks (default: one per core)")
    parser.add_argument("--collect", action="store_true", help="compute nothing, keep what OUT has so far")
    parser.add_argument("--page", action="store_true", help="only make tables and results.csv anew from what is kept")
    options = parser.parse_args(arguments)
    if options.page:
        write_tables()
        return 0
    if not options.part:
        print(*listed(), sep="\n")
        return 0
    if options.part not in parts():
        parser.error(f"PART is {options.part!r}: use one of {', '.join(parts())}")
    part, out = parts()[options.part], options.out / options.part
    if not options.collect:
        prepare(part, options.photographs)
        root = Settings.load().data
        code = run_in_terminal(part.spec, out, workers=options.workers, data_root=root, console=Console())
        if code != 0:
            return code
    keep(part, collected(part.spec, out))
    write_tables()
    return 0


def listed() -> list[str]:
    """One line for each part: what it is, what it takes, and whether its results are here."""
    rows = [("PART", "hours on one core", "kept", "what")]
    for part in parts().values():
        hours = f"{cost(part.spec, part.data).core_hours:.2g}"
        rows.append((part.name, hours, "yes" if part.landscape() else "no", f"{part.title}: {part.size}"))
    return [f"{name:<9}{hours:>18}  {kept:<5}{what}" for name, hours, kept, what in rows]


def prepare(part: Part, photographs: str) -> None:
    """Write the file of photographs, unless it is there."""
    if not part.data:
        return
    path = data_root(Settings.load().data) / part.data["file"]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        sizes = [f"--{split}={part.data[split]}" for split in ("train", "test")]
        script = FOLDER.parent / "pruning" / "first_images.py"
        subprocess.run([sys.executable, str(script), photographs, str(path), *sizes], check=True)


def collected(spec: Spec, out: Path) -> Landscape:
    """The landscape of a run; of a run that has not ended, also the epochs that its networks have reached."""
    landscape = Landscape.open(out / LANDSCAPE) if (out / LANDSCAPE).exists() else Landscape(spec.name)
    landscape.spec = landscape.spec or spec.to_json()
    for name in spec.minima:
        path = out / WORK / name / STATE_FILE
        if name not in landscape.minima and path.exists():
            values = torch.load(path, weights_only=True, map_location="cpu")
            epochs = [Epoch.from_json(epoch) for epoch in values["epochs"]]
            if epochs:
                landscape.minima[name] = _so_far(name, spec, epochs)
    return landscape


def _so_far(name: str, spec: Spec, epochs: list[Epoch]) -> MinimumRecord:
    columns = [column for column in asdict(epochs[-1]) if column != "layers"]
    settings = spec.minimum(name)
    return MinimumRecord(
        name,
        settings.optimizer,
        settings.model_dump(mode="json"),
        {column: np.array([getattr(epoch, column) for epoch in epochs], dtype=np.float64) for column in columns},
        [LayerRecord(**asdict(layer)) for layer in epochs[-1].layers],
        {column: float(getattr(epochs[-1], column)) for column in columns},
    )


def keep(part: Part, landscape: Landscape) -> None:
    """Write landscape.h5 and the figures of a part."""
    part.folder.mkdir(exist_ok=True)
    landscape.save(part.folder / LANDSCAPE)
    if (size := (part.folder / LANDSCAPE).stat().st_size) > MOST_BYTES:
        raise SystemExit(f"{part.folder / LANDSCAPE} has {size} bytes, more than {MOST_BYTES}: lower its resolution")
    wanted = {"paper.svg", "profile.svg"}
    for path in export(landscape, part.folder, ["svg"]):
        if path.name not in wanted:
            path.unlink()


def write_tables() -> None:
    """Write the cells of every part, also those of the paper that wait for ours, and the tables of the page."""
    for part in parts().values():
        if found := cells(part, part.landscape()):
            part.folder.mkdir(exist_ok=True)
            write_cells(part.folder / "results.csv", found)
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
