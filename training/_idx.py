"""Read idx files, the format of MNIST and Fashion-MNIST."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from valleyscope.training.dataset_sources import REMEDY, CorruptData, Source

_UNSIGNED_BYTE = 8


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return the array of unsigned bytes in an idx file, plain or gzipped (`.gz`).

    The format: two zero bytes, one that gives the type, one that gives the number of dimensions, each dimension as a
    big-endian 32-bit integer, then the elements, the last index running fastest.
    """
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise CorruptData(f"{path} is not a complete gzip file ({error}): {REMEDY}") from error
    if len(content) < 4 or content[:2] != b"\0\0":
        raise CorruptData(f"{path} does not start like an idx file (first bytes {content[:4]!r}): {REMEDY}")
    kind, dimensions = content[2], content[3]
    if kind != _UNSIGNED_BYTE:
        raise CorruptData(f"{path} holds elements of idx type {kind:#04x}, must be unsigned bytes (0x08): {REMEDY}")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise CorruptData(f"{path} ends within its header of {start} bytes: {REMEDY}")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", dimensions, 4))
    if len(content) != start + math.prod(shape):
        raise CorruptData(
            f"{path} has {len(content)} bytes, but its header says {'x'.join(map(str, shape))} elements, "
            f"{start + math.prod(shape)} bytes in all: {REMEDY}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_mnist(source: Source, root: Path) -> tuple[npt.NDArray[np.uint8], ...]:
    """Return x_train (N, H, W), y_train (N,), x_test and y_test of a data set in the layout of MNIST."""
    arrays = []
    for name, dimensions in zip(source.files, (3, 1, 3, 1), strict=True):
        path = root / source.folder / name
        if not path.is_file():
            path = path.with_name(f"{name}.gz")
        array = read_idx(path)
        if array.ndim != dimensions:
            raise CorruptData(f"{path} has {array.ndim} dimensions, must have {dimensions}: {REMEDY}")
        arrays.append(array)
    return tuple(arrays)
