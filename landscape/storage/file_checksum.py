"""A seal at the end of a file: the sha256 of all bytes before it.

On a file with a few wrong bits the HDF5 library may not only fail but end the process, so our files are looked at
before it sees them. It ignores what follows the end of its own data, and cuts it off when it changes a file: an edited
file has no seal.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import IO, Final

_SEAL: Final = re.compile(rb"\nvalleyscope sha256 ([0-9a-f]{64})\n")
_LENGTH: Final = 85
_CHUNK: Final = 2**20


def checksum_trailer(content: bytes) -> bytes:
    """What to write after the content of a file.

    >>> len(seal(b"content")) == _LENGTH
    True
    """
    return b"\nvalleyscope sha256 %b\n" % hashlib.sha256(content).hexdigest().encode()


def is_corrupt(file: IO[bytes]) -> bool:
    """Whether a file that is open for reading has a seal which is not that of the bytes before it."""
    size = file.seek(0, os.SEEK_END) - _LENGTH
    if size < 0:
        return False
    file.seek(size)
    found = _SEAL.fullmatch(file.read(_LENGTH))
    if found is None:
        return False
    file.seek(0)
    hasher = hashlib.sha256()
    while size > 0 and (content := file.read(min(_CHUNK, size))):
        hasher.update(content)
        size -= len(content)
    return hasher.hexdigest().encode() != found[1]
