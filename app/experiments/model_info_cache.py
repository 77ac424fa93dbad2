"""An album of model_info_cache on the disk: a network that was drawn once is known for good, also after a restart.

It only saves time. An entry that is damaged, of another version of the program or cannot be written is drawn again.
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

from valleyscope.app.experiments.spec import Model
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.training.sources import SOURCES

log = logging.getLogger(__name__)

FOLDER: Final = "model_info_cache"
_MOST = 256
_DRAWING = Path(__file__).with_name("model_inspector.py")
_TRAINING = Path(__file__).parents[2] / "training"


class DiskCache:
    """A folder with one small file a network; the digest of its content is its first line."""

    def __init__(self, folder: Path, *, most: int = _MOST) -> None:
        self._folder = folder
        self._most = most

    def find(self, model: Model, dataset: str) -> dict[str, Any] | None:
        """What was drawn, if it is here and whole."""
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
            os.utime(path)  # the one that was used longest ago goes first
        found: dict[str, Any] = json.loads(text)
        return found

    def add(self, model: Model, dataset: str, drawn: dict[str, Any]) -> None:
        """Keep what was drawn, where it depends on nothing that an operator may change."""
        path = self._path(model, dataset)
        if path is None:
            return
        text = json.dumps(drawn).encode()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with write_atomically(path) as file:
                file.write(_digest(text).encode() + b"\n" + text)
            self._make_room()
        except OSError as error:
            log.info("a model_info is not kept: %s", error)

    def _make_room(self) -> None:
        entries = sorted(self._folder.glob("*.model_info"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in entries[self._most :]:
            path.unlink(missing_ok=True)

    def _path(self, model: Model, dataset: str) -> Path | None:
        """The file of a network; None where its code or its data are somebody's own and may be others tomorrow."""
        if ":" in model.name or dataset not in SOURCES:
            return None
        source = SOURCES[dataset]
        key = json.dumps([_edition(), model.model_dump(), source.shape, source.classes], sort_keys=True, default=str)
        return self._folder / f"{_digest(key.encode())}.model_info"


@cache
def _edition() -> str:
    """Another one whenever drawings may be others. While the program is being changed its version stays the same."""
    parts = [version("valleyscope").encode(), version("torch").encode()]
    parts += [path.read_bytes() for path in (_DRAWING, *sorted(_TRAINING.rglob("*.py")))]
    return _digest(b"\0".join(parts))


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
