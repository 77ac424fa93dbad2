"""Files of landscapes while they are received: a folder of their own, limited in number and size."""

from __future__ import annotations

import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from valleyscope.app.storage.safetensors_check import BadUpload, TooLarge

MOST_FILES: Final = 32
_LONGEST_NAME = 200  # in bytes; most file systems allow 255


class LandscapeUpload:
    """Receives files under their own names, made harmless; `discard` removes all of them."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.path = folder / f"{secrets.token_hex(8)}.part"
        self.files: list[Path] = []
        self._limit = limit
        self._size = 0
        self._current: IO[bytes] | None = None
        self._files = self.path / "files"
        self._files.mkdir(parents=True)

    def begin_file(self, name: str) -> None:
        if len(self.files) >= MOST_FILES:
            raise BadUpload(f"there are more than {MOST_FILES} files: send fewer at once")
        self.close()
        place = self._files / file_name(name)
        if place.exists():  # in a folder of its own it keeps its name
            place = self.path / str(len(self.files)) / place.name
            place.parent.mkdir()
        self._current = place.open("xb")
        self.files.append(place)

    def write(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise TooLarge(f"the files have more than {self._limit} bytes, the limit of this server")
        assert self._current is not None
        self._current.write(data)

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None

    def discard(self) -> None:
        with suppress(OSError):  # a full disk refuses the last bytes
            self.close()
        shutil.rmtree(self.path, ignore_errors=True)


def file_name(given: str) -> str:
    """The last part of a name from a client, without what could lead elsewhere or confuse a reader.

    >>> file_name("../../run/plane.npz"), file_name("C:\\\\run\\\\.h5"), file_name("")
    ('plane.npz', 'h5', 'landscape')
    """
    last = re.split(r"[/\\]", given)[-1]
    printable = "".join(character for character in last if character.isprintable() and character != "\ufffd")
    return printable.encode()[-_LONGEST_NAME:].decode(errors="ignore").strip(" .") or "landscape"
