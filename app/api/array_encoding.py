"""Arrays for clients: raw bytes, base64, or lists without NaN and infinity."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.generic]


def typed_array(values: Numbers) -> dict[str, str]:
    """An array in the format of plotly: type, base64 of its bytes, shape."""
    kind = "u1" if values.dtype == np.bool_ else "f8"
    return {
        "dtype": kind,
        "bdata": base64.b64encode(packed(values)).decode("ascii"),
        "shape": ", ".join(map(str, values.shape)),
    }


def packed(values: Numbers) -> bytes:
    """The bytes of an array: little-endian float64, or one byte per bool."""
    kind = np.uint8 if values.dtype == np.bool_ else np.dtype("<f8")
    return np.ascontiguousarray(values, dtype=kind).tobytes()


def listed(values: Numbers) -> list[Any]:
    """A list with None for NaN and a string for infinity.

    >>> listed(np.array([1.5, np.nan, np.inf]))
    [1.5, None, 'Infinity']
    """
    found: list[Any] = values.tolist()
    return found if np.isfinite(values).all() else [number(value) for value in found]


def number(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def jsonable(value: Any) -> Any:
    """The same value with every float as `number` encodes it."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    return value


def encoded(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()
