"""Cache of opened landscapes and of response bodies made from them, for the API."""

from __future__ import annotations

import gzip
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.landscape.storage.landscape_file import Landscape

_MAX_LANDSCAPES = 8
_MAX_BODY_BYTES = 64 * 2**20
_GZIP_LEVEL = 4


@dataclass(frozen=True)
class Snapshot:
    """One state of landscape.h5; each state has another `tag`."""

    tag: str
    landscape: Landscape


@dataclass
class Body:
    """The bytes of a response, compressed at most once."""

    plain: bytes

    @cached_property
    def zipped(self) -> bytes:
        return gzip.compress(self.plain, _GZIP_LEVEL, mtime=0)

    @property
    def size(self) -> int:
        return len(self.plain) + len(vars(self).get("zipped", b""))


class LandscapeCache:
    """Keeps the landscapes read last, and the response bodies made from them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._landscape = lru_cache(_MAX_LANDSCAPES)(_open_landscape)
        self._bodies: OrderedDict[tuple[str, ...], Body] = OrderedDict()

    @staticmethod
    def tag(directory: Path) -> str | None:
        """The tag of the current snapshot; None before the first one."""
        try:
            found = (directory / LANDSCAPE).stat()
        except FileNotFoundError:
            return None
        return f"{found.st_mtime_ns:x}-{found.st_ino:x}-{found.st_size:x}"

    def open(self, directory: Path) -> Snapshot | None:
        """The current snapshot; raises what Landscape.open raises."""
        tag = self.tag(directory)
        # If the writer replaces the file between the two calls, the content is newer than its tag. That is harmless:
        # the old tag never matches the current file again.
        try:
            return None if tag is None else Snapshot(tag, self._landscape(directory / LANDSCAPE, tag))
        except FileNotFoundError:
            return None

    def body(self, key: tuple[str, ...], make: Callable[[], bytes]) -> Body:
        """The bytes of a response made from a snapshot; `key` includes the snapshot's tag."""
        with self._lock:
            known = self._bodies.get(key)
            if known is not None:
                self._bodies.move_to_end(key)
                return known
        body = Body(make())
        with self._lock:
            self._bodies[key] = body
            total = sum(kept.size for kept in self._bodies.values())
            while total > _MAX_BODY_BYTES and len(self._bodies) > 1:
                total -= self._bodies.popitem(last=False)[1].size
        return body


def _open_landscape(path: Path, tag: str) -> Landscape:  # noqa: ARG001  (the tag is a part of the key of the cache)
    return Landscape.open(path)
