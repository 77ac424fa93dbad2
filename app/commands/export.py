"""`valley export`: a landscape as CSV, VTK, PNG and SVG; of a run, of a file, or of an experiment by its id."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console

from valleyscope.app.commands.client import Refused, Unreachable
from valleyscope.app.commands.server_option import connect
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.settings import Settings
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.ids import is_id
from valleyscope.landscape.storage.landscape_file import Landscape


def export_landscape(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.landscape.export import export  # loads plotly, which takes long

    landscape, beside = _found(options.source, options.server)
    for path in export(landscape, options.out or beside, tuple(options.formats.split(","))):
        console.print(str(path), highlight=False, soft_wrap=True)
    return 0


def _found(source: Path, server: str | None) -> tuple[Landscape, Path]:
    """The landscape that is meant, and where its files go by default.

    A folder of that name may be there from an earlier export, so only one with a landscape in it is taken for a run.
    """
    file = source / LANDSCAPE if source.is_dir() else source
    if file.exists() or not is_id(str(source)):
        return Landscape.open(file), file.parent / "export"
    return _of_experiment(str(source), server), source


def _of_experiment(id: str, server: str | None) -> Landscape:
    """The landscape under the home of this machine, else the one of the server; of that first, where it is named."""
    home = Settings.load().home
    kept = Home(home).experiment(id) / LANDSCAPE
    if server is None and kept.exists():
        return Landscape.open(kept)
    with tempfile.TemporaryDirectory(prefix="valley-export-") as folder:
        copy = Path(folder) / LANDSCAPE
        client = connect(server)
        try:
            client.download(id, LANDSCAPE, copy)
        except Unreachable as error:
            raise Unreachable(f"experiment {id} is not under {home}, and {error}") from error
        except Refused as error:
            raise ValueError(f"experiment {id} is not under {home}, and {client.server} says: {error}") from error
        return Landscape.open(copy)
