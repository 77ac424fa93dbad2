"""Surface files (.h5) of loss-landscape (Li et al. 2018), as plot_surface.py writes them.

``xcoordinates`` and, in two dimensions, ``ycoordinates``: steps along the directions of the file named in
``dir_file``; ``train_loss`` and ``train_acc`` (percent), sometimes ``test_loss`` and ``test_acc``. The arrays have the
shape (len(x), len(y)), but their scheduler numbers the points row by row of meshgrid(x, y) and fills the flat array
in that order: read flat, a row is one value of y. -1 means "not computed yet"; losses are written before accuracies, so
a killed writer may leave a point with one and not the other. The trajectory of training, projected on the same
directions, may lie beside a surface: <directions>_proj_cos.h5.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import h5py
import numpy as np

from valleyscope.landscape.importers.mode_connectivity import error_fraction
from valleyscope.landscape.storage import _hdf5
from valleyscope.landscape.storage._hdf5 import InvalidContent
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import (
    DISTANCE,
    TRAJECTORY,
    Floats,
    Grid,
    Mask,
    MinimumRecord,
    PathRecord,
    PathValues,
    PlaneRecord,
    final_metrics,
    line_name,
)

SPLITS: Final = ("train", "test")
MODEL: Final = "model"
STEP: Final = "step along the direction"
TARGETS: Final = {"model2": (1.0, 0.0), "model3": (0.0, 1.0)}
SplitValues = dict[str, tuple[Floats, Floats, Mask]]
"""Loss, error and mask of computed points of each split."""
_MODEL_FILE = re.compile(r"\.(?:t7|pth|pt|th|tar|ckpt|bin|pkl|safetensors)(?=_|$)")


def is_trajectory(path: Path) -> bool:
    """Whether a file holds a projected trajectory, which belongs to a surface."""
    try:
        with _hdf5.open_file(path) as file:
            return _hdf5.has(file, "proj_xcoord") and not _hdf5.has(file, "xcoordinates")
    except InvalidContent:
        return False


def read(path: Path, file: h5py.File) -> Landscape:
    """The landscape in an open surface file, with the trajectory from the file beside it, if there is one."""
    if not _hdf5.has(file, "xcoordinates"):
        raise InvalidContent(_describe_other_file(file))
    directions = _hdf5.texts(file, "dir_file")[0] if _hdf5.has(file, "dir_file") else ""
    x = _hdf5.floats(file, "xcoordinates")
    y = _hdf5.floats(file, "ycoordinates") if _hdf5.has(file, "ycoordinates") else None
    for name, axis in (("xcoordinates", x), ("ycoordinates", y)):
        if axis is not None and axis.ndim != 1:
            raise InvalidContent(f"{name}: has shape {axis.shape}, not one dimension")
    values = _values(file, x.shape if y is None else (len(y), len(x)))
    if _is_descending(x):
        x, values = x[::-1], _flipped(values, -1)
    if y is not None and _is_descending(y):
        y, values = y[::-1], _flipped(values, 0)
    source = Path(directions).name or "unknown directions"
    note = f"imported from {path.name}: directions {source}; loss as its writer defines it (cross-entropy by default)"
    landscape = Landscape(name=path.name.removesuffix(".h5"))
    if y is None:
        _add_line(landscape, x, values, directions, note)
    else:
        _add_planes(landscape, path, x, y, values, directions, note)
    landscape.spec = {"imported": {"file": path.name, "format": "loss-landscape surface", "directions": source}}
    landscape.provenance = {"source": "loss-landscape surface", "directions": source, "batch_norm": "of the checkpoint"}
    return landscape


def _add_planes(
    landscape: Landscape, path: Path, x: Floats, y: Floats, values: SplitValues, directions: str, note: str
) -> None:
    """One plane for all splits computed at the same points; a split computed at other points gets its own."""
    # PCA directions have a special folder or file name.
    principal = "PCA_" in directions or Path(directions).name == "directions.h5"
    trajectory = _trajectory_beside(path, directions)
    targets = {name: place for name, place in TARGETS.items() if name in _targets(directions)}
    points = {MODEL: (0.0, 0.0), **targets}
    for name, place in points.items():
        landscape.minima[name] = MinimumRecord(name, "", final=_final_on_grid(x, y, values, place))
    for split, (loss, error, done) in values.items():
        same = next((plane for plane in landscape.planes.values() if np.array_equal(plane.done, done)), None)
        if same is not None:
            same.splits[split] = Grid(loss, error)
            continue
        name = f"surface-{split}" if landscape.planes else "surface"
        landscape.planes[name] = PlaneRecord(
            name=name,
            kind="principal" if principal else "through" if targets else "around",
            x=x,
            y=y,
            done=done,
            splits={split: Grid(loss, error)},
            points=dict(points),
            paths={} if trajectory is None else {TRAJECTORY + MODEL: trajectory},
            defining=tuple(points),
            distances=dict.fromkeys(points, 0.0),
            note=note,
            unit=DISTANCE if principal else STEP,
        )


def _add_line(landscape: Landscape, x: Floats, values: SplitValues, directions: str, note: str) -> None:
    """A surface over one direction is a line: from the model at 0 to a second model, or a random direction, at 1."""
    done = np.logical_and.reduce([mask for *_, mask in values.values()])
    if done.sum() < 2:
        raise InvalidContent("train_loss: fewer than two of its points are computed")
    random = "model2" not in _targets(directions)
    end = "direction" if random else "model2"
    if not done.all():
        note += f"; {int((~done).sum())} of {len(done)} points are not computed and left out"
    splits = {split: PathValues(loss[done], error[done]) for split, (loss, error, _) in values.items()}
    t = x[done]
    name = line_name(MODEL, end)
    landscape.lines[name] = PathRecord(name, "line", MODEL, end, t, t - t[0], splits, note)
    for minimum, place in ((MODEL, 0.0), *(() if random else ((end, 1.0),))):
        landscape.minima[minimum] = MinimumRecord(minimum, "", final=_final(t, splits, place))


def _final(t: Floats, splits: dict[str, PathValues], place: float) -> dict[str, float]:
    """Loss and accuracy at the model, if a point of the line is there."""
    index = int(np.abs(t - place).argmin())
    if abs(t[index] - place) > 1e-9:
        return {}
    return {key: value for key, value in final_metrics(splits, index).items() if np.isfinite(value)}


def _final_on_grid(x: Floats, y: Floats, values: SplitValues, place: tuple[float, float]) -> dict[str, float]:
    """Loss and accuracy at a model, if a computed point of the grid is there."""
    row, column = int(np.abs(y - place[1]).argmin()), int(np.abs(x - place[0]).argmin())
    if abs(x[column] - place[0]) > 1e-9 or abs(y[row] - place[1]) > 1e-9:
        return {}
    there = {split: PathValues(loss[row, [column]], error[row, [column]]) for split, (loss, error, _) in values.items()}
    return {key: value for key, value in final_metrics(there, 0).items() if np.isfinite(value)}


def _values(file: h5py.File, shape: tuple[int, ...]) -> SplitValues:
    found = {}
    for split in SPLITS:
        if not _hdf5.has(file, f"{split}_loss"):
            continue
        loss = _flat(file, f"{split}_loss", shape)
        accuracy = _flat(file, f"{split}_acc", shape) if _hdf5.has(file, f"{split}_acc") else None
        done = ~(loss < 0) if accuracy is None else ~((loss < 0) | (accuracy < 0))
        if not done.any():
            continue
        # A NaN loss means that the network diverged there.
        loss = np.where(done, np.where(np.isnan(loss), np.inf, loss), np.nan)
        error = np.full(shape, np.nan) if accuracy is None else np.where(done, error_fraction(100.0 - accuracy), np.nan)
        found[split] = loss, error, done
    if not found:
        started = _hdf5.has(file, "train_loss")
        raise InvalidContent(
            "train_loss: none of its points is computed yet" if started else _describe_other_file(file)
        )
    return found


def _flat(file: h5py.File, name: str, shape: tuple[int, ...]) -> Floats:
    values = _hdf5.floats(file, name)
    if values.size != np.prod(shape) or values.ndim != len(shape):
        raise InvalidContent(f"{name}: has shape {values.shape}, the coordinates make {shape[::-1]}")
    return values.reshape(shape)


def _targets(directions: str) -> list[str]:
    """The networks that the directions point to, from the name of their file.

    A name begins with the files of the model and, if the first direction leads to one, of a second model; then comes
    ``_weights`` or ``_states``, and in the end the file of a third model, if the second direction leads to one.

    >>> _targets("nets/a.t7_b.t7_weights.h5"), _targets("nets/a.t7_weights_xnorm=filter.h5")
    (['model2'], [])
    >>> _targets("nets/a.t7_b.t7_weightsnets/c.t7.h5")
    ['model2', 'model3']
    """
    named = re.fullmatch(r"(.*)_(?:weights|states)(.*?)(?:\.h5)?", directions, re.DOTALL)
    if named is None:
        return []
    first, last = (len(_MODEL_FILE.findall(part)) for part in named.groups())
    return [name for name, there in (("model2", first > 1), ("model3", last > 0)) if there]


def _is_descending(axis: Floats) -> bool:
    return len(axis) > 1 and bool((np.diff(axis) < 0).all())


def _flipped(values: SplitValues, axis: int) -> SplitValues:
    return {
        split: (np.flip(loss, axis), np.flip(error, axis), np.flip(done, axis))
        for split, (loss, error, done) in values.items()
    }


def _trajectory_beside(path: Path, directions: str) -> Floats | None:
    """The projected trajectory, if its file lies beside the surface under its usual name."""
    stem, bracket, _ = path.name.partition("_[")
    stems = dict.fromkeys([*([stem] if bracket else []), *([Path(directions).name] if directions else [])])
    for candidate in (path.with_name(f"{stem}_proj_{method}.h5") for stem in stems for method in ("cos", "lstsq")):
        if candidate.is_file():
            try:
                with _hdf5.open_file(candidate) as file:
                    x, y = _hdf5.floats(file, "proj_xcoord"), _hdf5.floats(file, "proj_ycoord")
            except InvalidContent as error:
                raise InvalidContent(
                    f"the trajectory beside it, {candidate.name}: {error}; move it away to import without it"
                ) from None
            if x.ndim != 1 or x.shape != y.shape:
                raise InvalidContent(
                    f"{candidate.name}: proj_xcoord and proj_ycoord have shapes {x.shape} and {y.shape}"
                )
            return np.column_stack([x, y])
    return None


def _describe_other_file(file: h5py.File) -> str:
    """What a file without a surface contains."""
    if _hdf5.has(file, "xdirection"):
        return "holds directions of loss-landscape (xdirection); import the surface that was computed along them"
    if _hdf5.has(file, "proj_xcoord"):
        return "holds a projected trajectory of loss-landscape (proj_xcoord); import the surface beside it"
    if _hdf5.has(file, "max_eig"):
        return "holds eigenvalues of loss-landscape (max_eig) and no train_loss"
    if _hdf5.has(file, "xcoordinates"):
        return "has coordinates and no train_loss: nothing of the surface is computed yet, or its writer was killed"
    found = ", ".join(sorted(_hdf5.names(file))[:8]) or "nothing"
    return f"is an HDF5 file without xcoordinates and train_loss; it holds {found}"
