"""Read arrays of an untrusted ``.npz`` file: numbers only, limited in size, no pickles."""

from __future__ import annotations

import math
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from valleyscope.landscape.storage._hdf5 import LARGEST, InvalidContent
from valleyscope.landscape.storage.records import Floats

MOST_ARRAYS: Final = 256


def read_arrays(path: Path) -> dict[str, Floats]:
    """All numeric arrays of the file as float64; others (text, objects) are left out."""
    try:
        with zipfile.ZipFile(path) as file:
            members = [info for info in file.infolist() if info.filename.endswith(".npy")]
            if len(members) > MOST_ARRAYS:
                raise InvalidContent(f"has {len(members)} arrays; at most {MOST_ARRAYS} are read")
            arrays = {}
            for info in members:
                with file.open(info) as member:
                    values = _read_array(member, info.filename)
                if values is not None:
                    arrays[info.filename.removesuffix(".npy")] = values
            return arrays
    except InvalidContent:
        raise
    except Exception as error:  # zipfile and decompressors may raise anything
        raise InvalidContent(f"is a damaged .npz file ({error})") from None


def _read_array(member: IO[bytes], name: str) -> Floats | None:
    try:
        shape, fortran, dtype = _header(member)
    except Exception as error:  # numpy evaluates the header, which may raise anything
        raise InvalidContent(f"{name}: is not a numpy array ({error})") from None
    if dtype.kind not in "fiub":
        return None
    count = math.prod(shape)
    if any(length < 0 for length in shape):
        raise InvalidContent(f"{name}: has the negative shape {shape}")
    if count > LARGEST:
        raise InvalidContent(f"{name}: has {count} values; at most {LARGEST} are read")
    content = member.read(count * dtype.itemsize)
    if len(content) < count * dtype.itemsize:
        raise InvalidContent(f"{name}: is truncated: {len(content)} of {count * dtype.itemsize} bytes are there")
    values = np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    return values.astype(np.float64)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    with warnings.catch_warnings():
        # Python 2 wrote numbers as 21L; numpy reads them with a warning.
        warnings.simplefilter("ignore", UserWarning)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(member)
        if version == (2, 0):
            return np.lib.format.read_array_header_2_0(member)
    raise ValueError(f"its format version is {version[0]}.{version[1]}")
