"""A map of the minima, as ``landscape.h5`` has it for other programs.

It follows from the lines, so Valleyscope itself computes it from these (see ``analysis.minima_map``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import h5py
import numpy as np

from valleyscope.landscape.storage import _hdf5
from valleyscope.landscape.storage.records import Floats, checked_name

MAP: Final = "map"
KINDS: Final = ("distance", "barrier")


@dataclass(frozen=True, eq=False)
class Scaled:
    """Coordinates (n, 2), and the share of the dissimilarities' variance that two dimensions show."""

    coordinates: Floats
    shown: float


@dataclass(frozen=True, eq=False)
class MinimaMap:
    """Minima in the order of the landscape; ``order`` has them by clusters of barriers.

    ``scaled`` has their places by distance in weight space and by barrier, ``distances`` is a square.
    """

    minima: tuple[str, ...]
    order: tuple[str, ...]
    distances: Floats
    scaled: dict[str, Scaled]

    def to_json(self) -> dict[str, Any]:
        maps = {
            kind: {
                "x": found.coordinates[:, 0].tolist(),
                "y": found.coordinates[:, 1].tolist(),
                "shown": found.shown,
            }
            for kind, found in self.scaled.items()
        }
        return {"minima": list(self.minima), "order": list(self.order), "distances": self.distances.tolist(), **maps}


def write_map(file: h5py.File, found: MinimaMap) -> None:
    group = file.create_group(MAP, track_order=True)
    for member, names in (("names", found.minima), ("clusters", found.order)):
        group.create_dataset(member, data=list(names), shape=(len(names),), dtype=h5py.string_dtype())
    group["distances"] = found.distances
    for kind, scaled in found.scaled.items():
        group[kind] = scaled.coordinates
        group[kind].attrs["shown"] = scaled.shown


def read_map(file: h5py.File) -> MinimaMap | None:
    """The map of a file; None in files of earlier versions, and where a line was missing."""
    if not _hdf5.has(file, MAP):
        return None
    group = _hdf5.subgroup(file, MAP)
    return MinimaMap(
        tuple(_hdf5.texts(group, "names")),
        tuple(_hdf5.texts(group, "clusters")),
        _hdf5.floats(group, "distances"),
        {kind: Scaled(_hdf5.floats(group, kind), _hdf5.number_attribute(group[kind], "shown")) for kind in KINDS},
    )


def check_map(found: MinimaMap) -> None:
    """Raise a ValueError that names the first invalid member."""
    count = len(found.minima)
    for name in found.minima:
        checked_name(name, f"{MAP}/names: a minimum")
    if sorted(found.order) != sorted(found.minima):
        raise ValueError(f"{MAP}/clusters: has {', '.join(found.order)}; give each of the names once")
    squares = {"distances": (found.distances, (count, count))}
    squares |= {kind: (found.scaled[kind].coordinates, (count, 2)) for kind in KINDS}
    for member, (values, shape) in squares.items():
        if np.shape(values) != shape:
            raise ValueError(f"{MAP}/{member}: is of shape {np.shape(values)}; give an array of shape {shape}")
