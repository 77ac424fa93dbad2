"""`valley export`: write a landscape as CSV, VTK, PNG, SVG and PDF."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console

from valleyscope.app.commands.client import Refused, Unreachable, connect
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.experiments.gallery import gallery, is_gallery_id
from valleyscope.app.settings import Settings
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.ids import is_id
from valleyscope.landscape.storage.landscape_file import Landscape


def export_landscape(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.landscape.export import export  # slow: loads plotly

    landscape, default = _find_landscape(options.source, options.server)
    for path in export(landscape, options.out or default, tuple(options.formats.split(","))):
        console.print(str(path), highlight=False, soft_wrap=True)
    return 0


def _find_landscape(source: Path, server: str | None) -> tuple[Landscape, Path]:
    """The landscape and the default output folder.

    An earlier export may have left a folder with the id as its name, so only a folder with a landscape is a run.
    """
    if is_gallery_id(str(source)) and not source.exists():
        return gallery(str(source)), source
    file = source / LANDSCAPE if source.is_dir() else source
    if file.exists() or not is_id(str(source)):
        return Landscape.open(file), file.parent / "export"
    return _download(str(source), server), source


def _download(id: str, server: str | None) -> Landscape:
    """The landscape of an experiment: from the local home, unless `server` is given or the home has none."""
    home = Settings.load().home
    local = Home(home).experiment(id) / LANDSCAPE
    if server is None and local.exists():
        return Landscape.open(local)
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
