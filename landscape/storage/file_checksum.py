"""A checksum at the end of a file: the sha256 of all bytes before it.

The HDF5 library may crash the process on a file with a few wrong bits, so the checksum is verified first. HDF5 ignores
bytes after its own data, and removes them when it changes a file: an edited file has no checksum.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import IO, Final

_TRAILER: Final = re.compile(rb"\nvalleyscope sha256 ([0-9a-f]{64})\n")
_LENGTH: Final = 85
_CHUNK: Final = 2**20


def checksum_trailer(content: bytes) -> bytes:
    """The bytes to write after the content of a file.

    >>> len(checksum_trailer(b"content")) == _LENGTH
    True
    """
    return b"\nvalleyscope sha256 %b\n" % hashlib.sha256(content).hexdigest().encode()


def is_corrupt(file: IO[bytes]) -> bool:
    """Whether an open file has a checksum that does not match the bytes before it."""
    size = file.seek(0, os.SEEK_END) - _LENGTH
    if size < 0:
        return False
    file.seek(size)
    found = _TRAILER.fullmatch(file.read(_LENGTH))
    if found is None:
        return False
    file.seek(0)
    hasher = hashlib.sha256()
    while size > 0 and (content := file.read(min(_CHUNK, size))):
        hasher.update(content)
        size -= len(content)
    return hasher.hexdigest().encode() != found[1]
