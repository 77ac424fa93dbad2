"""Check the four arrays of a data set, convert them to one layout, and compute their fingerprint."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FIELDS = ("x_train", "y_train", "x_test", "y_test")
_MAX_CHANNELS = 4
_CHUNK = 512


@dataclass(frozen=True)
class Arrays:
    """Images (N, C, H, W) or features (N, D) in their data type, labels 0 ... classes - 1 as int64.

    With `targets` y are float32 values instead, and `classes` counts those of a sample.
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array
    classes: int

    def fingerprint(self) -> str:
        """Return the SHA-256 sum of the content: kind, shape and bytes of each of the four arrays, in their order.

        It does not depend on the data set's name, the file layout or the device.
        """
        digest = hashlib.sha256()
        for field in FIELDS:
            array = getattr(self, field)
            little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            digest.update(f"{field} {little.dtype.kind}{little.dtype.itemsize} {little.shape}\n".encode())
            digest.update(little.data)
        return digest.hexdigest()

    def moments(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return mean and standard deviation of each channel (of each feature, if flat) over the training set.

        A channel that is constant up to rounding gets the deviation 1.
        """
        x = self.x_train
        axes = (0, *range(2, x.ndim))
        count = x.size // x.shape[1]
        mean = sum(chunk.sum(axes, np.float64) for chunk in _chunks(x)) / count
        centre = mean.reshape(-1, *(1,) * (x.ndim - 2))
        variance = sum(np.square(chunk.astype(np.float64) - centre).sum(axes) for chunk in _chunks(x)) / count
        deviation = np.sqrt(variance)
        return mean, np.where(deviation > 1e-9 * np.abs(mean), deviation, 1.0)


def _chunks(x: Array) -> list[Array]:
    return [x[start : start + _CHUNK] for start in range(0, len(x), _CHUNK)]


def check_arrays(origin: str, arrays: Mapping[str, Any], classes: int | None = None) -> Arrays:
    """Return the four arrays as images (N, C, H, W) or features (N, D) with labels; raises a ValueError if invalid.

    `origin` starts every message. Without `classes` the training labels must be 0 ... K - 1, all present.
    """
    if missing := [field for field in FIELDS if field not in arrays]:
        raise ValueError(
            f"{origin}: {', '.join(missing)} missing (there is {', '.join(sorted(arrays)) or 'nothing'}); "
            f"a data set needs the arrays {', '.join(FIELDS)}"
        )
    given = {field: np.asarray(arrays[field]) for field in FIELDS}
    for split in ("train", "test"):
        _check_labels(origin, f"y_{split}", given[f"y_{split}"])
        _check_values(origin, f"x_{split}", given[f"x_{split}"])
        if len(given[f"x_{split}"]) != len(given[f"y_{split}"]):
            raise ValueError(
                f"{origin}: x_{split} has {len(given[f'x_{split}'])} samples and y_{split} has "
                f"{len(given[f'y_{split}'])} labels; give one label for each sample"
            )
    x_train, x_test = (_channels_first(origin, field, given[field]) for field in ("x_train", "x_test"))
    if x_train.shape[1:] != x_test.shape[1:]:
        raise ValueError(
            f"{origin}: x_train has samples of shape {x_train.shape[1:]} and x_test of {x_test.shape[1:]}; "
            "both must have the same"
        )
    if x_train.dtype != x_test.dtype:
        raise ValueError(
            f"{origin}: x_train has type {x_train.dtype} and x_test {x_test.dtype}; "
            "give both in the same type and on the same scale"
        )
    classes = _check_classes(origin, given["y_train"], given["y_test"], classes)
    return Arrays(x_train, given["y_train"].astype(np.int64), x_test, given["y_test"].astype(np.int64), classes)


def check_targets(origin: str, arrays: Mapping[str, Any], *, shares: bool = False) -> Arrays:
    """As `check_arrays`, for targets that are numbers instead of classes, in [0, 1] if they are `shares`."""
    if missing := [field for field in FIELDS if field not in arrays]:
        raise ValueError(
            f"{origin}: {', '.join(missing)} missing (there is {', '.join(sorted(arrays)) or 'nothing'}); "
            f"a data set needs the arrays {', '.join(FIELDS)}"
        )
    targets = {}
    for split in ("train", "test"):
        field = f"y_{split}"
        y = np.asarray(arrays[field])
        if y.dtype.kind not in "iuf" or y.ndim < 1 or len(y) != len(arrays[f"x_{split}"]):
            raise ValueError(
                f"{origin}: {field} has type {y.dtype} and shape {y.shape}, must be numbers, one row for each of the "
                f"{len(arrays[f'x_{split}'])} samples"
            )
        if not np.isfinite(y).all():
            raise ValueError(f"{origin}: {field} has values that are NaN or infinite; leave those samples out")
        if shares and (y.min() < 0 or y.max() > 1):
            raise ValueError(
                f"{origin}: {field} runs from {y.min():g} to {y.max():g}; targets of the loss bce lie in [0, 1]"
            )
        targets[field] = np.ascontiguousarray(y, np.float32)
    shapes = [y.shape[1:] for y in targets.values()]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{origin}: y_train has targets of shape {shapes[0]} and y_test of {shapes[1]}; must be equal")
    # Labels of two classes stand in while the samples are checked.
    stand_in = {field: np.arange(len(y)) % 2 for field, y in targets.items()}
    checked = check_arrays(origin, {**arrays, **stand_in}, 2)
    return Arrays(
        checked.x_train, targets["y_train"], checked.x_test, targets["y_test"], int(np.prod(shapes[0], dtype=int))
    )


def _check_labels(origin: str, field: str, y: Array) -> None:
    if y.ndim != 1:
        raise ValueError(f"{origin}: {field} has shape {y.shape}, must be one label for each sample, shape (N,)")
    if y.dtype.kind not in "iu":
        raise ValueError(f"{origin}: {field} has type {y.dtype}, must be whole numbers; use {field}.astype('int64')")
    if len(y) == 0:
        raise ValueError(f"{origin}: {field} is empty, must hold at least one sample")
    if y.min() < 0:
        raise ValueError(f"{origin}: {field} contains the label {y.min()}, must be 0 or more")


def _check_values(origin: str, field: str, x: Array) -> None:
    if x.dtype.kind not in "iuf":
        raise ValueError(f"{origin}: {field} has type {x.dtype}, must be uint8 or a float type")
    if x.ndim not in (2, 3, 4):
        raise ValueError(
            f"{origin}: {field} has shape {x.shape}, must be (N, H, W), (N, H, W, C), (N, C, H, W) or (N, D)"
        )
    if 0 in x.shape:
        raise ValueError(f"{origin}: {field} is empty (shape {x.shape}), must hold at least one sample")
    if x.dtype.kind == "f":
        not_finite = sum(int(np.count_nonzero(~np.isfinite(chunk))) for chunk in _chunks(x))
        if not_finite:
            raise ValueError(
                f"{origin}: {field} has {not_finite} values that are NaN or infinite; "
                "leave those samples out or replace the values"
            )
        largest = float(max(np.abs(chunk).max() for chunk in _chunks(x)))
        if largest > float(np.finfo(np.float32).max):
            raise ValueError(
                f"{origin}: {field} has a value of size {largest:g}, beyond float32; scale the values down"
            )


def _channels_first(origin: str, field: str, x: Array) -> Array:
    """Return images as (N, C, H, W); the channel axis is the one with at most four entries."""
    if x.ndim == 2:
        return x
    if x.ndim == 3:
        return x[:, np.newaxis]
    first, last = x.shape[1] <= _MAX_CHANNELS, x.shape[3] <= _MAX_CHANNELS
    if first == last:
        reason = "both the second and the last axis are" if first else "neither the second nor the last axis is"
        raise ValueError(
            f"{origin}: {field} has shape {x.shape}: {reason} of a size that channels have (1 to {_MAX_CHANNELS}); "
            "give (N, C, H, W) or (N, H, W, C) with larger images, or flat features (N, D)"
        )
    return x if first else np.ascontiguousarray(np.moveaxis(x, 3, 1))


def _check_classes(origin: str, y_train: Array, y_test: Array, classes: int | None) -> int:
    if classes is None:
        present = np.unique(y_train)
        classes = len(present)
        if present[-1] != classes - 1:
            shown = ", ".join(map(str, present[:12])) + (", ..." if classes > 12 else "")
            raise ValueError(
                f"{origin}: y_train has the labels {shown}, must be 0 to {classes - 1} without gaps; "
                "renumber both y_train and y_test"
            )
        if classes < 2:
            raise ValueError(f"{origin}: y_train has only the label 0, must have at least two classes")
    for field, y in (("y_train", y_train), ("y_test", y_test)):
        if y.max() >= classes:
            raise ValueError(
                f"{origin}: {field} contains the label {y.max()}, but there are {classes} classes "
                f"(0 to {classes - 1}); correct or leave out those samples"
            )
    return classes


def read_npz(origin: str, path: Path) -> dict[str, Array]:
    """Return those of the four arrays that an npz file holds, without unpickling anything."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array")
        with file:
            return {field: file[field] for field in FIELDS if field in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{origin}: cannot read {path} as npz ({error}); write it by "
            "numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)"
        ) from error
