"""Folders of recorders as a landscape: runs in their common plane, without a surface.

Snapshots are read piece by piece, without torch and without the network: the plane through the last snapshot of the
first run that is closest to all others follows from the inner products of all offsets from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from valleyscope.landscape.geometry.grid_axes import grid_axes
from valleyscope.landscape.storage._hdf5 import InvalidContent
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, MinimumRecord, PlaneRecord

SNAPSHOT: Final = re.compile(r"snapshot-\d{6,}\.safetensors")
PLANE: Final = "trajectories"
_TYPES: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_CHUNK: Final = 2**18
_LARGEST_HEADER: Final = 2**26
_METRICS: Final = ("epoch", "train_loss", "train_accuracy", "test_loss", "test_accuracy")
_RESOLUTION: Final = 21


@dataclass(frozen=True)
class _Snapshot:
    """The tensors of a file by name: type, place and number of their values."""

    path: Path
    tensors: Mapping[str, tuple[str, int, int]]
    about: Mapping[str, str]

    def values(self, name: str, start: int, stop: int) -> Floats:
        kind, place, _ = self.tensors[name]
        dtype = np.dtype(_TYPES[kind])
        raw = np.fromfile(self.path, dtype, stop - start, offset=place + start * dtype.itemsize)
        if kind == "BF16":  # the upper half of a float32
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        return raw.astype(np.float64)


def is_run(path: Path) -> bool:
    """Whether this is a folder of a recorder."""
    return path.is_dir() and any(SNAPSHOT.fullmatch(file.name) for file in path.iterdir())


def snapshot_files(folder: Path) -> list[Path]:
    """The snapshots of a folder, in order."""
    return sorted(file for file in folder.iterdir() if SNAPSHOT.fullmatch(file.name))


def read_runs(runs: Mapping[str, Sequence[Path]]) -> Landscape:
    """The landscape of runs, files of snapshots by name; the origin of its plane is the end of the first run."""
    snapshots = {name: [_read(file) for file in files] for name, files in runs.items()}
    ordered = [snapshot for each in snapshots.values() for snapshot in each]
    if len(ordered) < 3:
        raise InvalidContent(f"there are {len(ordered)} snapshots; the plane of a trajectory needs three or more")
    end = len(next(iter(snapshots.values()))) - 1
    products = _products(ordered, end)
    places, explained = _projection(products)
    whole = np.maximum(np.diag(products), 0.0)
    offsets = np.sqrt(np.maximum(whole - (places**2).sum(axis=1), 0.0))
    offsets[offsets <= 1e-6 * np.sqrt(whole)] = 0.0  # rounding
    cuts = np.cumsum([0, *map(len, snapshots.values())])
    parts = {name: slice(cuts[index], cuts[index + 1]) for index, name in enumerate(snapshots)}
    x, y = grid_axes(_RESOLUTION, [(float(a), float(b)) for a, b in places], distance=None)
    points = {name: (float(places[part.stop - 1, 0]), float(places[part.stop - 1, 1])) for name, part in parts.items()}
    plane = PlaneRecord.empty(
        PLANE,
        "principal",
        x,
        y,
        ("train",),
        points=points,
        distances={name: float(offsets[part.stop - 1]) for name, part in parts.items()},
        paths={f"{TRAJECTORY}{name}": places[part] for name, part in parts.items()},
        offsets={f"{TRAJECTORY}{name}": offsets[part] for name, part in parts.items()},
        defining=(next(iter(runs)),),
        explained=explained,
        note="the losses on this plane were not computed: Trajectories.landscape(surface) in Python has them",
    )
    minima = {name: _minimum(name, each) for name, each in snapshots.items()}
    weights = sum(count for _, _, count in ordered[0].tensors.values())
    provenance: dict[str, Any] = {"fingerprint": None, "source": "recorded runs", "parameters": f"{weights} weights"}
    return Landscape(" and ".join(runs), minima=minima, planes={PLANE: plane}, provenance=provenance)


def _read(path: Path) -> _Snapshot:
    """The header of a safetensors file, checked: nothing outside the file is named."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_LARGEST_HEADER, size - 8):
            raise InvalidContent(f"{path.name} is not a safetensors file")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise InvalidContent(f"{path.name} has a damaged header: {error}") from None
    if not isinstance(header, dict):
        raise InvalidContent(f"{path.name} has a damaged header")
    about = header.pop("__metadata__", None) or {}
    tensors = {}
    try:
        for name, entry in sorted(header.items()):
            kind, (start, stop) = entry["dtype"], entry["data_offsets"]
            if kind not in _TYPES:
                raise InvalidContent(f"{path.name}: {name} has type {kind}; snapshots have floating point weights")
            step = np.dtype(_TYPES[kind]).itemsize
            if not (0 <= start <= stop <= size - 8 - length and (stop - start) % step == 0):
                raise InvalidContent(f"{path.name}: {name} lies outside the file")
            tensors[name] = (kind, 8 + length + start, (stop - start) // step)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidContent):
            raise
        raise InvalidContent(f"{path.name} has a damaged header: {error}") from None
    return _Snapshot(path, tensors, about)


def _products(snapshots: Sequence[_Snapshot], end: int) -> Floats:
    """Inner products of all offsets from the snapshot ``end``."""
    shape = {name: count for name, (_, _, count) in snapshots[end].tensors.items()}
    for snapshot in snapshots:
        if {name: count for name, (_, _, count) in snapshot.tensors.items()} != shape:
            raise InvalidContent(f"{snapshot.path.name} and {snapshots[end].path.name} have other tensors")
    products = np.zeros((len(snapshots), len(snapshots)))
    for name, start, stop in _chunks(shape):
        rows = np.stack([snapshot.values(name, start, stop) for snapshot in snapshots])
        rows -= rows[end].copy()
        products += rows @ rows.T
    if not np.isfinite(products).all():
        raise InvalidContent("a snapshot has weights that are not finite")
    return products


def _chunks(shape: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    for name, count in shape.items():
        for start in range(0, count, _CHUNK):
            yield name, start, min(start + _CHUNK, count)


def _projection(products: Floats) -> tuple[Floats, tuple[float, float]]:
    """Coordinates along the two leading principal directions, and the share of all squared distances of each."""
    sizes, vectors = np.linalg.eigh(products)
    sizes, vectors = np.maximum(sizes[::-1][:2], 0.0), vectors[:, ::-1][:, :2]
    total = float(np.trace(products))
    if not total > 0:
        raise InvalidContent("all snapshots are equal")
    # A sign that does not depend on the library: the snapshot that is farthest along an axis is on its positive side.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), [0, 1]])
    places = np.asarray(vectors * signs * np.sqrt(sizes), dtype=np.float64)
    return places, (float(sizes[0] / total), float(sizes[1] / total))


def _minimum(name: str, snapshots: Sequence[_Snapshot]) -> MinimumRecord:
    """A run with the metrics that were recorded with every snapshot."""
    columns: dict[str, Floats] = {}
    for metric in _METRICS:
        try:
            values = np.array([float(snapshot.about[metric]) for snapshot in snapshots])
        except (KeyError, ValueError):
            continue
        if np.isfinite(values).all():
            columns[metric] = values
    final = {metric: float(values[-1]) for metric, values in columns.items()}
    return MinimumRecord(name, "recorded", epochs=columns, final=final)
