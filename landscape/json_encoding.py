"""Values and records as JSON, which knows neither NaN nor infinity nor arrays."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.analysis.barriers import path_barrier
from valleyscope.landscape.storage.records import MinimumRecord, PathRecord, PlaneRecord, recorded

Numbers = NDArray[np.generic]


def to_json(value: Any, nan: str | None = None, other: Callable[[Any], Any] | None = None) -> Any:
    """A value that JSON can carry: infinities are words that JavaScript's Number() reads, NaN is ``nan``.

    ``other`` converts what is neither a number, a text, a mapping nor a list.

    >>> to_json({"loss": np.array([0.5, np.inf, -np.inf, np.nan])})
    {'loss': [0.5, 'Infinity', '-Infinity', None]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else nan if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): to_json(entry, nan, other) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(entry, nan, other) for entry in value]
    return value if other is None or value is None or isinstance(value, str | int) else other(value)


def encoded(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()


def typed_array(values: Numbers) -> dict[str, str]:
    """An array as plotly reads it: its type, base64 of its bytes, its shape."""
    return {
        "dtype": "u1" if values.dtype == np.bool_ else "f8",
        "bdata": base64.b64encode(packed(values)).decode("ascii"),
        "shape": ", ".join(map(str, values.shape)),
    }


def packed(values: Numbers) -> bytes:
    """The bytes of an array: little-endian float64, or one byte per boolean."""
    kind = np.uint8 if values.dtype == np.bool_ else np.dtype("<f8")
    return np.ascontiguousarray(values, dtype=kind).tobytes()


def plane_json(plane: PlaneRecord) -> dict[str, Any]:
    """All of a plane but its values."""
    return {
        "plane": plane.name,
        "kind": plane.kind,
        "unit": plane.unit,
        "loss_unit": plane.loss_unit,
        "complete": plane.complete,
        "computed": int(plane.done.sum()),
        "x": typed_array(plane.x),
        "y": typed_array(plane.y),
        "done": typed_array(plane.done),
        "points": {name: list(place) for name, place in plane.points.items()},
        "distances": plane.distances,
        "paths": {name: typed_array(places) for name, places in plane.paths.items()},
        "defining": list(plane.defining),
        "note": plane.note,
        "explained": None if plane.explained is None else list(plane.explained),
        "offsets": {name: typed_array(distances) for name, distances in plane.offsets.items()},
        "axes": list(plane.axes),
        "estimate": plane.estimate,
    }


def plane_data(plane: PlaneRecord) -> dict[str, Any]:
    """A plane with all values that were recorded on it."""
    grids = {}
    for split, grid in plane.splits.items():
        for value in ("loss", "error"):
            if recorded(grid[value]):
                grids[f"{split} {value}"] = typed_array(grid[value])
                if grid.is_estimated:
                    grids[f"{split} {value}_error"] = typed_array(grid[f"{value}_error"])
    return {**plane_json(plane), "grids": grids}


def path_json(path: PathRecord) -> dict[str, Any]:
    found = {
        key: getattr(path, key) for key in ("name", "kind", "start", "end", "loss_unit", "t", "arc", "fit", "note")
    }
    values = {value: {split: path.splits[split][value] for split in path.splits} for value in ("loss", "error")}
    encodable: dict[str, Any] = to_json(
        {**found, **values, "barrier": {split: path_barrier(path, split) for split in path.splits}}
    )
    return encodable


def minimum_json(minimum: MinimumRecord) -> dict[str, Any]:
    encodable: dict[str, Any] = to_json({**vars(minimum), "layers": [asdict(layer) for layer in minimum.layers]})
    return encodable
