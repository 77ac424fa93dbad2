"""The tasks of an estimated surface: each part of a round leaves its losses in `work/`, from which others go on.

A process replays the rounds so far from these files. What a round computes is written in each of its files, so all
parts agree on it, and an accuracy that is tightened later continues from all that is there.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from valleyscope.app.experiments.estimate_plan import PARTS, part_file
from valleyscope.app.experiments.experiment_writer import WORK
from valleyscope.app.experiments.task_results import EstimatedPart, EstimatedPlane
from valleyscope.app.tasks.context import CancelCheck, TaskContext
from valleyscope.landscape.analysis.estimated_surface import grid_of, rounds_of, why_exact
from valleyscope.landscape.estimation.known_pairs import Column, Request
from valleyscope.landscape.estimation.requests import compute, merge_columns, split_request
from valleyscope.landscape.estimation.rounds import SplitRounds
from valleyscope.landscape.evaluation.evaluator import Evaluator
from valleyscope.landscape.storage.atomic_write import write_atomically


class PlaneEstimate:
    """The rounds of one plane, replayed as far as its files go."""

    def __init__(self, context: TaskContext, name: str) -> None:
        spec = context.spec.all_planes[name]
        assert spec.accuracy is not None
        plane = context.plane(name)
        self._context = context
        self._name = name
        self.accuracy = spec.accuracy
        self.basis = plane.vectors
        self.x, self.y = plane.axes(spec.resolution, margin=spec.margin)
        points = [plane.coordinates(vector) for vector in context.points().values()]
        self.rounds: dict[str, SplitRounds] = {}
        self.notes: dict[str, str] = {}

        def begin(evaluator: Evaluator) -> None:
            for split in context.spec.splits:
                self.rounds[split] = rounds_of(
                    evaluator, split, self.x, self.y, accuracy=self.accuracy, seed=context.spec.seed, points=points
                )
                self.notes[split] = why_exact(evaluator, split)

        context.evaluate(begin)
        self.sizes = {split: rounds.size for split, rounds in self.rounds.items()}
        self._decided = -1
        self._added = -1
        self._requests: dict[str, list[Request]] = {}
        self.computed_rounds = 0

    def requests(self, round: int) -> dict[str, list[Request]]:
        """What a round computes, by split; nothing once the plane is settled."""
        self._add_until(round - 1)
        if self._decided < round:
            plan = self._read_plan(round)
            if plan is None:
                self._requests = {split: rounds.next() for split, rounds in self.rounds.items()}
            else:
                self._requests = plan
            self._decided = round
        return self._requests

    def add(self, round: int) -> bool:
        """Take in all parts of a round; returns whether it computed anything."""
        computed = any(self.requests(round).values())
        self._add_until(round)
        return computed

    def compute_part(self, round: int, part: int, cancelled: CancelCheck) -> int:
        """Compute a part of a round and leave its file; returns the number of pairs."""
        requests = self.requests(round)
        path = self._path(round, part)
        if not any(requests.values()) or path.is_file():
            return 0
        arrays: dict[str, Any] = {"plan": np.array(json.dumps(self._plan()))}
        pairs = 0
        for split, number, request in _numbered(requests):
            key = f"{split}.{number}"
            arrays[f"{key}.points"] = request.points
            if request.samples is not None:
                arrays[f"{key}.samples"] = request.samples
            if request.statistics is not None:
                arrays[f"{key}.statistics"] = request.statistics
            piece = split_request(request, self.sizes[split], PARTS)[part]
            if not piece.pairs(self.sizes[split]):
                continue
            pairs += piece.pairs(self.sizes[split])
            columns = self._compute(split, piece, cancelled)
            arrays[f"{key}.loss"] = np.stack([column.loss for column in columns])
            misses = [column.wrong for column in columns if column.wrong is not None]
            if misses:
                arrays[f"{key}.wrong"] = np.stack(misses)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        with write_atomically(path) as file:
            file.write(buffer.getvalue())
        return pairs

    def _compute(self, split: str, piece: Request, cancelled: CancelCheck) -> list[Column]:
        return self._context.evaluate(
            lambda evaluator: compute(evaluator, self.basis, self.x, self.y, split, piece, cancelled=cancelled)
        )

    @property
    def evaluated(self) -> float:
        """The share of all pairs that is computed."""
        shares = {split: 1.0 if rounds.exact else rounds.evaluated for split, rounds in self.rounds.items()}
        return sum(self.sizes[split] * share for split, share in shares.items()) / sum(self.sizes.values())

    @property
    def exact(self) -> list[str]:
        """The splits that are computed exactly."""
        return [split for split, rounds in self.rounds.items() if rounds.exact]

    def _plan(self) -> dict[str, Any]:
        return {
            split: {"state": rounds.state(), "requests": [request.kind for request in self._requests[split]]}
            for split, rounds in self.rounds.items()
        }

    def _read_plan(self, round: int) -> dict[str, list[Request]] | None:
        """What a round computes, from any of its files."""
        for part in range(PARTS):
            if not self._path(round, part).is_file():
                continue
            with np.load(self._path(round, part), allow_pickle=False) as arrays:
                plan = json.loads(str(arrays["plan"]))
                found: dict[str, list[Request]] = {}
                for split, decided in plan.items():
                    self.rounds[split].resume(decided["state"])
                    found[split] = [
                        Request(
                            arrays[f"{split}.{number}.points"],
                            arrays.get(f"{split}.{number}.samples"),
                            kind,
                            arrays.get(f"{split}.{number}.statistics"),
                        )
                        for number, kind in enumerate(decided["requests"])
                    ]
                return found
        return None

    def _add_until(self, round: int) -> None:
        while self._added < round:
            self._add(self._added + 1)

    def _add(self, round: int) -> None:
        requests = self.requests(round)
        self._added = round
        if not any(requests.values()):
            return
        self.computed_rounds = round + 1
        files = []
        for part in range(PARTS):
            with np.load(self._path(round, part), allow_pickle=False) as arrays:
                files.append({name: arrays[name] for name in arrays.files if name.endswith((".loss", ".wrong"))})
        for split, number, request in _numbered(requests):
            key = f"{split}.{number}"
            pieces, columns = [], []
            for piece, arrays in zip(split_request(request, self.sizes[split], PARTS), files, strict=True):
                if f"{key}.loss" in arrays:
                    pieces.append(piece)
                    columns.append(_columns(arrays[f"{key}.loss"], arrays.get(f"{key}.wrong")))
            self.rounds[split].add(request, merge_columns(request, pieces, columns))

    def _path(self, round: int, part: int) -> Any:
        return self._context.directory / part_file(WORK, self._name, round, part)


def compute_part(context: TaskContext, name: str, index: int, cancelled: CancelCheck) -> EstimatedPart:
    """A part of a round."""
    round, part = divmod(index, PARTS)
    return EstimatedPart(_estimate(context, name).compute_part(round, part, cancelled))


def make_picture(context: TaskContext, name: str, round: int) -> EstimatedPlane:
    """The whole plane after a round, with its errors."""
    estimate = _estimate(context, name)
    computed = estimate.add(round)
    open_splits = [rounds for rounds in estimate.rounds.values() if not rounds.exact]
    settled = all(rounds.good_enough() for rounds in open_splits)
    about: dict[str, Any] = {
        "accuracy": estimate.accuracy,
        "seed": context.spec.seed,
        "rounds": estimate.computed_rounds,
        "evaluated": estimate.evaluated,
        "settled": settled,
        "exact": estimate.exact,
        "note": "; ".join(estimate.notes[split] for split in estimate.exact),
    }
    if not computed:
        return EstimatedPlane({}, about)
    shape = len(estimate.y), len(estimate.x)
    grids = {s: grid_of(rounds.estimate(), shape) for s, rounds in estimate.rounds.items() if not rounds.exact}
    return EstimatedPlane(grids, about)


def exact_splits(context: TaskContext, name: str) -> list[str]:
    """The splits of an estimated plane that have to be computed exactly, once no round is left."""
    estimate = _estimate(context, name)
    round = 0
    while estimate.add(round):
        round += 1
    return estimate.exact


def _estimate(context: TaskContext, name: str) -> PlaneEstimate:
    found = context.estimates.get(name)
    if not isinstance(found, PlaneEstimate):
        found = context.estimates[name] = PlaneEstimate(context, name)
    return found


def _numbered(requests: dict[str, list[Request]]) -> list[tuple[str, int, Request]]:
    return [(split, number, request) for split, some in requests.items() for number, request in enumerate(some)]


def _columns(loss: Any, wrong: Any) -> list[Column]:
    return [Column(row, None if wrong is None else wrong[number]) for number, row in enumerate(loss)]
