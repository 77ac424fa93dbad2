"""A digest of every part of a landscape, to detect edits of its file by other HDF5 programs.

The file checksum cannot: HDF5 removes it when it changes a file, and some changes are fine (h5repack, an added remark).
Digests are of values, not bytes. They cover the fields of format version 1; a later field must be left out while it has
its default, or older files would look altered.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from valleyscope.landscape.storage.curvature_record import curvature_content
from valleyscope.landscape.storage.records import Grid, MinimumRecord, PathRecord, PlaneRecord

if TYPE_CHECKING:
    from valleyscope.landscape.storage.landscape_file import Landscape

ATTRIBUTES = "attributes"


def digests(landscape: Landscape) -> dict[str, str]:
    """The hexadecimal sha256 of each part, by its member of the file."""
    return {member: _digest(content) for member, content in _parts(landscape)}


def altered(written: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """The first difference between two sets of digests as a message; None if they are equal."""
    for member, digest in found.items():
        if member not in written:
            return f"{member}: was not there when the file was written"
        if written[member] != digest:
            return f"{member}: was altered after it was written (its sha256 differs)"
    missing = next((member for member in written if member not in found), None)
    if missing is not None:
        return f"{missing}: is missing"
    return None if list(written) == list(found) else "members are in another order than when the file was written"


def _parts(landscape: Landscape) -> Iterator[tuple[str, Any]]:
    texts = [landscape.name, landscape.created, landscape.updated]
    yield ATTRIBUTES, [*texts, _json(landscape.spec), _json(landscape.provenance)]
    for name, minimum in landscape.minima.items():
        yield f"minima/{name}", _minimum(minimum)
    for name, plane in landscape.planes.items():
        yield f"planes/{name}", _plane(plane)
    kinds = (("curves", landscape.curves), ("lines", landscape.lines), ("aligned", landscape.aligned))
    for kind, paths in kinds:
        for name, path in paths.items():
            yield f"{kind}/{name}", _path(path)
    for name, found in landscape.ensembles.items():
        splits = {split: [values.loss, values.error] for split, values in found.splits.items()}
        yield f"ensembles/{name}", [list(found.members), splits]
    for name, record in landscape.curvature.items():
        yield f"curvature/{name}", curvature_content(record)
    if landscape.verdict is not None:
        yield "verdict", _json(landscape.verdict)


def _minimum(minimum: MinimumRecord) -> list[Any]:
    layers = [
        [layer.name, layer.groups, layer.zero_groups, layer.parameters, layer.zero_parameters]
        for layer in minimum.layers
    ]
    about = [minimum.name, minimum.optimizer, minimum.checkpoint, _json(minimum.settings)]
    later = [] if minimum.compact is None else [_json(minimum.compact)]
    return [*about, minimum.epochs, layers, minimum.final, *later]


def _plane(plane: PlaneRecord) -> list[Any]:
    about = [plane.name, plane.kind, plane.note, plane.unit, plane.defining, *_own_unit(plane)]
    about += [plane.axes] if plane.axes else []
    grids = {split: _grid(grid) for split, grid in plane.splits.items()}
    # Distances are attributes of the points, so their order is not stored.
    places = [plane.points, plane.paths, dict(sorted(plane.distances.items()))]
    # Earlier versions knew none of these.
    later: list[Any] = [_json(plane.estimate)] if plane.estimate else []
    later += [] if plane.explained is None and not plane.offsets else [plane.explained, plane.offsets]
    return [*about, plane.x, plane.y, plane.done.astype(np.uint8), grids, *places, *later]


def _grid(grid: Grid) -> list[Any]:
    errors = [grid["loss_error"], grid["error_error"]] if grid.is_estimated else []
    return [grid.loss, grid.error, *errors]


def _path(path: PathRecord) -> list[Any]:
    splits = {split: [values.loss, values.error] for split, values in path.splits.items()}
    content = [path.name, path.kind, path.start, path.end, path.note, path.t, path.arc, splits]
    # Files of earlier versions have no fit and no unit.
    return [*content, *([path.fit] if path.fit else []), *_own_unit(path)]


def _own_unit(record: PlaneRecord | PathRecord) -> list[str]:
    """The unit of a loss that is not in nats: earlier versions did not know it."""
    return [] if record.loss_unit == "nats" else [record.loss_unit]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _digest(content: Any) -> str:
    hasher = hashlib.sha256()
    for piece in _pieces(content):
        hasher.update(piece)
    return hasher.hexdigest()


def _pieces(content: Any) -> Iterator[bytes | memoryview]:
    """Nested content as bytes, each value after its kind and size, so different contents give different bytes."""
    if content is None:
        yield b"none"
    elif isinstance(content, str):
        encoded = content.encode("utf-8", "surrogatepass")
        yield b"text%d:" % len(encoded)
        yield encoded
    elif isinstance(content, np.ndarray):
        yield f"array{content.dtype.str}{content.shape}:".encode()
        yield np.ascontiguousarray(content).data
    elif isinstance(content, Mapping):
        yield b"map%d:" % len(content)
        for name, value in content.items():
            yield from _pieces(name)
            yield from _pieces(value)
    elif isinstance(content, list | tuple):
        yield b"list%d:" % len(content)
        for value in content:
            yield from _pieces(value)
    else:
        yield struct.pack("<6sd", b"number", float(content))
