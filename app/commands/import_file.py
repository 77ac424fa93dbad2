"""`valley import`: files of other tools become landscapes, here or on a server."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from valleyscope.app.commands.client import connect
from valleyscope.app.experiments.experiment_writer import LANDSCAPE, REPORT
from valleyscope.app.experiments.landscape_import import TIMEOUT_SECONDS, import_landscapes


def import_landscape(
    files: Sequence[Path], out: Path | None, console: Console, timeout: float = TIMEOUT_SECONDS
) -> int:
    """Write landscape.h5 and report.html into a folder for each landscape, and print their paths."""
    with TemporaryDirectory(prefix="valley-import-") as folder:
        found = import_landscapes(files, Path(folder), timeout=timeout)
        for number, landscape in enumerate(found):
            first = next(file for file in files if file.name in landscape.spec["imported"]["files"]).resolve()
            target = out or first.with_name(f"{first.stem}-valley")
            if out is not None and len(found) > 1:
                target = out / f"{number + 1}-{first.stem}"
            target.mkdir(parents=True, exist_ok=True)
            for name in (LANDSCAPE, REPORT):
                shutil.copyfile(landscape.folder / name, target / name)
                console.print(str(target / name), highlight=False, soft_wrap=True)
    return 0


def send_files(files: Sequence[Path], server: str, name: str | None, console: Console) -> int:
    """Upload the files, and print the address of each landscape."""
    client = connect(server)
    with TemporaryDirectory(prefix="valley-import-") as folder:
        runs = [file for file in files if file.is_dir()]
        if runs:  # snapshots stay here; the server gets their plane
            made = import_landscapes(runs, Path(folder), timeout=TIMEOUT_SECONDS)
            files = [*(file for file in files if file not in runs), *(found.folder / LANDSCAPE for found in made)]
        sent = client.send_landscapes(files, name=name)["items"]
    for landscape in sent:
        console.print(f"{client.server}/experiments/{landscape['id']}", highlight=False, soft_wrap=True)
    return 0
