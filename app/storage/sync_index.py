"""What a local folder and the store agree on: for each file, which state of it is which object.

It is kept in the folder, so that it goes with the files that it is about. Where it is lost, files travel once more.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from valleyscope.landscape.storage.atomic_write import write_atomically

_FILE: Final = ".store.json"
_LOCK: Final = ".store.lock"


@dataclass(frozen=True)
class SyncedFile:
    """One state of a local file, and the tag of the object that is the same."""

    size: int
    time: int
    inode: int
    tag: str

    @classmethod
    def of(cls, state: os.stat_result, tag: str) -> SyncedFile:
        return cls(state.st_size, state.st_mtime_ns, state.st_ino, tag)

    def is_of(self, state: os.stat_result) -> bool:
        """Whether a local file is still as it was."""
        return (self.size, self.time, self.inode) == (state.st_size, state.st_mtime_ns, state.st_ino)


class SyncIndex:
    """All files of one folder. Processes that share the folder share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> dict[str, SyncedFile]:
        try:
            content = json.loads((self._folder / _FILE).read_text(encoding="utf-8"))
            return {name: SyncedFile(*values) for name, values in content.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def change(self, changes: Mapping[str, SyncedFile | None]) -> None:
        """Enter what is agreed now; None for files that both sides no longer have."""
        if not changes:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / _LOCK).open("w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self.read() | dict(changes)
            kept = {
                name: [entry.size, entry.time, entry.inode, entry.tag]
                for name, entry in known.items()
                if entry is not None
            }
            with write_atomically(self._folder / _FILE) as file:
                file.write(json.dumps(kept).encode())
