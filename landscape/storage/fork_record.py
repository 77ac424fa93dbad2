"""Forks of a run as a plain table of ``landscape.h5``: one row a fork, with its line to the trunk.

The group is there for other programs. Its numbers follow from the lines and minima, so Valleyscope itself computes them
from these (see ``analysis.fork_curves``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import h5py
import numpy as np

from valleyscope.landscape.storage import _hdf5
from valleyscope.landscape.storage.records import Floats, checked_name

FORKS: Final = "forks"
_TEXTS: Final = ("name", "trunk", "kind")
COLUMNS: Final = (
    "epoch",
    "barrier",
    "barrier_low",
    "barrier_high",
    "rise",
    "rise_low",
    "rise_high",
    "train_loss",
    "test_accuracy",
    "zero_groups",
)


@dataclass(frozen=True, eq=False)
class ForkRecord:
    """``texts`` has name, trunk and kind of every fork, ``columns`` its epoch and numbers; NaN where one is unknown."""

    split: str
    texts: dict[str, list[str]]
    columns: dict[str, Floats]


def write_forks(file: h5py.File, forks: ForkRecord) -> None:
    group = file.create_group(FORKS, track_order=True)
    group.attrs.update({"split": forks.split, "unit": "nats"})
    for name in _TEXTS:
        values = forks.texts[name]
        group.create_dataset(name, data=values, shape=(len(values),), dtype=h5py.string_dtype())
    for name in COLUMNS:
        group[name] = forks.columns[name]


def read_forks(file: h5py.File) -> ForkRecord | None:
    """The forks of a file; None in files without any."""
    if not _hdf5.has(file, FORKS):
        return None
    group = _hdf5.subgroup(file, FORKS)
    return ForkRecord(
        _hdf5.text_attribute(group, "split"),
        {name: _hdf5.texts(group, name) for name in _TEXTS},
        {name: _hdf5.floats(group, name) for name in COLUMNS},
    )


def check_forks(forks: ForkRecord) -> None:
    """Raise a ValueError that names the first invalid member."""
    count = len(forks.texts.get("name", ()))
    for name in (*forks.texts.get("name", ()), *forks.texts.get("trunk", ())):
        checked_name(name, f"{FORKS}: a minimum")
    for name in _TEXTS:
        if len(forks.texts.get(name, ())) != count:
            raise ValueError(f"{FORKS}/{name}: has {len(forks.texts.get(name, ()))} values; give one for each fork")
    for name in COLUMNS:
        values = forks.columns.get(name)
        if not isinstance(values, np.ndarray) or values.shape != (count,):
            raise ValueError(f"{FORKS}/{name}: give an array of shape ({count},), one value for each fork")
