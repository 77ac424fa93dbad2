"""Where the service keeps files: one folder an experiment, one file an upload, all named by our identifiers."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from contextlib import suppress
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

    @staticmethod
    def checked(identifier: str) -> str:
        """The identifier itself; anything else is refused before it becomes part of a path."""
        if not is_identifier(identifier):
            raise ValueError(f"{identifier!r} is no identifier of ours")
        return identifier

    def experiment(self, identifier: str) -> Path:
        return self._experiments / self.checked(identifier)

    def stored_experiments(self) -> set[str]:
        return {path.name for path in self._experiments.glob("*") if is_identifier(path.name)}

    def checkpoint(self, identifier: str) -> Path:
        return self._checkpoints / f"{self.checked(identifier)}.safetensors"

    def stored_checkpoints(self) -> set[str]:
        return {path.stem for path in self._checkpoints.glob("*.safetensors")}

    def remove_experiment(self, identifier: str) -> None:
        """Remove an experiment's folder: out of sight at once, then file by file."""
        self._trash.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it never was, or somebody else removes it
            doomed = self.experiment(identifier).rename(self._trash / f"{identifier}-{secrets.token_hex(4)}")
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
