"""How far an experiment is, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set

from valleyscope.app.experiments.cost import CORE, estimate
from valleyscope.app.experiments.estimate_plan import PARTS
from valleyscope.app.experiments.plan import Kind, Task, plane_tiles
from valleyscope.app.experiments.spec import Spec

_SMALL_TASK_SECONDS = 0.3  # what every task costs besides its arithmetic
_ENOUGH_SECONDS = 3.0
_ENOUGH_SHARE = 0.005


class ProgressEstimator:
    """Weighs tasks by their estimated cost, and learns from the clock how fast they go.

    The clock is one that nobody can set.
    """

    def __init__(self, spec: Spec, tasks: tuple[Task, ...]) -> None:
        self._tasks = tasks
        self._weights = _weights(spec, tasks)
        self._total = sum(self._weights.values())
        self._began: tuple[float, float] | None = None

    def share(self, done: Set[str], under_way: Mapping[str, float]) -> float:
        """The share of the work that is done, counting parts of tasks that are under way."""
        complete = sum(self._weights[task] for task in done)
        partly = sum(self._weights[task] * share for task, share in under_way.items() if task not in done)
        return min(1.0, (complete + partly) / self._total)

    def stage(self, ended: Set[str]) -> str:
        """The first stage that has something left to do."""
        return next((task.stage for task in self._tasks if task.id not in ended), "verdict")

    def seconds_left(self, share: float) -> float | None:
        """At the pace since this meter first saw something move; None until there is a pace."""
        now = time.monotonic()
        if self._began is None or share <= self._began[1]:
            self._began = (now, share)
        then, before = self._began
        if now - then < _ENOUGH_SECONDS or share - before < _ENOUGH_SHARE:
            return None
        return round((1.0 - share) * (now - then) / (share - before), 1)


def _weights(spec: Spec, tasks: tuple[Task, ...]) -> dict[str, float]:
    seconds = {stage: 3600 * CORE.hours(work) for stage, work in estimate(spec).stages.items()}
    tiles = {name: plane_tiles(spec, name) for name in spec.all_planes}
    parts: dict[str, float] = {}
    for task in tasks:
        match task.kind:
            case Kind.TRAIN:
                minimum = spec.minimum(task.subject)
                parts[task.id] = 0.1 if minimum.checkpoint is not None else float(max(1, minimum.own_epochs))
            case Kind.FIT:
                parts[task.id] = float(spec.all_curves[task.subject].epochs)
            case Kind.SURFACE:
                estimated = spec.all_planes[task.subject].accuracy is not None
                parts[task.id] = 0.0 if estimated else float(len(tiles[task.subject][task.index]))
            case Kind.CURVATURE | Kind.DIRECTIONS:
                parts[task.id] = 5.0
            case Kind.SNAPSHOT_CURVATURE:
                parts[task.id] = 1.0
            case Kind.ESTIMATE:
                # The first rounds do most of the work; later ones are rarely needed.
                parts[task.id] = 0.5 ** (task.index // PARTS)
            case Kind.CURVE | Kind.LINE | Kind.ALIGN | Kind.SHARPNESS | Kind.COMPACT | Kind.ENSEMBLE:
                parts[task.id] = 1.0
            case Kind.FRAME | Kind.PICTURE | Kind.VERDICT | Kind.TRIAL:
                parts[task.id] = 0.0
    sums: dict[str, float] = {}
    for task in tasks:
        sums[task.stage] = sums.get(task.stage, 0.0) + parts[task.id]
    return {
        task.id: _SMALL_TASK_SECONDS + seconds.get(task.stage, 0.0) * parts[task.id] / (sums[task.stage] or 1.0)
        for task in tasks
    }
