"""How long files were left alone, by the clock of the disk that they lie on: those of the hosts may differ from it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def older_than(folder: Path, paths: Iterable[Path], seconds: float) -> list[Path]:
    """Those of the files in a folder that nobody has written to for so long."""
    found = list(paths)
    if not found:
        return []
    with tempfile.TemporaryFile(dir=folder) as now:
        now.write(b".")
        now.flush()
        limit = os.fstat(now.fileno()).st_mtime - seconds
    old = []
    for path in found:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < limit:
                old.append(path)
    return old
