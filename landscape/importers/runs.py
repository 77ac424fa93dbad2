"""Several files at once: the plane and the curve of one run of dnn-mode-connectivity become one landscape."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from valleyscope.landscape.importers.import_file import NotImportable, import_file
from valleyscope.landscape.importers.loss_landscape import is_trajectory
from valleyscope.landscape.importers.mode_connectivity import NAME
from valleyscope.landscape.importers.recorded_runs import SNAPSHOT, is_run, read_runs, snapshot_files
from valleyscope.landscape.importers.surface_paths import read_paths
from valleyscope.landscape.storage._checks import check_landscape
from valleyscope.landscape.storage._hdf5 import InvalidContent
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import TRAJECTORY

_LENGTH_ERROR = 0.02  # the two files sample the curve at different points


@dataclass(frozen=True, eq=False)
class Run:
    """A landscape and the files that it was made from."""

    files: tuple[Path, ...]
    landscape: Landscape


def import_files(paths: Sequence[str | os.PathLike[str]], regularised: bool = False) -> list[Run]:
    """The landscapes in these files, see ``import_file``; ``plane.npz`` and ``curve.npz`` of one run become one.

    Folders of recorders (or the snapshots of one) become one landscape with their common plane.
    Lines between two networks of a surface, which no file has, are read off it (see ``surface_paths``).

    They are of one run if the curve is as long in both; one of each also if the files do not tell. A
    trajectory of loss-landscape belongs to the surface with the same directions.
    """
    files = [Path(path) for path in paths]
    recorded = [file for file in files if is_run(file) or SNAPSHOT.fullmatch(file.name)]
    if recorded:
        others = [file for file in files if file not in recorded]
        return [_recorded(recorded), *(import_files(others, regularised) if others else [])]
    trajectories = [file for file in files if file.is_file() and is_trajectory(file)]
    found = [Run((file,), import_file(file, regularised)) for file in files if file not in trajectories]
    drawn = {path for run in found for plane in run.landscape.planes.values() for path in plane.paths}
    if trajectories and not any(path.startswith(TRAJECTORY) for path in drawn):
        raise NotImportable(
            f"{trajectories[0]}: is a projected trajectory of loss-landscape; import the surface with the same "
            "directions together with it"
        )
    runs = _joined(found)
    for run in runs:
        if "imported" in run.landscape.spec:  # what ours lack is not computed yet
            read_paths(run.landscape)
    return runs


def _recorded(paths: Sequence[Path]) -> Run:
    """Folders of recorders, or the snapshots of one run, in their common plane."""
    folders = [path for path in paths if path.is_dir()]
    loose = sorted((path for path in paths if not path.is_dir()), key=lambda path: path.name)
    runs: dict[str, Sequence[Path]] = {}
    for folder in folders:
        name = re.sub(r"[^A-Za-z0-9_-]", "-", folder.resolve().name).lstrip("-")[:40] or "run"
        while name in runs:
            name += "-2"
        runs[name] = snapshot_files(folder)
    if loose:
        runs["run" if "run" not in runs else "run-files"] = loose
    try:
        landscape = read_runs(runs)
        check_landscape(landscape)
    except (InvalidContent, OSError) as error:
        raise NotImportable(f"{', '.join(map(str, paths[:3]))}: {error}") from None
    return Run(tuple(paths), landscape)


def _joined(found: list[Run]) -> list[Run]:
    theirs = [run for run in found if _is_theirs(run.landscape)]
    planes = [run for run in theirs if run.landscape.planes]
    curves = [run for run in theirs if not run.landscape.planes]
    alone = len(curves) == len(planes) == 1
    partners: dict[Run, Run] = {}
    for plane in planes:
        free = (curve for curve in curves if curve not in partners.values())
        fitting = next((curve for curve in free if _fits(plane.landscape, curve.landscape, alone)), None)
        if fitting is not None:
            partners[plane] = fitting
    runs = []
    for run in found:
        if run in partners:
            partner = partners[run]
            _join(run.landscape, partner.landscape)
            runs.append(Run((*run.files, *partner.files), run.landscape))
        elif run not in partners.values():
            runs.append(run)
    return runs


def _is_theirs(landscape: Landscape) -> bool:
    return str(landscape.provenance.get("source", "")).startswith("dnn-mode-connectivity")


def _fits(plane: Landscape, curve: Landscape, alone: bool) -> bool:
    """Whether the curve of one file can be that of the other.

    A curve with more than one bend leaves the plane, so that its projection is shorter.
    """
    drawn = plane.planes[NAME].paths.get(NAME)
    length = float(curve.curves[NAME].arc[-1])
    if drawn is None or length == 0.0:
        return alone
    projected = float(np.linalg.norm(np.diff(drawn, axis=0), axis=1).sum())
    one_bend = "bend" in plane.planes[NAME].points
    shortest = 0.0 if alone and not one_bend else (1 - _LENGTH_ERROR) * length
    return shortest <= projected <= (1 + _LENGTH_ERROR) * length


def _join(plane: Landscape, curve: Landscape) -> None:
    """Put what is in the file of the curve into the landscape of the plane."""
    plane.name = plane.name if plane.name == curve.name else f"{plane.name} and {curve.name}"
    plane.minima = curve.minima
    plane.curves = curve.curves
    files = [landscape.spec["imported"]["file"] for landscape in (plane, curve)]
    plane.spec = {"imported": {"file": ", ".join(files), "format": "dnn-mode-connectivity plane.npz and curve.npz"}}
    digests = ", ".join(str(landscape.provenance["sha256"]) for landscape in (plane, curve))
    plane.provenance |= {"source": "dnn-mode-connectivity plane.npz and curve.npz", "sha256": digests}
