"""Model info on disk, so a network is inspected once, also across restarts.

The cache only saves time: an entry that is damaged, made by another version or cannot be written is made again.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from valleyscope.app.experiments.spec_parts import Model
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.training.dataset_sources import SOURCES

log = logging.getLogger(__name__)

FOLDER: Final = "model_info_cache"
_MAX_ENTRIES = 256
_INSPECTOR = Path(__file__).with_name("model_inspector.py")
_TRAINING = Path(__file__).parents[2] / "training"


class DiskCache:
    """A folder with one small file per network; the first line is the digest of the rest."""

    def __init__(self, folder: Path, *, max_entries: int = _MAX_ENTRIES) -> None:
        self._folder = folder
        self._max_entries = max_entries

    def get(self, model: Model, dataset: str) -> dict[str, Any] | None:
        path = self._path(model, dataset)
        if path is None:
            return None
        try:
            digest, _, text = path.read_bytes().partition(b"\n")
        except OSError:
            return None
        if digest.decode("ascii", "replace") != _digest(text):
            return None
        with suppress(OSError):
            os.utime(path)  # the least recently used entry is removed first
        found: dict[str, Any] = json.loads(text)
        return found

    def put(self, model: Model, dataset: str, values: dict[str, Any]) -> None:
        """Store model info, unless it depends on code or data that an operator may change."""
        path = self._path(model, dataset)
        if path is None:
            return
        text = json.dumps(values).encode()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with write_atomically(path) as file:
                file.write(_digest(text).encode() + b"\n" + text)
            self._evict()
        except OSError as error:
            log.info("model info was not stored: %s", error)

    def _evict(self) -> None:
        entries = sorted(self._folder.glob("*.model_info"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in entries[self._max_entries :]:
            path.unlink(missing_ok=True)

    def _path(self, model: Model, dataset: str) -> Path | None:
        """The file of a network; None for custom code or data, which may change."""
        if ":" in model.name or dataset not in SOURCES:
            return None
        source = SOURCES[dataset]
        key = json.dumps(
            [_code_digest(), model.model_dump(), source.shape, source.classes], sort_keys=True, default=str
        )
        return self._folder / f"{_digest(key.encode())}.model_info"


@cache
def _code_digest() -> str:
    """Changes whenever model info may change. During development the version alone does not."""
    parts = [version("valleyscope").encode(), version("torch").encode()]
    parts += [path.read_bytes() for path in (_INSPECTOR, *sorted(_TRAINING.rglob("*.py")))]
    return _digest(b"\0".join(parts))


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
