"""The plan of an experiment, written once: a spec becomes tasks with dependencies, and every runner executes these.

train each minimum | make pruned ones compact | fit each curve | frame each plane | tiles of its surface, coarse first
profile of each curve and line, also aligned | sharpness of each minimum | sets of minima as one
curvature, its flat subspace and the theorem's trial | verdict
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from valleyscope.app.experiments.cost import tile_points
from valleyscope.app.experiments.curvature_spec import curved_minima, measured_epochs, trials
from valleyscope.app.experiments.estimate_plan import PARTS, ROUNDS, part_index
from valleyscope.app.experiments.forks import start_of
from valleyscope.app.experiments.spec import Spec
from valleyscope.landscape.claim import planes_in_order
from valleyscope.landscape.geometry.tiles import Tile, tiles
from valleyscope.landscape.storage.records import line_name


class Kind(StrEnum):
    """What a task does."""

    TRAIN = "train"
    FIT = "fit"
    FRAME = "frame"
    SURFACE = "surface"
    ESTIMATE = "estimate"
    PICTURE = "picture"
    CURVE = "curve"
    LINE = "line"
    ALIGN = "align"
    SHARPNESS = "sharpness"
    COMPACT = "compact"
    ENSEMBLE = "ensemble"
    CURVATURE = "curvature"
    SNAPSHOT_CURVATURE = "snapshot-curvature"
    DIRECTIONS = "directions"
    TRIAL = "trial"
    VERDICT = "verdict"


STAGES = {
    Kind.TRAIN: "minima",
    Kind.FIT: "curves",
    Kind.FRAME: "surfaces",
    Kind.SURFACE: "surfaces",
    Kind.ESTIMATE: "surfaces",
    Kind.PICTURE: "surfaces",
    Kind.CURVE: "profiles",
    Kind.LINE: "profiles",
    Kind.ALIGN: "profiles",
    Kind.SHARPNESS: "profiles",
    Kind.COMPACT: "profiles",
    Kind.ENSEMBLE: "profiles",
    Kind.CURVATURE: "curvature",
    Kind.SNAPSHOT_CURVATURE: "curvature",
    Kind.DIRECTIONS: "curvature",
    Kind.TRIAL: "curvature",
    Kind.VERDICT: "verdict",
}


_NUMBERED = (Kind.SURFACE, Kind.ESTIMATE, Kind.PICTURE, Kind.SNAPSHOT_CURVATURE)


@dataclass(frozen=True)
class Task:
    """One piece of work on a subject: a minimum (with the epoch of a snapshot), a curve, a line or a plane (a tile).

    It cannot do without the results of those that it `needs`, and uses those of the tasks it comes `after` where they
    succeed. Among tasks that are ready, the one with the lowest `priority` runs first.
    """

    kind: Kind
    subject: str
    index: int = 0
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    priority: int = 0

    @property
    def id(self) -> str:
        part = f":{self.index}" if self.kind in _NUMBERED else ""
        return f"{self.kind}:{self.subject}{part}"

    @property
    def stage(self) -> str:
        return STAGES[self.kind]


def plan(spec: Spec) -> tuple[Task, ...]:
    """All tasks of an experiment, those first on which others depend."""
    return tuple(_tasks(spec))


class PlanState:
    """Which tasks of a plan are done or failed, and so which ones can run."""

    def __init__(self, tasks: Sequence[Task], done: Iterable[str] = ()) -> None:
        self.tasks = {task.id: task for task in tasks}
        self.done = set(done)
        self.failed: dict[str, str] = {}
        """Why a task failed, by its id."""

    @property
    def blocked(self) -> set[str]:
        """The tasks that failed, and those that cannot run without them."""
        blocked = set(self.failed)
        for task in self.tasks.values():
            if not blocked.isdisjoint(task.needs):
                blocked.add(task.id)
        return blocked

    @property
    def open(self) -> list[str]:
        """The tasks that are neither done nor failed."""
        return [id for id in self.tasks if id not in self.done and id not in self.failed]

    def ready(self, started: Container[str] = ()) -> list[Task]:
        """The tasks that can run now and are not among those `started`, the most urgent first."""
        blocked = self.blocked
        ready = [
            task
            for task in self.tasks.values()
            if task.id not in self.done
            and task.id not in blocked
            and task.id not in started
            and self.has_needs_of(task)
            and all(other in self.done or other in blocked for other in task.after)
        ]
        return sorted(ready, key=lambda task: task.priority)

    def has_needs_of(self, task: Task) -> bool:
        """Whether all that a task needs is done."""
        return all(need in self.done for need in task.needs)


def plane_tiles(spec: Spec, plane: str) -> list[Tile]:
    """The tiles of a plane's surface; a task names one by its index."""
    resolution = spec.all_planes[plane].resolution
    return tiles(resolution, resolution, tile_points(spec))


def _tasks(spec: Spec) -> Iterator[Task]:
    curves, planes = spec.all_curves, spec.all_planes
    for minimum in sorted(spec.minima, key=lambda name: len(spec.sources(name))):
        own, source = spec.minima[minimum], start_of(spec, minimum)
        if own.fork is not None and own.fork.epoch == 0:
            source = None  # the initialisation is known without the trunk
        # A cut of a trained network takes seconds: it does not wait until all others are trained.
        priority = 10 if own.checkpoint is not None or spec.minimum(minimum).total_epochs else 5
        yield Task(Kind.TRAIN, minimum, needs=() if source is None else (f"train:{source}",), priority=priority)
    for name, curve in curves.items():
        yield Task(Kind.FIT, name, needs=(f"train:{curve.start}", f"train:{curve.end}"), priority=20)
    # Frozen BatchNorm statistics are those of the first minimum, wherever one looks.
    frozen = (f"train:{next(iter(spec.minima))}",) if spec.batch_norm == "frozen" else ()
    every_point = (*(f"train:{name}" for name in spec.minima), *(f"fit:{name}" for name in curves))
    # The plane that shows the claim is the first that people see, so it fills in first.
    for name in planes_in_order(
        {name: plane.through or () for name, plane in planes.items()}, spec.between, spec.control
    ):
        plane = planes[name]
        needs = tuple(_maker(point) for point in plane.through or filter(None, (plane.around, plane.trajectory)))
        needs += _direction_needs(spec, name)
        yield Task(Kind.FRAME, name, needs=needs, after=every_point, priority=30)
        before: tuple[str, ...] = (f"frame:{name}", *frozen)
        if plane.accuracy is not None:
            yield from _rounds(name, before)
            before = (f"picture:{name}:{ROUNDS - 1}",)
        for index, tile in enumerate(plane_tiles(spec, name)):
            yield Task(Kind.SURFACE, name, index, needs=before, priority=40 + min(tile.level, 9))
    profiles = []
    for start, end in spec.lines:
        needs = (f"train:{start}", f"train:{end}", *frozen)
        profiles.append(Task(Kind.LINE, line_name(start, end), needs=needs, priority=50))
        if spec.align != "none":
            profiles.append(Task(Kind.ALIGN, line_name(start, end), needs=needs, priority=51))
    profiles += [Task(Kind.CURVE, name, needs=(f"fit:{name}", *frozen), priority=50) for name in curves]
    profiles += [Task(Kind.SHARPNESS, name, needs=(f"train:{name}", *frozen), priority=51) for name in spec.minima]
    yield from profiles
    for name in spec.minima:
        if _may_have_zero_groups(spec, name):
            yield Task(Kind.COMPACT, name, needs=(f"train:{name}",), priority=52)
    for name, members in (spec.ensembles or {}).items():
        needs = (*(f"train:{member}" for member in members), *frozen)
        yield Task(Kind.ENSEMBLE, name, needs=needs, priority=52)
    yield from _curvature_tasks(spec, frozen)
    if spec.between is not None:
        pair = next(pair for pair in spec.lines if set(pair) == set(spec.between))
        others = tuple(task.id for task in profiles)
        yield Task(Kind.VERDICT, "experiment", needs=(f"line:{line_name(*pair)}",), after=others, priority=60)


def _curvature_tasks(spec: Spec, frozen: tuple[str, ...]) -> Iterator[Task]:
    bases = trials(spec)
    for name in curved_minima(spec):
        spectrum = f"curvature:{name}"
        yield Task(Kind.CURVATURE, name, needs=(f"train:{name}", *frozen), priority=53)
        if spec.curvature is not None and spec.curvature.directions:
            yield Task(Kind.DIRECTIONS, name, needs=(spectrum,), priority=54)
        for epoch in measured_epochs(spec, name):
            yield Task(Kind.SNAPSHOT_CURVATURE, name, epoch, needs=(spectrum,), priority=56)
    for run, base in bases.items():
        yield Task(Kind.TRIAL, run, needs=(f"directions:{base}", f"train:{run}"), priority=55)


def _direction_needs(spec: Spec, plane: str) -> tuple[str, ...]:
    """What a plane of measured directions needs beside its centre: them, and the judged minima, which it must show."""
    found = spec.all_planes[plane]
    if found.directions is None:
        return ()
    judged = tuple(f"train:{name}" for name in spec.between or () if name != found.around)
    subspace = (f"directions:{found.around}",) if "flattest" in found.directions else ()
    return (f"curvature:{found.around}", *subspace, *judged)


def _rounds(plane: str, before: tuple[str, ...]) -> Iterator[Task]:
    """The rounds of an estimated plane: parts, and a picture of them all."""
    for number in range(ROUNDS):
        parts = [
            Task(Kind.ESTIMATE, plane, part_index(number, part), needs=before, priority=40 + min(number, 9))
            for part in range(PARTS)
        ]
        yield from parts
        yield Task(Kind.PICTURE, plane, number, needs=tuple(part.id for part in parts), priority=40 + min(number, 9))
        before = (f"picture:{plane}:{number}",)


def _may_have_zero_groups(spec: Spec, minimum: str) -> bool:
    """Whether a network may have something to remove: plain SGD makes no exact zeros."""
    own = spec.minima[minimum]
    if own.checkpoint is not None:
        return True
    run = spec.minimum(minimum)
    return (
        run.optimizer not in ("sgd", "adamw", "sam")
        or run.method is not None
        or (run.of is not None and _may_have_zero_groups(spec, run.of))
    )


def _maker(point: str) -> str:
    """The task that makes a named point: a minimum, or a bend of a curve."""
    name, _, bend = point.partition(".")
    return f"fit:{name}" if bend else f"train:{name}"
