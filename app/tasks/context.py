"""What the tasks of one experiment share in a process: data, network, minima, curves, planes and the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from valleyscope.app.experiments.experiment_writer import WORK
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.tasks.aligned_minimum import aligned_minimum
from valleyscope.app.tasks.measured_planes import measured_plane
from valleyscope.app.tasks.torch_device import SMALLEST_BLOCK, retry_smaller_blocks, torch_device
from valleyscope.landscape import Bezier, Plane, PolyChain, flatten
from valleyscope.landscape.evaluation.evaluator import Evaluator
from valleyscope.landscape.geometry.curves import Curve
from valleyscope.landscape.storage.records import Floats
from valleyscope.training import Dataset, build_model, load_dataset
from valleyscope.training.checkpoints import load_checkpoint
from valleyscope.training.losses import LossName

T = TypeVar("T")
Report = Callable[[float, dict[str, Any]], None]
"""What a task calls with the share that is done, and details."""
CancelCheck = Callable[[], bool]


@lru_cache(maxsize=2)
def dataset(name: str, root: Path | None, loss: LossName = "cross_entropy") -> Dataset:
    """A data set, kept in memory for the next task."""
    return load_dataset(name, root=root, device=torch_device(), loss=loss)


class TaskContext:
    """One experiment as its tasks see it; everything is read once and kept."""

    def __init__(self, spec: Spec, directory: Path, data_root: Path | None, checkpoints: Mapping[str, Path]) -> None:
        self.spec = spec
        self.directory = directory
        self.work = directory / WORK
        self.data_root = data_root
        self.checkpoints = checkpoints
        self._vectors: dict[str, Tensor] = {}
        self._aligned: dict[tuple[str, str], Tensor] = {}
        self._curves: dict[str, Curve] = {}
        self._planes: dict[str, Plane] = {}
        self.axes: dict[str, tuple[str, str]] = {}
        """What the axes of planes along measured directions are called."""
        self._evaluator: Evaluator | None = None
        self.estimates: dict[str, object] = {}
        """The estimates of planes as ``estimate_tasks`` keeps them."""

    @property
    def data(self) -> Dataset:
        return dataset(self.spec.dataset, self.data_root, self.spec.loss)

    def network(self, seed: int = 0) -> nn.Module:
        """A network of the spec's architecture, freshly initialised, in the memory of the machine."""
        return build_model(self.spec.model.model_dump(), self.data, seed=seed)

    def splits(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The samples that surfaces and profiles are measured on."""
        return {
            name: (x[: self.spec.samples], y[: self.spec.samples])
            for name, (x, y) in self.data.splits.items()
            if name in self.spec.splits
        }

    def minimum(self, name: str) -> Tensor:
        """The weights of a minimum as a flat vector."""
        if name not in self._vectors:
            self._vectors[name] = self.weights(self.minimum_file(name))
        return self._vectors[name]

    def curve(self, name: str) -> Curve:
        if name not in self._curves:
            points = load_file(self.curve_file(name))["points"]
            kind = Bezier if self.spec.all_curves[name].kind == "bezier" else PolyChain
            self._curves[name] = kind(points)
        return self._curves[name]

    def minimum_file(self, name: str) -> Path:
        return self.directory / f"{name}.safetensors"

    def curve_file(self, name: str) -> Path:
        return self.work / f"curve-{name}.safetensors"

    def path_file(self, name: str) -> Path:
        return self.work / f"path-{name}.npz"

    def sharpness_file(self, minimum: str) -> Path:
        return self.work / f"sharpness-{minimum}.json"

    def alignment_file(self, line: str) -> Path:
        return self.work / f"aligned-{line}.json"

    def compact_file(self, minimum: str) -> Path:
        return self.work / f"compact-{minimum}.json"

    def points(self) -> dict[str, Tensor]:
        """All named points that there are: minima, and the bends of curves."""
        named = {name: self.minimum(name) for name in self.spec.minima if self.minimum_file(name).is_file()}
        for name in self.spec.all_curves:
            if self.curve_file(name).is_file():
                named |= dict(zip(self.spec.bends(name), self.curve(name).points[1:-1], strict=True))
        return named

    def points_on(self, plane: str) -> dict[str, Tensor]:
        """All named points for a plane: on an aligned one, the minima that it goes through are aligned to the first."""
        spec = self.spec.all_planes[plane]
        first, *others = spec.through if spec.aligned and spec.through is not None else ("",)
        for other in others:
            if (other, first) not in self._aligned:
                self._aligned[other, first] = aligned_minimum(self, other, first)[0]
        return self.points() | {other: self._aligned[other, first] for other in others}

    def snapshots(self, minimum: str) -> Tensor:
        """The weights along a training run, one row each, oldest first."""
        return torch.stack([self.weights(file) for file in self.snapshot_files(minimum)])

    def trajectories(self, plane: str) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """The snapshots of every trained minimum that kept some, projected on a plane, and their distances from it."""
        found, offsets = {}, {}
        for minimum in self.spec.minima:
            if self.minimum_file(minimum).is_file() and (files := self.snapshot_files(minimum)):
                # One at a time: a hundred copies of a large network would not fit into memory.
                weights = map(self.weights, files)
                places = [(self.plane(plane).coordinates(each), self.plane(plane).distance(each)) for each in weights]
                found[minimum] = np.array([place for place, _ in places])
                offsets[minimum] = np.array([distance for _, distance in places])
        return found, offsets

    def snapshot_files(self, minimum: str) -> list[Path]:
        return sorted((self.work / minimum).glob("snapshot-*.safetensors"))

    def weights(self, file: Path) -> Tensor:
        """The weights of a checkpoint as a flat vector."""
        model = self.network()
        load_checkpoint(file, model)
        return flatten(model)

    def plane(self, name: str) -> Plane:
        if name not in self._planes:
            spec = self.spec.all_planes[name]
            if spec.through is not None:
                named = self.points_on(name)
                a, b, c = (named[point] for point in spec.through)
                self._planes[name] = Plane.through(a, b, c, names=spec.through, complete=spec.complete, seed=spec.seed)
            elif spec.around is not None and spec.directions is not None:
                self._planes[name] = self._measured_plane(name)
            elif spec.around is not None:
                self._planes[name] = Plane.around(
                    self.minimum(spec.around), self.network(), seed=spec.seed, name=spec.around
                )
            else:
                assert spec.trajectory is not None
                self._planes[name] = Plane.principal(self.snapshots(spec.trajectory))
        return self._planes[name]

    def _measured_plane(self, name: str) -> Plane:
        """A plane along measured directions; the judged minima are in its frame."""
        spec = self.spec.all_planes[name]
        assert spec.around is not None
        assert spec.directions is not None
        judged = [minimum for minimum in self.spec.between or () if minimum != spec.around]
        others = {minimum: self.minimum(minimum) for minimum in judged}
        plane, self.axes[name] = measured_plane(
            self.work, spec.around, self.minimum(spec.around), spec.directions, others
        )
        return plane

    def evaluate(self, action: Callable[[Evaluator], T]) -> T:
        """Do something with the evaluator; one that takes fewer samples at a time, where memory is full."""

        def attempt(block: int | None) -> T:
            if self._evaluator is None or (block is not None and block < self._evaluator.block):
                self._evaluator = None  # its memory is needed for the next
                model = self._reference().to(torch_device())
                self._evaluator = Evaluator(
                    model, self.splits(), loss=self.spec.loss, batch_norm=self.spec.batch_norm, block=block
                )
            return action(self._evaluator)

        return retry_smaller_blocks(
            attempt, lambda: SMALLEST_BLOCK if self._evaluator is None else self._evaluator.block
        )

    def _reference(self) -> nn.Module:
        """The network whose buffers count where BatchNorm statistics are `frozen`: the first minimum's."""
        model = self.network()
        if self.spec.batch_norm == "frozen":
            load_checkpoint(self.minimum_file(next(iter(self.spec.minima))), model)
        return model
