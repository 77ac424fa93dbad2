"""Which state of each local file equals which object of the store.

The index is a file in the folder that it describes. If it is lost, files are transferred once more.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from valleyscope.landscape.storage.atomic_write import write_atomically

_FILE: Final = ".store.json"
_LOCK: Final = ".store.lock"


class SyncedFile(NamedTuple):
    """One state of a local file, and the tag of the equal object."""

    size: int
    time: int
    inode: int
    tag: str

    @classmethod
    def of(cls, state: os.stat_result, tag: str) -> SyncedFile:
        return cls(state.st_size, state.st_mtime_ns, state.st_ino, tag)

    def matches(self, state: os.stat_result) -> bool:
        """Whether the local file is unchanged."""
        return (self.size, self.time, self.inode) == (state.st_size, state.st_mtime_ns, state.st_ino)


class SyncIndex:
    """The index of one folder, shared by the processes that use the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> dict[str, SyncedFile]:
        try:
            content = json.loads((self._folder / _FILE).read_text(encoding="utf-8"))
            return {name: SyncedFile(*values) for name, values in content.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def update(self, changes: Mapping[str, SyncedFile | None]) -> None:
        """Record synced files; None for files that were removed on both sides."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / _LOCK).open("w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            changed = self.read() | dict(changes)
            entries = {name: entry for name, entry in changed.items() if entry is not None}
            with write_atomically(self._folder / _FILE) as file:
                file.write(json.dumps(entries).encode())
