"""Encode task results as bytes: arrays and plain values only, nothing that could run code when decoded."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args

import numpy as np

from valleyscope.app.experiments.task_results import Result
from valleyscope.landscape.storage.curvature_record import CurvatureRecord, DirectionsRecord, TrialRecord
from valleyscope.landscape.storage.ensemble_record import EnsembleRecord
from valleyscope.landscape.storage.records import Grid, LayerRecord, MinimumRecord, PathRecord, PathValues, PlaneRecord

_LANDSCAPE = (EnsembleRecord, Grid, LayerRecord, MinimumRecord, PathRecord, PathValues, PlaneRecord)
_CURVATURE = (CurvatureRecord, DirectionsRecord, TrialRecord)
_RECORDS: dict[str, type[Any]] = {record.__name__: record for record in (*get_args(Result), *_LANDSCAPE, *_CURVATURE)}
_CONTENT = "content"
_RECORD, _ARRAY, _TUPLE, _NUMBER = "$record", "$array", "$tuple", "$number"


def encode(result: Result) -> bytes:
    arrays: dict[str, Any] = {}
    arrays[_CONTENT] = np.array(json.dumps(_flatten(result, arrays), allow_nan=False))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def decode(payload: bytes) -> Result:
    with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    result: Result = _build(json.loads(str(arrays.pop(_CONTENT))), arrays)
    return result


def _flatten(value: Any, arrays: dict[str, Any]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        inner = {field.name: _flatten(getattr(value, field.name), arrays) for field in fields(value)}
        return {_RECORD: type(value).__name__, "fields": inner}
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, tuple):
        return {_TUPLE: [_flatten(item, arrays) for item in value]}
    if isinstance(value, list):
        return [_flatten(item, arrays) for item in value]
    if isinstance(value, Mapping):
        return {key: _flatten(item, arrays) for key, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):  # JSON has neither infinity nor NaN
        return {_NUMBER: repr(value)}
    return value


def _build(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_build(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if _RECORD in value:
        inner = {name: _build(item, arrays) for name, item in value["fields"].items()}
        return _RECORDS[value[_RECORD]](**inner)
    if _ARRAY in value:
        return arrays[value[_ARRAY]]
    if _TUPLE in value:
        return tuple(_build(item, arrays) for item in value[_TUPLE])
    if _NUMBER in value:
        return float(value[_NUMBER])
    return {key: _build(item, arrays) for key, item in value.items()}
