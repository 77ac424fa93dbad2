"""Sets of networks in ``landscape.h5``: scores of the members, of their mean weights and of their mean prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import h5py

from valleyscope.landscape.storage import _hdf5
from valleyscope.landscape.storage.records import PathValues, checked_name

ENSEMBLES: Final = "ensembles"
TOGETHER: Final = ("average", "ensemble")
"""What stands after the members: the network of their mean weights, and their mean prediction."""


@dataclass(eq=False)
class EnsembleRecord:
    """Loss and error of each split as columns: one value a member, then that of the average, then of the ensemble."""

    name: str
    members: tuple[str, ...]
    splits: dict[str, PathValues]

    def score(self, row: int) -> dict[str, dict[str, float | None]]:
        """Loss and error by split of one row; the last two rows are the average and the ensemble."""
        return {
            split: {
                "loss": _number(float(values.loss[row])),
                "error": _number(float(values.error[row])),
            }
            for split, values in self.splits.items()
        }

    def to_json(self) -> dict[str, Any]:
        members = [{"name": name, "scores": self.score(row)} for row, name in enumerate(self.members)]
        return {"name": self.name, "members": members, "average": self.score(-2), "ensemble": self.score(-1)}


def write_ensembles(file: h5py.File, ensembles: dict[str, EnsembleRecord]) -> None:
    """Write all of them; a file without any has no group."""
    if not ensembles:
        return
    parent = file.create_group(ENSEMBLES, track_order=True)
    for name, record in ensembles.items():
        group = parent.create_group(name, track_order=True)
        rows = [*record.members, *TOGETHER]
        group.create_dataset("row", data=rows, shape=(len(rows),), dtype=h5py.string_dtype())
        group.attrs.create("splits", list(record.splits), shape=(len(record.splits),), dtype=h5py.string_dtype())
        for split, values in record.splits.items():
            columns = group.create_group(split)
            columns["loss"], columns["error"] = values.loss, values.error


def read_ensembles(file: h5py.File) -> dict[str, EnsembleRecord]:
    if not _hdf5.has(file, ENSEMBLES):
        return {}
    parent = _hdf5.subgroup(file, ENSEMBLES)
    return {name: _read(_hdf5.subgroup(parent, name), name) for name in _hdf5.names(parent)}


def _read(group: h5py.Group, name: str) -> EnsembleRecord:
    columns = {split: _hdf5.subgroup(group, split) for split in _hdf5.texts_attribute(group, "splits")}
    splits = {split: PathValues(_hdf5.floats(of, "loss"), _hdf5.floats(of, "error")) for split, of in columns.items()}
    return EnsembleRecord(name, tuple(_hdf5.texts(group, "row")[: -len(TOGETHER)]), splits)


def check_ensembles(ensembles: dict[str, EnsembleRecord]) -> None:
    """Raise a ValueError that names the first invalid member."""
    for key, record in ensembles.items():
        member = f"{ENSEMBLES}/{checked_name(key, f'{ENSEMBLES}: a member')}"
        if record.name != key:
            raise ValueError(f"{member}: has the name {record.name!r}; key and name must be equal")
        shape = (len(record.members) + len(TOGETHER),)
        for split, values in record.splits.items():
            for quantity in ("loss", "error"):
                if values[quantity].shape != shape:
                    raise ValueError(
                        f"{member}/{split}/{quantity}: has shape {values[quantity].shape}, not {shape}: "
                        "one value for each network, for the average and for the ensemble"
                    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
