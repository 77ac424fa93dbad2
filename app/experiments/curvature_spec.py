"""The field `curvature` of a spec: which minima get the spectrum of their Hessian, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from valleyscope.app.experiments.spec_errors import InvalidField
from valleyscope.landscape.curvature.vector_memory import spectrum_bytes

if TYPE_CHECKING:
    from valleyscope.app.experiments.spec import Spec
    from valleyscope.app.experiments.spec_parts import Minimum, Plane

MOST_SNAPSHOTS: Final = 40
"""A longer training is sampled evenly."""
_SAME_BATCHES: Final = (
    *("epochs", "batch_size", "lr", "schedule", "momentum", "weight_decay"),
    *("initialisation", "order", "augmentation", "augment"),
)

Direction = Literal["sharpest", "flattest"] | int


class Curvature(BaseModel):
    """Eigenvalues, trace and spectral density of the Hessian of the train loss at minima."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    minima: tuple[str, ...] | None = Field(
        None, min_length=1, max_length=64, description="minima whose curvature is measured; by default all"
    )
    top: int = Field(20, ge=1, le=2000, description="largest eigenvalues to find")
    lowest: int = Field(2, ge=0, le=2000, description="most negative eigenvalues to find")
    kind: Literal["hessian", "ggn"] = Field("hessian", description="hessian, or ggn: generalised Gauss-Newton matrix")
    density: bool = Field(True, description="estimate the density of all eigenvalues")
    probes: int = Field(10, ge=2, le=1000, description="random directions for the trace and the density")
    samples: int | None = Field(
        None, ge=1, le=10**9, description="training samples, from the first; by default those of the spec's `samples`"
    )
    directions: bool = Field(
        False, description="direction factors of the groups, and the theorem put to the test on AltSDP runs"
    )
    cut: float = Field(
        1e-3,
        gt=0,
        le=1e9,
        description="eigenvalue above which a direction is not flat; all above it are found, in 2.5 products each",
    )
    relative: bool = Field(False, description="the cut is a share of the largest eigenvalue")
    snapshots: bool = Field(True, description="largest eigenvalue and trace along training, where snapshots are kept")
    memory: float = Field(4.0, gt=0, le=100_000, description="gigabytes that vectors of weights may take")

    @property
    def memory_limit(self) -> int:
        return int(self.memory * 1e9)

    @property
    def cuts(self) -> list[float]:
        """The cuts at which direction factors are shown, the highest first; the last one counts."""
        found = [self.cut * factor for factor in (100.0, 30.0, 10.0, 3.0, 1.0)]
        return [cut for cut in found if not self.relative or cut < 1]


def curvature_errors(spec: Spec) -> Iterator[InvalidField]:
    """What is wrong with the curvature of a spec, and with planes that need it."""
    found = spec.curvature
    if found is not None:
        for index, name in enumerate(found.minima or ()):
            if name not in spec.minima:
                message = f"{name!r} is not a minimum of this spec: use one of {', '.join(spec.minima)}"
                yield InvalidField(("curvature", "minima", index), name, message)
        if spec.batch_norm == "running":
            message = "curvature needs BatchNorm statistics that the loss depends on: use population or frozen"
            yield InvalidField(("batch_norm",), spec.batch_norm, message)
        if found.relative and found.cut >= 1:
            message = f"cut is {found.cut:g} with relative: give a share of the largest eigenvalue, below 1"
            yield InvalidField(("curvature", "cut"), found.cut, message)
    for name, plane in (spec.planes or {}).items():
        if plane.directions is not None and plane.around in spec.minima:
            yield from _plane_errors(spec, name, plane)


def _plane_errors(spec: Spec, name: str, plane: Plane) -> Iterator[InvalidField]:
    found, centre = spec.curvature, plane.around
    if found is None or centre not in curved_minima(spec):
        message = f"directions need the curvature of {centre!r}: give curvature: {{minima: [{centre}]}}"
        yield InvalidField(("planes", name, "directions"), list(plane.directions or ()), message)
        return
    for index, direction in enumerate(plane.directions or ()):
        path = ("planes", name, "directions", index)
        if isinstance(direction, int) and direction > found.top:
            message = f"eigenvector {direction} is not found: curvature.top is {found.top}, raise it"
            yield InvalidField(path, direction, message)
        if direction == "flattest" and not found.directions:
            message = "'flattest' lies in the flat subspace, which is not measured: add directions: true to curvature"
            yield InvalidField(path, direction, message)


def curved_minima(spec: Spec) -> list[str]:
    """The minima whose curvature is measured, in the order of the spec."""
    if spec.curvature is None:
        return []
    wanted = spec.minima if spec.curvature.minima is None else spec.curvature.minima
    return [name for name in spec.minima if name in wanted]


def measured_epochs(spec: Spec, name: str) -> list[int]:
    """The epochs after which snapshots of a minimum are kept, of which the curvature is measured."""
    if spec.curvature is None or not spec.curvature.snapshots or spec.minima[name].checkpoint is not None:
        return []
    run = spec.minimum(name)
    kept = [epoch for epoch in range(1, run.total_epochs + 1) if run.keeps_snapshot_of(epoch)]
    if len(kept) <= MOST_SNAPSHOTS:
        return kept
    step = (len(kept) - 1) / (MOST_SNAPSHOTS - 1)
    return [kept[round(index * step)] for index in range(MOST_SNAPSHOTS)]


def trials(spec: Spec) -> dict[str, str]:
    """AltSDP runs on which the theorem is put to the test, each with the SGD run on the same batches."""
    if spec.curvature is None or not spec.curvature.directions:
        return {}
    runs = {name: spec.minimum(name) for name, own in spec.minima.items() if own.checkpoint is None}
    bases = [name for name in curved_minima(spec) if name in runs and _is_plain_sgd(runs[name])]
    found = {}
    for name, run in runs.items():
        if run.method_name != "altsdp" or run.of is not None or run.structure == "element":
            continue
        base = next((base for base in bases if _same_batches(runs[base], run)), None)
        if base is not None:
            found[name] = base
    return found


def _is_plain_sgd(run: Minimum) -> bool:
    return run.method_name is None and run.optimizer == "sgd"


def _same_batches(first: Minimum, second: Minimum) -> bool:
    return all(getattr(first, field) == getattr(second, field) for field in _SAME_BATCHES)


def size_errors(spec: Spec, parameters: int) -> Iterator[InvalidField]:
    """What is wrong with the curvature of a spec for a network of so many weights."""
    found = spec.curvature
    if found is None:
        return
    for field in ("top", "lowest"):
        if (count := getattr(found, field)) > parameters:
            message = f"{field} is {count}; the network has {parameters:,} weights: give {parameters} or less"
            yield InvalidField(("curvature", field), count, message)
    needed = spectrum_bytes(parameters, found.top, found.lowest, found.probes)
    if needed > found.memory_limit:
        message = (
            f"vectors for top={found.top}, lowest={found.lowest} and probes={found.probes} of {parameters:,} weights "
            f"take {needed / 1e9:.3g} GB, the limit is {found.memory:g} GB: ask for less, or raise curvature.memory"
        )
        yield InvalidField(("curvature", "memory"), found.memory, message)
