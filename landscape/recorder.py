"""Snapshots of a training of your own, and the plane in which one or several trajectories are seen best."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from valleyscope.landscape.drawing import result_figures
from valleyscope.landscape.geometry.parameter_choice import Parameters, moving_parameters
from valleyscope.landscape.geometry.planes import Plane
from valleyscope.landscape.geometry.vectors import as_vector
from valleyscope.landscape.geometry.wrapped_networks import plain_name, unwrapped
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import TRAJECTORY, MinimumRecord, PlaneRecord

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from valleyscope.landscape.analysis.surfaces import Surface

Floats = NDArray[np.float64]
_SNAPSHOT = "snapshot-{:06d}.safetensors"


class Recorder:
    """Writes the weights of a network into a folder while you train it: call ``record()`` after each step or epoch.

    Every ``every``-th call writes a safetensors file of the parameters that move, beginning with the first; nothing is
    kept in memory. A folder with snapshots is continued.
    """

    def __init__(
        self,
        model: nn.Module,
        folder: str | os.PathLike[str],
        every: int = 1,
        *,
        parameters: Parameters = None,
    ) -> None:
        if every < 1:
            raise ValueError(f"every is {every}; give 1 or more")
        self.model = unwrapped(model)
        self.folder = Path(folder)
        self.every = every
        self.parameters = parameters
        moving_parameters(self.model, parameters)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._calls = 0
        self._written = len(self.snapshots())

    def __repr__(self) -> str:
        return f"Recorder({os.fspath(self.folder)!r}, every {self.every}, {len(self.snapshots())} snapshots)"

    def record(self, **about: object) -> Path | None:
        """Count a call and, every ``every``-th time, write a snapshot; ``about`` is kept as text in the file."""
        self._calls += 1
        if (self._calls - 1) % self.every:
            return None
        tensors = {
            plain_name(name): parameter.detach().cpu().contiguous()
            for name, parameter in moving_parameters(self.model, self.parameters).items()
        }
        path = self.folder / _SNAPSHOT.format(self._written)
        metadata = {"call": str(self._calls), **{key: str(value) for key, value in about.items()}}
        with write_atomically(path) as file:
            file.write(save(tensors, metadata))
        self._written += 1
        return path

    def snapshots(self) -> list[Path]:
        """The files of the snapshots, in order."""
        return snapshots_in(self.folder)

    def trajectories(self, **others: str | os.PathLike[str]) -> Trajectories:
        """This run, and others by name (folders of recorders), in their common plane."""
        return trajectories(self.model, {"run": self.folder, **others}, parameters=self.parameters)


def snapshots_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The snapshots that a recorder wrote into a folder, in order."""
    return sorted(Path(folder).glob("snapshot-*.safetensors"))


def about_snapshot(path: str | os.PathLike[str]) -> dict[str, str]:
    """What was recorded with a snapshot."""
    with safe_open(path, "pt") as file:
        return dict(file.metadata() or {})


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Runs projected on one plane: ``paths`` [n, 2] and ``distances`` [n] off the plane by run.

    ``plane.explained`` is the share of all squared distances from the last snapshot of the first run that each axis
    carries.
    """

    plane: Plane
    paths: Mapping[str, Floats]
    distances: Mapping[str, Floats]

    def __repr__(self) -> str:
        runs = ", ".join(f"{name} ({len(path)} snapshots)" for name, path in self.paths.items())
        return f"Trajectories({runs}; axes explain {' and '.join(self._shares())})"

    def figure(self, surface: Surface | None = None, split: str | None = None, **options: Any) -> Figure:
        """The runs, on the contour of a surface of this plane if one is given."""
        figure: Figure = result_figures().trajectories_figure(self, surface, split, self.axis_titles(), **options)
        return figure

    def landscape(self, surface: Surface | None = None, name: str = "trajectories") -> Landscape:
        """The runs as a landscape to save, report and upload, with the losses of a surface of this plane if given."""
        x, y = self.plane.axes(21) if surface is None else (surface.x, surface.y)
        splits = ("train",) if surface is None else tuple(surface.splits)
        ends = {run: (float(path[-1, 0]), float(path[-1, 1])) for run, path in self.paths.items()}
        record = PlaneRecord.empty(
            "trajectories",
            "principal",
            x,
            y,
            splits,
            points=ends,
            distances={run: float(values[-1]) for run, values in self.distances.items()},
            paths={f"{TRAJECTORY}{run}": path for run, path in self.paths.items()},
            offsets={f"{TRAJECTORY}{run}": values for run, values in self.distances.items()},
            defining=(next(iter(self.paths)),),
            explained=self.plane.explained,
        )
        if surface is not None:
            record.splits, record.loss_unit = dict(surface.splits), surface.unit
            record.done[:] = True
        minima = {run: MinimumRecord(run, "recorded") for run in self.paths}
        return Landscape(name, minima=minima, planes={record.name: record}, provenance={"fingerprint": None})

    def axis_titles(self) -> tuple[str, str]:
        first, second = self._shares()
        return (
            f"first principal direction, {first} of the squared distances",
            f"second principal direction, {second}",
        )

    def _shares(self) -> list[str]:
        return [f"{100 * share:.1f} %" for share in self.plane.explained or (0.0, 0.0)]


def trajectories(
    model: nn.Module, runs: Mapping[str, str | os.PathLike[str]], *, parameters: Parameters = None
) -> Trajectories:
    """Runs, folders of recorders by name, in the plane through the end of the first that is closest to all snapshots.

    The directions are the leading right singular vectors of the matrix of all w_i - w_end (Li et al. 2018).
    """
    if not runs:
        raise ValueError("runs is empty; give folders of recorders by name")
    vectors, sizes = [], {}
    for name, folder in runs.items():
        files = snapshots_in(folder)
        if not files:
            raise ValueError(f"run {name!r}: there are no snapshots in {os.fspath(folder)!r}")
        sizes[name] = len(files)
        vectors.append([as_vector(model, file, f"{name}, {file.name}", parameters) for file in files])
    # The first run goes last: a principal plane has its origin at the last snapshot.
    order = [*list(runs)[1:], next(iter(runs))]
    ordered = [vector for run in (*vectors[1:], vectors[0]) for vector in run]
    ends = np.cumsum([0, *(sizes[name] for name in order)]).tolist()
    parts = {name: slice(ends[index], ends[index + 1]) for index, name in enumerate(order)}
    named = {name if len(runs) > 1 else "end": part.stop - 1 for name, part in parts.items()}
    plane = Plane.principal(ordered, names=named)
    assert plane.trajectory is not None
    return Trajectories(
        plane,
        {name: plane.trajectory[parts[name]] for name in runs},
        {name: np.array([plane.distance(vector) for vector in ordered[parts[name]]]) for name in runs},
    )
