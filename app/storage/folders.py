"""Where the service keeps files: one folder an experiment, one file an upload, all named by our identifiers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from app.storage.identifiers import is_identifier

_PROBE_BYTES = 64 * 1024


class Storage:
    """Folders under the home of a service."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def prepare(self) -> None:
        """Make the folders, and remove what an interrupted deletion left."""
        for folder in (self._experiments, self._checkpoints, self._trash):
            folder.mkdir(parents=True, exist_ok=True)
        for leftover in self._trash.iterdir():
            shutil.rmtree(leftover, ignore_errors=True)

    def probe(self) -> None:
        """Raise OSError unless files can be written."""
        with tempfile.TemporaryFile(dir=self.home) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()

    def experiment(self, identifier: str) -> Path:
        return self._experiments / _checked(identifier)

    def checkpoint(self, identifier: str) -> Path:
        return self._checkpoints / f"{_checked(identifier)}.safetensors"

    def stored_checkpoints(self) -> set[str]:
        return {path.stem for path in self._checkpoints.glob("*.safetensors")}

    def remove_experiment(self, identifier: str) -> None:
        """Remove an experiment's folder: out of sight at once, then file by file."""
        folder = self.experiment(identifier)
        if folder.exists():
            doomed = folder.rename(self._trash / identifier)
            shutil.rmtree(doomed)

    @property
    def _experiments(self) -> Path:
        return self.home / "experiments"

    @property
    def _checkpoints(self) -> Path:
        return self.home / "checkpoints"

    @property
    def _trash(self) -> Path:
        return self.home / "trash"


def _checked(identifier: str) -> str:
    if not is_identifier(identifier):
        raise ValueError(f"{identifier!r} is no identifier of ours")
    return identifier
