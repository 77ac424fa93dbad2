"""Barrier and rise between every two minima, as plain square arrays of ``landscape.h5``.

The group is there for other programs, such as MATLAB. Its numbers follow from the lines and the verdict, so Valleyscope
itself computes them from these (see ``analysis.pair_matrix``), also for files of earlier versions, which lack it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import h5py
import numpy as np

from valleyscope.landscape.storage import _hdf5
from valleyscope.landscape.storage.records import Floats, checked_name

MATRIX: Final = "matrix"
ALIGNED_MATRIX: Final = "matrix_aligned"
ARRAYS: Final = ("barrier", "barrier_low", "barrier_high", "rise", "rise_low", "rise_high")


@dataclass(frozen=True, eq=False)
class MatrixRecord:
    """Squares in the order of ``minima``, in nats: row and column are the ends of a straight line.

    NaN: the diagonal, a line that was not measured, a bound without an interval. ``level`` is that of the intervals.
    """

    minima: tuple[str, ...]
    split: str
    level: float
    arrays: dict[str, Floats]


def write_matrix(file: h5py.File, matrix: MatrixRecord, member: str = MATRIX) -> None:
    group = file.create_group(member, track_order=True)
    group.attrs.update({"split": matrix.split, "level": matrix.level, "unit": "nats"})
    names = list(matrix.minima)
    group.create_dataset("names", data=names, shape=(len(names),), dtype=h5py.string_dtype())
    for name in ARRAYS:
        group[name] = matrix.arrays[name]


def read_matrix(file: h5py.File, member: str = MATRIX) -> MatrixRecord | None:
    """The matrix of a file; None in files of earlier versions."""
    if not _hdf5.has(file, member):
        return None
    group = _hdf5.subgroup(file, member)
    return MatrixRecord(
        tuple(_hdf5.texts(group, "names")),
        _hdf5.text_attribute(group, "split"),
        _hdf5.number_attribute(group, "level"),
        {name: _hdf5.floats(group, name) for name in ARRAYS},
    )


def check_matrix(matrix: MatrixRecord) -> None:
    """Raise a ValueError that names the first invalid member."""
    shape = (len(matrix.minima),) * 2
    for name in matrix.minima:
        checked_name(name, f"{MATRIX}/names: a minimum")
    for name in ARRAYS:
        values = matrix.arrays.get(name)
        if not isinstance(values, np.ndarray) or values.shape != shape:
            found = "missing" if values is None else f"of shape {np.shape(values)}"
            raise ValueError(f"{MATRIX}/{name}: is {found}; give an array of shape {shape}, one row a minimum")
