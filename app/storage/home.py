"""Where the service keeps files: one folder an experiment, one file an upload, all named by our identifiers."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from valleyscope.app.storage.ids import is_id
from valleyscope.landscape.storage.atomic_write import write_atomically

IDENTITY: Final = "identity"
_PROBE_BYTES = 64 * 1024


class Home:
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

    def identity(self) -> str | None:
        """The name that this home has in common with its database; None where it has none."""
        try:
            return (self.home / IDENTITY).read_text(encoding="ascii", errors="replace").strip() or None
        except FileNotFoundError:
            return None

    def identify(self, name: str) -> None:
        with write_atomically(self.home / IDENTITY) as file:
            file.write(f"{name}\n".encode())

    def probe_work(self, *, spare: int = 0) -> None:
        """Raise OSError unless a worker can write its files; a disk with less than `spare` bytes free counts as full.

        On a small disk a twentieth of it is enough.
        """
        self._experiments.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._experiments) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())  # a server of files may say only now that it has no room
        room = shutil.disk_usage(self._experiments)
        if room.free < min(spare, room.total // 20):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @staticmethod
    def checked(identifier: str) -> str:
        """The identifier itself; anything else is refused before it becomes part of a path."""
        if not is_id(identifier):
            raise ValueError(f"{identifier!r} is no identifier of ours")
        return identifier

    def experiment(self, identifier: str) -> Path:
        return self._experiments / self.checked(identifier)

    def stored_experiments(self) -> set[str]:
        return {path.name for path in self._experiments.glob("*") if is_id(path.name)}

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
