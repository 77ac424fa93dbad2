"""The home folder of a service: one folder per experiment, one file per uploaded checkpoint, named by their ids."""

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
    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self) -> None:
        """Create the folders, and finish interrupted deletions."""
        for folder in (self._experiments, self._checkpoints, self._trash):
            folder.mkdir(parents=True, exist_ok=True)
        for leftover in self._trash.iterdir():
            shutil.rmtree(leftover, ignore_errors=True)

    def probe(self) -> None:
        """Raise OSError unless files can be written."""
        with tempfile.TemporaryFile(dir=self.path) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()

    def identity(self) -> str | None:
        """The identity that this home shares with its database; None before it has one."""
        try:
            return (self.path / IDENTITY).read_text(encoding="ascii", errors="replace").strip() or None
        except FileNotFoundError:
            return None

    def write_identity(self, identity: str) -> None:
        with write_atomically(self.path / IDENTITY) as file:
            file.write(f"{identity}\n".encode())

    def probe_work(self, *, spare: int = 0) -> None:
        """Raise OSError unless a worker can write its files.

        A disk with less than `spare` bytes free counts as full; on a small disk a twentieth of it is enough.
        """
        self._experiments.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._experiments) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())  # a network file system may report a full disk only now
        usage = shutil.disk_usage(self._experiments)
        if usage.free < min(spare, usage.total // 20):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @staticmethod
    def checked(identifier: str) -> str:
        """The id itself; raises ValueError for anything else, before it becomes part of a path."""
        if not is_id(identifier):
            raise ValueError(f"{identifier!r} is not a valid id")
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
        """Move an experiment's folder to the trash, then delete it."""
        self._trash.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it never existed, or another process removes it
            shutil.rmtree(self.experiment(identifier).rename(self._trash / f"{identifier}-{secrets.token_hex(4)}"))

    @property
    def _experiments(self) -> Path:
        return self.path / "experiments"

    @property
    def _checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def _trash(self) -> Path:
        return self.path / "trash"
