"""An experiment in its directory: what is done, what came of it, and the one writer of landscape.h5.

spec.json  landscape.h5  <minimum>.safetensors  <minimum>.compact.safetensors and .onnx  report.html  verdict.json
work/      what tasks need to go on: training states, curves, losses of single samples
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from valleyscope.app.experiments.amendments import extends
from valleyscope.app.experiments.curvature_files import enter_curvature, has_curvature, vector_file
from valleyscope.app.experiments.curvature_spec import curved_minima
from valleyscope.app.experiments.estimate_plan import PARTS, is_exact, is_settled, part_file
from valleyscope.app.experiments.plan import Kind, Task, plan, plane_tiles
from valleyscope.app.experiments.report_renderer import render_in_process
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.app.experiments.task_results import (
    AlignedPath,
    CompactedMinimum,
    EstimatedPlane,
    FramedPlane,
    Judged,
    MeasuredCurvature,
    MeasuredDirections,
    MeasuredEnsemble,
    MeasuredPath,
    MeasuredSnapshot,
    Result,
    SurfaceTile,
    TrainedMinimum,
    TriedTheorem,
)
from valleyscope.landscape.analysis.derived_tables import enter_derived_tables
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PlaneRecord, line_name
from valleyscope.training.settings import fork_file

LANDSCAPE = "landscape.h5"
SPEC = "spec.json"
REPORT = "report.html"
VERDICT = "verdict.json"
WORK = "work"
ALIGNED = "aligned."
"""Before the name of a line, the name of its profile with one end aligned; names have no dot."""
_NOT_ALIGNED = "not_aligned"
T = TypeVar("T")


def compact_files(minimum: str) -> tuple[str, str]:
    """The files of the compact network of a minimum, as safetensors and as ONNX."""
    return f"{minimum}.compact.safetensors", f"{minimum}.compact.onnx"


class DirectoryLocked(RuntimeError):
    """Another process is running the experiment of this directory."""


class ExperimentWriter:
    """The writer of one experiment: holds its landscape, takes results in, and saves snapshots.

    A task counts as done when its result is in the last snapshot; one whose result was lost with a killed process runs
    again, and finds what it had already written in `work/`. Files of tasks may be `elsewhere`, in the store: the writer
    itself never opens them.
    """

    def __init__(
        self, spec: Spec, directory: Path, *, snapshot_every: float = 2.0, elsewhere: Collection[str] = ()
    ) -> None:
        self.spec = spec
        self.directory = directory
        self.snapshot_every = snapshot_every
        self.elsewhere = frozenset(elsewhere)
        self.tasks = plan(spec)
        self._tiles = {name: plane_tiles(spec, name) for name in spec.all_planes}
        self._points = {*spec.minima, *(bend for curve in spec.all_curves for bend in spec.bends(curve))}
        self._lock = self._occupy()
        try:
            self.landscape = self._open()
        except BaseException:
            self.close()
            raise
        self._changed = False
        self._saved = time.monotonic()

    @property
    def saved(self) -> bool:
        """Whether all results that were taken in are in the last snapshot."""
        return not self._changed

    def close(self) -> None:
        self._lock.close()

    def is_done(self, task: Task) -> bool:
        """Whether the landscape has the result of a task."""
        match task.kind:
            case Kind.TRAIN:
                present = task.subject in self.landscape.minima
                return present and self._has(f"{task.subject}.safetensors") and self._has_states(task.subject)
            case Kind.FIT:
                return self._has(f"{WORK}/curve-{task.subject}.safetensors")
            case Kind.FRAME:
                plane = self.landscape.planes.get(task.subject)
                return plane is not None and self._points <= plane.points.keys()
            case Kind.SURFACE:
                return self._has_tile(task)
            case Kind.ESTIMATE:
                name = part_file(WORK, task.subject, *divmod(task.index, PARTS))
                return self._is_settled(task.subject) or self._has(name)
            case Kind.PICTURE:
                plane = self.landscape.planes.get(task.subject)
                pictures = 0 if plane is None else plane.estimate.get("rounds", 0)
                return self._is_settled(task.subject) or bool(pictures > task.index)
            case Kind.CURVE | Kind.LINE:
                paths = self.landscape.curves if task.kind is Kind.CURVE else self.landscape.lines
                return task.subject in paths and self._has(f"{WORK}/path-{task.subject}.npz")
            case Kind.ALIGN:
                known = (*self.landscape.aligned, *self.landscape.provenance.get(_NOT_ALIGNED, ()))
                return task.subject in known and self._has(f"{WORK}/aligned-{task.subject}.json")
            case Kind.SHARPNESS:
                return self._has(f"{WORK}/sharpness-{task.subject}.json")
            case Kind.COMPACT:
                minimum = self.landscape.minima.get(task.subject)
                return minimum is not None and minimum.compact is not None
            case Kind.ENSEMBLE:
                return task.subject in self.landscape.ensembles
            case Kind.CURVATURE | Kind.SNAPSHOT_CURVATURE | Kind.DIRECTIONS | Kind.TRIAL:
                vectors = vector_file(self.spec, task)
                return has_curvature(self.landscape, task) and (vectors is None or self._has(f"{WORK}/{vectors}"))
            case Kind.VERDICT:
                verdict = self.landscape.verdict
                if verdict is None or (self.spec.control is not None and verdict["control"] is None):
                    return False
                # A line measured in a retry, after the verdict, has no intervals yet; earlier versions kept none.
                lines, aligned = self.landscape.lines, self.landscape.aligned
                known = verdict.get("aligned_paths", {})
                return all(name in verdict.get("paths", lines) for name in lines) and all(n in known for n in aligned)

    def add_result(self, task: Task, result: Result) -> None:
        """Enter a result into the landscape; a snapshot follows when the last one is old enough."""
        match result:
            case TrainedMinimum(record, fingerprint):
                self.landscape.minima[record.name] = record
                self.landscape.provenance["fingerprint"] = fingerprint
            case CompactedMinimum(report):
                self.landscape.minima[task.subject].compact = report
            case FramedPlane(record):
                self._enter_frame(record)
            case EstimatedPlane():
                self._enter_estimate(task.subject, result)
            case SurfaceTile():
                self._enter_tile(self.landscape.planes[task.subject], task, result)
            case MeasuredPath(record):
                paths = self.landscape.curves if task.kind is Kind.CURVE else self.landscape.lines
                paths[record.name] = record
            case MeasuredEnsemble(record):
                self.landscape.ensembles[record.name] = record
            case AlignedPath(record, note):
                if record is None:
                    self.landscape.provenance.setdefault(_NOT_ALIGNED, {})[task.subject] = note
                else:
                    self.landscape.aligned[record.name] = record
            case MeasuredCurvature() | MeasuredSnapshot() | MeasuredDirections() | TriedTheorem():
                enter_curvature(self.landscape, task, result)
            case Judged(verdict):
                self.landscape.verdict = verdict
        self._order()
        self._changed = True
        self.snapshot(force=False)

    def snapshot(self, *, force: bool = True) -> None:
        """Save the landscape if it changed."""
        due = force or time.monotonic() - self._saved >= self.snapshot_every
        if self._changed and due:
            enter_derived_tables(self.landscape)
            self.landscape.save(self.directory / LANDSCAPE)
            self._changed = False
            self._saved = time.monotonic()

    def finish(self, write_report: Callable[[Path, Path], None] = render_in_process) -> None:
        """Write the last snapshot, the verdict, and the report, by a function from the landscape's file to its own."""
        self._changed = True
        self.snapshot()
        if self.landscape.verdict is not None:
            _write_json(self.directory / VERDICT, self.landscape.verdict)
        write_report(self.directory / LANDSCAPE, self.directory / REPORT)

    def _has_states(self, trunk: str) -> bool:
        """Whether a minimum has the states from which forks still have to start."""
        forks = {name: own.fork for name, own in self.spec.minima.items() if name not in self.landscape.minima}
        needed = {fork.epoch for fork in forks.values() if fork is not None and fork.start == trunk and fork.epoch}
        return all(self._has(f"{WORK}/{trunk}/{fork_file(epoch)}") for epoch in needed)

    def _has(self, name: str) -> bool:
        return name in self.elsewhere or (self.directory / name).is_file()

    def _enter_frame(self, record: PlaneRecord) -> None:
        """A plane that was framed before, when a minimum was missing, keeps what is computed on it."""
        known = self.landscape.planes.get(record.name)
        if known is not None and np.array_equal(known.x, record.x) and np.array_equal(known.y, record.y):
            record = replace(record, done=known.done, splits=known.splits, estimate=known.estimate)
        self.landscape.planes[record.name] = record

    def _enter_tile(self, plane: PlaneRecord, task: Task, values: SurfaceTile) -> None:
        """Enter exact values; an estimated surface keeps those of splits that the tile does not have."""
        tile = self._tiles[task.subject][task.index]
        for split in values.loss:
            grid = plane.splits[split]
            grid.loss[tile.rows, tile.columns] = values.loss[split]
            grid.error[tile.rows, tile.columns] = values.error[split]
            if grid.is_estimated:
                grid["loss_error"][tile.rows, tile.columns] = 0.0
                grid["error_error"][tile.rows, tile.columns] = np.where(np.isnan(values.error[split]), np.nan, 0.0)
        if all(not np.isnan(grid.loss[tile.rows, tile.columns]).any() for grid in plane.splits.values()):
            plane.done[tile.rows, tile.columns] = True

    def _enter_estimate(self, name: str, result: EstimatedPlane) -> None:
        plane = self.landscape.planes[name]
        splits = dict(plane.splits)
        for split in result.about["exact"]:
            if not splits[split].is_estimated:
                splits[split] = replace(splits[split], loss_error=_nothing(plane), error_error=_nothing(plane))
        plane = replace(plane, splits=splits | result.grids, estimate=result.about)
        plane.done[...] = ~np.all([np.isnan(grid.loss) for grid in plane.splits.values()], axis=0)
        self.landscape.planes[name] = plane

    def _has_tile(self, task: Task) -> bool:
        plane = self.landscape.planes.get(task.subject)
        tile = self._tiles[task.subject][task.index]
        if plane is None:
            return False
        if self.spec.all_planes[task.subject].accuracy is None or not plane.estimate:
            return is_exact(plane, tile.rows, tile.columns, plane.splits)
        exact = plane.estimate["exact"]
        return self._is_settled(task.subject) and is_exact(plane, tile.rows, tile.columns, exact)

    def _is_settled(self, plane: str) -> bool:
        return is_settled(self.landscape.planes.get(plane), self.spec.all_planes[plane].accuracy)

    def _order(self) -> None:
        """Tasks finish in any order; the file has everything in the order of the spec."""
        landscape, spec = self.landscape, self.spec
        landscape.minima = _in_order(landscape.minima, spec.minima)
        landscape.curvature = _in_order(landscape.curvature, curved_minima(spec))
        landscape.planes = _in_order(landscape.planes, spec.all_planes)
        landscape.ensembles = _in_order(landscape.ensembles, spec.ensembles or ())
        landscape.curves = _in_order(landscape.curves, spec.all_curves)
        lines = [line_name(*pair) for pair in spec.lines]
        landscape.lines, landscape.aligned = _in_order(landscape.lines, lines), _in_order(landscape.aligned, lines)

    def _occupy(self) -> IO[str]:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / WORK).mkdir(exist_ok=True)
        lock = (self.directory / WORK / "lock").open("w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise DirectoryLocked(
                f"{self.directory} is in use by another process; wait for it, or choose another one"
            ) from None
        return lock

    def _open(self) -> Landscape:
        known = self.directory / SPEC
        if known.is_file():
            before = parse_spec(json.loads(known.read_text(encoding="utf-8")), source=str(known))
            # Another accuracy goes on from what is there, and so does a spec with more planes.
            if before != self.spec and (before == _with_accuracy_of(self.spec, before) or extends(self.spec, before)):
                _write_json(known, self.spec.to_json())
            elif before != self.spec:
                fields = (name for name in Spec.model_fields if getattr(before, name) != getattr(self.spec, name))
                raise BadSpec(
                    f"{self.directory} holds an experiment with another spec (other {', '.join(fields)}): "
                    "choose another directory, or delete it"
                )
        else:
            _write_json(known, self.spec.to_json())
        path = self.directory / LANDSCAPE
        if path.is_file():
            landscape = Landscape.open(path)
            landscape.spec = self.spec.to_json()  # it may have got planes since
            return landscape
        return Landscape(name=self.spec.name, spec=self.spec.to_json(), provenance=_provenance(self.spec))


def _nothing(plane: PlaneRecord) -> Any:
    return np.full(plane.shape, np.nan)


def _with_accuracy_of(spec: Spec, other: Spec) -> Spec:
    """The spec with the accuracy of another one in planes of the same name."""
    known = other.planes or {}
    planes = {
        name: plane.model_copy(update={"accuracy": known[name].accuracy}) if name in known else plane
        for name, plane in (spec.planes or {}).items()
    }
    return spec.model_copy(update={"planes": planes}) if spec.planes is not None else spec


def _in_order(found: Mapping[str, T], names: Iterable[str]) -> dict[str, T]:
    return {name: found[name] for name in names if name in found}


def _provenance(spec: Spec) -> dict[str, Any]:
    """What the numbers depend on besides the spec."""
    libraries = {name: version(name) for name in ("valleyscope", "torch", "torchvision", "numpy", "h5py")}
    trained = {name: spec.minimum(name) for name, own in spec.minima.items() if own.checkpoint is None}
    seeds = ("initialisation", "order", "augmentation")
    return {
        "fingerprint": None,
        "dataset": spec.dataset,
        "seeds": {name: {seed: getattr(minimum, seed) for seed in seeds} for name, minimum in trained.items()},
        "versions": {"python": platform.python_version(), **libraries},
        **({} if spec.loss == "cross_entropy" else {"loss": spec.loss}),
        "batch_norm": spec.batch_norm,
        "precision": spec.precision,
        "samples": spec.samples or "all",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _write_json(path: Path, value: Any) -> None:
    with write_atomically(path) as file:
        file.write(json.dumps(value, indent=2, allow_nan=False).encode())
