"""Landscapes of experiments as the API reads them: opened once a snapshot, shared by all who ask, never locked."""

from __future__ import annotations

import gzip
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.landscape.storage.landscape_file import Landscape

_KEPT = 8
_KEPT_BYTES = 64 * 2**20
_COMPRESSION = 4


@dataclass(frozen=True)
class Snapshot:
    """One state of landscape.h5; `tag` is another one for every other state."""

    tag: str
    landscape: Landscape


@dataclass
class Body:
    """The bytes of an answer, compressed at most once."""

    plain: bytes
    _zipped: bytes | None = field(default=None, repr=False)

    @property
    def zipped(self) -> bytes:
        if self._zipped is None:
            self._zipped = gzip.compress(self.plain, _COMPRESSION, mtime=0)
        return self._zipped

    @property
    def size(self) -> int:
        return len(self.plain) + len(self._zipped or b"")


class LandscapeCache:
    """Keeps the landscapes that were read last, and the answers that were made from them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: OrderedDict[Path, Snapshot] = OrderedDict()
        self._bodies: OrderedDict[tuple[str, ...], Body] = OrderedDict()

    @staticmethod
    def tag(directory: Path) -> str | None:
        """The tag of the present snapshot; None where there is none yet."""
        try:
            found = (directory / LANDSCAPE).stat()
        except FileNotFoundError:
            return None
        return _tag(found)

    def open(self, directory: Path) -> Snapshot | None:
        """The present snapshot; raises what Landscape.open raises."""
        tag = self.tag(directory)
        with self._lock:
            known = self._opened.get(directory)
            if known is not None and known.tag == tag:
                self._opened.move_to_end(directory)
                return known
        if tag is None:
            return None
        # Where the writer replaces the file between the two calls, what is read is newer than its tag. That is
        # harmless: the tag is never again that of the present file, so nobody is told that this is still new.
        try:
            return self._keep(directory, Snapshot(tag, Landscape.open(directory / LANDSCAPE)))
        except FileNotFoundError:
            return None

    def body(self, key: tuple[str, ...], make: Callable[[], bytes]) -> Body:
        """The bytes of an answer that depends on a snapshot; `key` has the snapshot's tag in it."""
        with self._lock:
            known = self._bodies.get(key)
            if known is not None:
                self._bodies.move_to_end(key)
                return known
        body = Body(make())
        with self._lock:
            self._bodies[key] = body
            total = sum(kept.size for kept in self._bodies.values())
            while total > _KEPT_BYTES and len(self._bodies) > 1:
                total -= self._bodies.popitem(last=False)[1].size
        return body

    def _keep(self, directory: Path, snapshot: Snapshot) -> Snapshot:
        with self._lock:
            self._opened[directory] = snapshot
            self._opened.move_to_end(directory)
            while len(self._opened) > _KEPT:
                self._opened.popitem(last=False)
        return snapshot


def _tag(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns:x}-{found.st_ino:x}-{found.st_size:x}"
