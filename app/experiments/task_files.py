"""Which files of an experiment's folder a task reads and writes, so hosts copy only those."""

from __future__ import annotations

from typing import Final

from valleyscope.app.experiments.curvature_files import curvature_files, is_curvature_input, is_direction_file
from valleyscope.app.experiments.estimate_plan import PARTS, is_part_file, part_file
from valleyscope.app.experiments.experiment_writer import ALIGNED, LANDSCAPE, REPORT, SPEC, VERDICT, WORK, compact_files
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.training.settings import fork_file

_ORCHESTRATOR_FILES: Final = frozenset({LANDSCAPE, REPORT, SPEC, VERDICT})


def is_written_by_orchestrator(name: str) -> bool:
    """Whether the orchestrator writes this file; tasks do not."""
    return name in _ORCHESTRATOR_FILES


def is_input(spec: Spec, task: Task, name: str) -> bool:
    """Whether a task reads a file, including those it wrote in an earlier attempt."""
    if is_output(task, name):
        return True
    match task.kind:
        case Kind.TRAIN:
            own = spec.minima[task.subject]
            if own.fork is not None:
                return name == f"{WORK}/{own.fork.start}/{fork_file(own.fork.epoch)}"
            return own.of is not None and name == f"{own.of}.safetensors"
        case Kind.FIT:
            curve = spec.all_curves[task.subject]
            return name in (f"{curve.start}.safetensors", f"{curve.end}.safetensors")
        case Kind.SURFACE | Kind.ESTIMATE | Kind.PICTURE if is_part_file(WORK, task.subject, name):
            return spec.all_planes[task.subject].accuracy is not None
        case Kind.FRAME | Kind.SURFACE | Kind.ESTIMATE | Kind.PICTURE if _has_directions(spec, task.subject):
            return is_direction_file(spec, task.subject, name) or _is_point(spec, name) or _is_snapshot(spec, name)
        case Kind.FRAME:
            # A plane shows the training of every minimum that kept snapshots.
            return _is_point(spec, name) or _is_snapshot(spec, name)
        case Kind.SURFACE | Kind.ESTIMATE | Kind.PICTURE:
            trajectory = spec.all_planes[task.subject].trajectory
            is_snapshot = trajectory is not None and name.startswith(f"{WORK}/{trajectory}/snapshot-")
            return is_snapshot or _is_point(spec, name)
        case Kind.CURVE | Kind.LINE | Kind.ALIGN | Kind.SHARPNESS | Kind.ENSEMBLE:
            return _is_point(spec, name)
        case Kind.COMPACT:
            return name == f"{task.subject}.safetensors"
        case Kind.CURVATURE | Kind.DIRECTIONS | Kind.SNAPSHOT_CURVATURE | Kind.TRIAL:
            return is_curvature_input(spec, task, name)
        case Kind.VERDICT:
            return name.startswith((f"{WORK}/path-", f"{WORK}/sharpness-", f"{WORK}/aligned-"))


def is_output(task: Task, name: str) -> bool:
    """Whether a task creates, changes or removes a file."""
    subject = task.subject
    match task.kind:
        case Kind.TRAIN:
            return name == f"{subject}.safetensors" or name.startswith(f"{WORK}/{subject}/")
        case Kind.FIT:
            return name in (f"{WORK}/curve-{subject}.safetensors", f"{WORK}/curve-{subject}-state.pt")
        case Kind.CURVE | Kind.LINE:
            return name == f"{WORK}/path-{subject}.npz"
        case Kind.ALIGN:
            return name in (f"{WORK}/path-{ALIGNED}{subject}.npz", f"{WORK}/aligned-{subject}.json")
        case Kind.SHARPNESS:
            return name == f"{WORK}/sharpness-{subject}.json"
        case Kind.CURVATURE | Kind.DIRECTIONS:
            return name.startswith(f"{WORK}/") and name.removeprefix(f"{WORK}/") in curvature_files(task.kind, subject)
        case Kind.SNAPSHOT_CURVATURE | Kind.TRIAL:
            return False
        case Kind.COMPACT:
            return name in (*compact_files(subject), f"{WORK}/compact-{subject}.json")
        case Kind.ESTIMATE:
            return name == part_file(WORK, subject, *divmod(task.index, PARTS))
        case Kind.FRAME | Kind.SURFACE | Kind.PICTURE | Kind.ENSEMBLE | Kind.VERDICT:
            return False


def _has_directions(spec: Spec, plane: str) -> bool:
    return spec.all_planes[plane].directions is not None


def _is_snapshot(spec: Spec, name: str) -> bool:
    return any(name.startswith(f"{WORK}/{run}/snapshot-") for run in spec.minima)


def _is_point(spec: Spec, name: str) -> bool:
    """Whether a file contains a minimum or a curve."""
    minimum = name.removesuffix(".safetensors") in spec.minima
    return minimum or name in {f"{WORK}/curve-{curve}.safetensors" for curve in spec.all_curves}
