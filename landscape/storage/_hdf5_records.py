"""Write and read each record of a landscape as a member of its HDF5 file.

Types are float64, int64, uint8 and UTF-8 text, which MATLAB and HDFView can show.
"""

from __future__ import annotations

import json
from typing import Any

import h5py
import numpy as np

from valleyscope.landscape.storage import _hdf5
from valleyscope.landscape.storage.records import (
    DISTANCE,
    Coordinates,
    Floats,
    Grid,
    LayerRecord,
    MinimumRecord,
    PathRecord,
    PathValues,
    PlaneRecord,
)

_QUANTITIES = ("loss", "error")
_STANDARD_ERRORS = ("loss_error", "error_error")
"""Of estimated surfaces."""
_NATS = "nats"
_LARGEST_ATTRIBUTE = 60_000
"""HDF5 keeps attributes of up to 64 KiB; the verdict on 20 minima has more."""
_LAYER_COUNTS = ("groups", "zero_groups", "parameters", "zero_parameters")


def write_json(group: h5py.Group, name: str, value: Any) -> None:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: cannot be written as JSON ({error})") from None
    if len(text.encode()) <= _LARGEST_ATTRIBUTE:
        group.attrs[name] = text
    else:
        group.create_dataset(name, data=text, dtype=h5py.string_dtype())


def has_json(group: h5py.Group, name: str) -> bool:
    return _hdf5.has_attribute(group, name) or _hdf5.has(group, name)


def read_json(group: h5py.Group, name: str) -> Any:
    is_dataset = _hdf5.has(group, name) and not _hdf5.has_attribute(group, name)
    text = _hdf5.texts(group, name)[0] if is_dataset else _hdf5.text_attribute(group, name)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _hdf5.InvalidContent(
            f"{group.name.strip('/') or 'file'}: attribute {name!r} is not JSON ({error})"
        ) from None


def write_plane(parent: h5py.Group, plane: PlaneRecord) -> None:
    group = parent.create_group(plane.name)
    group.attrs.update({"kind": plane.kind, "note": plane.note, "unit": plane.unit})
    _write_loss_unit(group, plane)
    if plane.estimate:
        write_json(group, "estimate", plane.estimate)
        group.attrs["evaluated"] = plane.evaluated
    if plane.axes:
        group.attrs.create("axes", list(plane.axes), shape=(len(plane.axes),), dtype=h5py.string_dtype())
    group.attrs.create("defining", list(plane.defining), shape=(len(plane.defining),), dtype=h5py.string_dtype())
    group.attrs.create("splits", list(plane.splits), shape=(len(plane.splits),), dtype=h5py.string_dtype())
    group["x"], group["y"], group["done"] = plane.x, plane.y, plane.done.astype(np.uint8)
    for split, grid in plane.splits.items():
        _write_values(group, split, grid)
    points = group.create_group("points", track_order=True)
    for name, place in plane.points.items():
        points[name] = np.array(place, dtype=np.float64)
        if name in plane.distances:
            points[name].attrs["distance"] = float(plane.distances[name])
    paths = group.create_group("paths", track_order=True)
    for name, places in plane.paths.items():
        paths[name] = places
    if plane.explained is not None:
        group.attrs["explained"] = np.array(plane.explained, dtype=np.float64)
    if plane.offsets:
        offsets = group.create_group("offsets", track_order=True)
        for name, distances in plane.offsets.items():
            offsets[name] = distances


def read_plane(parent: h5py.Group, name: str) -> PlaneRecord:
    group = _hdf5.subgroup(parent, name)
    done = _hdf5.integers(group, "done")
    if not np.isin(done, (0, 1)).all():
        raise _hdf5.InvalidContent(f"planes/{name}/done: has values other than 0 and 1")
    points = _hdf5.subgroup(group, "points")
    paths = _hdf5.subgroup(group, "paths")
    places = {point: _hdf5.floats(points, point) for point in _hdf5.names(points)}
    for point, place in places.items():
        if place.shape != (2,):
            raise _hdf5.InvalidContent(f"planes/{name}/points/{point}: has shape {place.shape}, not (2,)")
    return PlaneRecord(
        name=name,
        kind=_hdf5.text_attribute(group, "kind"),
        x=_hdf5.floats(group, "x"),
        y=_hdf5.floats(group, "y"),
        done=done.astype(bool),
        splits={split: _read_grid(group, split) for split in _hdf5.texts_attribute(group, "splits")},
        points={point: (float(place[0]), float(place[1])) for point, place in places.items()},
        paths={path: _hdf5.floats(paths, path) for path in _hdf5.names(paths)},
        defining=tuple(_hdf5.texts_attribute(group, "defining")),
        distances={
            point: _hdf5.number_attribute(points[point], "distance")
            for point in places
            if _hdf5.has_attribute(points[point], "distance")
        },
        note=_hdf5.text_attribute(group, "note"),
        unit=_hdf5.text_attribute(group, "unit") if _hdf5.has_attribute(group, "unit") else DISTANCE,
        loss_unit=_read_loss_unit(group),
        explained=_read_explained(group, f"planes/{name}"),
        offsets=_read_offsets(group),
        axes=tuple(_hdf5.texts_attribute(group, "axes")) if _hdf5.has_attribute(group, "axes") else (),
        estimate=read_json(group, "estimate") if has_json(group, "estimate") else {},
    )


def _read_explained(group: h5py.Group, member: str) -> Coordinates | None:
    if not _hdf5.has_attribute(group, "explained"):
        return None
    shares = np.asarray(_hdf5.attribute(group, "explained"))
    if shares.shape != (2,) or shares.dtype.kind != "f":
        raise _hdf5.InvalidContent(f"{member}: explained is not two numbers")
    return float(shares[0]), float(shares[1])


def _read_offsets(group: h5py.Group) -> dict[str, Floats]:
    if not _hdf5.has(group, "offsets"):
        return {}
    offsets = _hdf5.subgroup(group, "offsets")
    return {path: _hdf5.floats(offsets, path) for path in _hdf5.names(offsets)}


def write_path(parent: h5py.Group, path: PathRecord) -> None:
    group = parent.create_group(path.name)
    group.attrs.update({"kind": path.kind, "start": path.start, "end": path.end, "note": path.note})
    _write_loss_unit(group, path)
    group.attrs.create("splits", list(path.splits), shape=(len(path.splits),), dtype=h5py.string_dtype())
    group["t"], group["arc"] = path.t, path.arc
    if path.fit:
        columns = group.create_group("fit", track_order=True)
        for column, numbers in path.fit.items():
            columns[column] = numbers
    for split, values in path.splits.items():
        _write_values(group, split, values)


def read_path(parent: h5py.Group, name: str) -> PathRecord:
    group = _hdf5.subgroup(parent, name)
    kind, start, end, note = (_hdf5.text_attribute(group, field) for field in ("kind", "start", "end", "note"))
    splits = {split: PathValues(*_read_values(group, split)) for split in _hdf5.texts_attribute(group, "splits")}
    t, arc = _hdf5.floats(group, "t"), _hdf5.floats(group, "arc")
    return PathRecord(name, kind, start, end, t, arc, splits, note, _read_fit(group), _read_loss_unit(group))


def _read_fit(path: h5py.Group) -> dict[str, Any]:
    """How a curve was fitted; empty in files of earlier versions."""
    if not _hdf5.has(path, "fit"):
        return {}
    group = _hdf5.subgroup(path, "fit")
    return {column: _hdf5.floats(group, column) for column in _hdf5.names(group)}


def write_minimum(parent: h5py.Group, trajectories: h5py.Group, minimum: MinimumRecord) -> None:
    group = parent.create_group(minimum.name)
    group.attrs["optimizer"] = minimum.optimizer
    if minimum.checkpoint is not None:
        group.attrs["checkpoint"] = minimum.checkpoint
    write_json(group, "settings", minimum.settings)
    if minimum.pruning:
        write_json(group, "pruning", minimum.pruning)
    if minimum.compact is not None:
        write_json(group, "compact", minimum.compact)
    columns = trajectories.create_group(minimum.name, track_order=True)
    for column, values in minimum.epochs.items():
        columns[column] = values
    group["epochs"] = columns
    final = group.create_group("final", track_order=True)
    for name, value in minimum.final.items():
        final[name] = float(value)
    layers = group.create_group("layers")
    names = [layer.name for layer in minimum.layers]
    layers.create_dataset("name", data=names, shape=(len(names),), dtype=h5py.string_dtype())
    for count in _LAYER_COUNTS:
        layers[count] = np.array([getattr(layer, count) for layer in minimum.layers], dtype=np.int64)


def read_minimum(parent: h5py.Group, name: str) -> MinimumRecord:
    group = _hdf5.subgroup(parent, name)
    columns = _hdf5.subgroup(group, "epochs")
    final = _hdf5.subgroup(group, "final")
    return MinimumRecord(
        name=name,
        optimizer=_hdf5.text_attribute(group, "optimizer"),
        settings=read_json(group, "settings"),
        epochs={column: _hdf5.floats(columns, column) for column in _hdf5.names(columns)},
        layers=_read_layers(_hdf5.subgroup(group, "layers")),
        final={quantity: _hdf5.number(final, quantity) for quantity in _hdf5.names(final)},
        checkpoint=_hdf5.text_attribute(group, "checkpoint") if _hdf5.has_attribute(group, "checkpoint") else None,
        pruning=read_json(group, "pruning") if _hdf5.has_attribute(group, "pruning") else {},
        compact=read_json(group, "compact") if _hdf5.has_attribute(group, "compact") else None,
    )


def write_verdict(file: h5py.File, verdict: dict[str, Any]) -> None:
    group = file.create_group("verdict")
    for name, value in verdict.items():
        if isinstance(value, str | int | float):
            group.attrs[name] = value
    write_json(group, "json", verdict)


def read_verdict(file: h5py.File) -> dict[str, Any] | None:
    if not _hdf5.has(file, "verdict"):
        return None
    verdict: dict[str, Any] = read_json(_hdf5.subgroup(file, "verdict"), "json")
    return verdict


def _write_values(parent: h5py.Group, split: str, values: Grid | PathValues) -> None:
    group = parent.create_group(split)
    for quantity in _QUANTITIES:
        group[quantity] = values[quantity]
    if isinstance(values, Grid) and values.is_estimated:
        for quantity in _STANDARD_ERRORS:
            group[quantity] = values[quantity]


def _read_grid(parent: h5py.Group, split: str) -> Grid:
    group = _hdf5.subgroup(parent, split)
    found = {name: _hdf5.floats(group, name) for name in _STANDARD_ERRORS if _hdf5.has(group, name)}
    return Grid(*_read_values(parent, split), **found)


def _read_values(parent: h5py.Group, split: str) -> tuple[Any, Any]:
    group = _hdf5.subgroup(parent, split)
    return _hdf5.floats(group, "loss"), _hdf5.floats(group, "error")


def _write_loss_unit(group: h5py.Group, record: PlaneRecord | PathRecord) -> None:
    if record.loss_unit != _NATS:
        group.attrs["loss_unit"] = record.loss_unit


def _read_loss_unit(group: h5py.Group) -> str:
    return _hdf5.text_attribute(group, "loss_unit") if _hdf5.has_attribute(group, "loss_unit") else _NATS


def _read_layers(group: h5py.Group) -> list[LayerRecord]:
    names = _hdf5.texts(group, "name")
    counts = [_hdf5.integers(group, count) for count in _LAYER_COUNTS]
    if any(count.shape != (len(names),) for count in counts):
        raise _hdf5.InvalidContent(f"{group.name.strip('/')}: columns differ in length")
    return [LayerRecord(name, *(int(count[row]) for count in counts)) for row, name in enumerate(names)]
