"""Read members of untrusted HDF5 files.

Only hard links to numbers or text stored in the file itself are read, up to ``LARGEST`` values. Soft links, external
links and external storage are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

from valleyscope.landscape.storage.file_checksum import is_corrupt
from valleyscope.landscape.storage.records import Floats

LARGEST: Final = 2**24


class InvalidContent(ValueError):
    """A member of a file is invalid; the message starts with its name."""


def open_file(path: str | os.PathLike[str]) -> h5py.File:
    """Open a file for reading; raises InvalidContent if it is missing, not HDF5, truncated or has a wrong checksum."""
    try:
        with Path(path).open("rb") as file:
            signature = file.read(8)
            corrupt = is_corrupt(file)
    except OSError as error:
        raise InvalidContent(f"cannot be read ({error.strerror})") from None
    if signature != b"\x89HDF\r\n\x1a\n":
        raise InvalidContent("is not an HDF5 file" if signature else "is empty, not an HDF5 file")
    if corrupt:
        raise InvalidContent("was damaged after it was written: the sha256 of its bytes is not the one at its end")
    try:
        # A snapshot never changes, so it needs no lock; its writer may hold one for a moment after the rename.
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        message = str(error)
        if "truncated" in message:
            raise InvalidContent("is truncated: its end is missing") from None
        if "lock" in message or "already open" in message:
            raise InvalidContent("is being written by another program, or was not closed by it") from None
        raise InvalidContent(f"is a damaged HDF5 file ({message})") from None


def names(group: h5py.Group) -> list[str]:
    with _wrap_errors(group):
        return [str(name) for name in group]


def has_attribute(group: h5py.Group, name: str) -> bool:
    with _wrap_errors(group):
        return name in group.attrs


def has(group: h5py.Group, name: str) -> bool:
    with _wrap_errors(group):
        return name in group


def subgroup(group: h5py.Group, name: str) -> h5py.Group:
    member = _member(group, name)
    if not isinstance(member, h5py.Group):
        raise InvalidContent(f"{_address(group, name)}: is not a group")
    return member


def floats(group: h5py.Group, name: str) -> Floats:
    """A numeric dataset as float64."""
    return np.asarray(_numbers(group, name), dtype=np.float64)


def number(group: h5py.Group, name: str) -> float:
    values = floats(group, name)
    if values.shape:
        raise InvalidContent(f"{_address(group, name)}: has shape {values.shape}, not one number")
    return float(values)


def integers(group: h5py.Group, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    values = _numbers(group, name)
    if values.dtype.kind not in "iub":
        raise InvalidContent(f"{_address(group, name)}: is {values.dtype}, not whole numbers")
    return np.asarray(values, dtype=np.int64)


def texts(group: h5py.Group, name: str) -> list[str]:
    """A dataset of strings, also a single one, also as Python 2 wrote them."""
    dataset = _dataset(group, name)
    with _wrap_errors(group, name):
        if h5py.check_string_dtype(dataset.dtype) is None:
            raise InvalidContent(f"{_address(group, name)}: is {dataset.dtype}, not text")
        return [_text(value) for value in np.atleast_1d(dataset[()])]


def attribute(group: h5py.Group, name: str) -> Any:
    if not has_attribute(group, name):
        raise InvalidContent(f"{_address(group)}: attribute {name!r} is missing")
    try:
        return group.attrs[name]
    except Exception as error:  # see _wrap_errors
        raise InvalidContent(f"{_address(group)}: attribute {name!r} cannot be read ({error})") from None


def text_attribute(group: h5py.Group, name: str) -> str:
    value = attribute(group, name)
    if not isinstance(value, str | bytes):
        raise InvalidContent(f"{_address(group)}: attribute {name!r} is {type(value).__name__}, not text")
    return _text(value)


def number_attribute(group: h5py.Group, name: str) -> float:
    value = attribute(group, name)
    if not isinstance(value, np.number | int | float):
        raise InvalidContent(f"{_address(group)}: attribute {name!r} is {type(value).__name__}, not a number")
    return float(value)


@contextmanager
def _wrap_errors(group: h5py.Group, name: str = "") -> Iterator[None]:
    """Turn every error into InvalidContent: on a damaged file h5py may raise anything."""
    try:
        yield
    except InvalidContent:
        raise
    except Exception as error:
        raise InvalidContent(f"{_address(group, name)}: cannot be read ({error})") from None


def _numbers(group: h5py.Group, name: str) -> np.ndarray[Any, Any]:
    dataset = _dataset(group, name)
    with _wrap_errors(group, name):
        if dataset.dtype.kind not in "fiub":
            raise InvalidContent(f"{_address(group, name)}: is {dataset.dtype}, not numbers")
        return np.asarray(dataset[()])


def _dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    member = _member(group, name)
    if not isinstance(member, h5py.Dataset):
        raise InvalidContent(f"{_address(group, name)}: is not a dataset")
    with _wrap_errors(group, name):
        if member.shape is None:
            raise InvalidContent(f"{_address(group, name)}: is empty")
        if member.size > LARGEST:
            raise InvalidContent(f"{_address(group, name)}: has {member.size} values; at most {LARGEST} are read")
        if member.external or member.is_virtual:
            raise InvalidContent(f"{_address(group, name)}: stores its values in another file, which is not read")
    return member


def _member(group: h5py.Group, name: str) -> Any:
    with _wrap_errors(group, name):
        link = group.get(name, getlink=True)
        if link is None:
            raise InvalidContent(f"{_address(group, name)}: is missing")
        if not isinstance(link, h5py.HardLink):
            raise InvalidContent(f"{_address(group, name)}: is a soft or external link, which is not followed")
        return group[name]


def texts_attribute(group: h5py.Group, name: str) -> list[str]:
    value = attribute(group, name)
    return [] if isinstance(value, h5py.Empty) else [_text(entry) for entry in np.atleast_1d(value)]


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def _address(group: h5py.Group, name: str = "") -> str:
    return f"{(group.name or '').rstrip('/')}/{name}".strip("/") or "file"
