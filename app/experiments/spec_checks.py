"""What the parts of a spec must agree on; refused before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import ValidationError

from valleyscope.app.experiments.curvature_spec import curvature_errors
from valleyscope.app.experiments.families import family_errors
from valleyscope.app.experiments.forks import fork_errors
from valleyscope.app.experiments.spec_errors import InvalidField
from valleyscope.app.experiments.spec_errors import Path as FieldPath
from valleyscope.landscape.storage.records import coinciding_lines, line_name
from valleyscope.training.dataset_sources import SOURCES
from valleyscope.training.methods.requirements import missing_requirement
from valleyscope.training.models import describe_models

if TYPE_CHECKING:
    from valleyscope.app.experiments.spec import Spec
    from valleyscope.app.experiments.spec_parts import Plane

_MIN_SNAPSHOTS = 3


def reference_errors(spec: Spec) -> Iterator[InvalidField]:
    """All that is wrong with how the parts of a spec refer to each other."""
    yield from _loss_errors(spec)
    yield from _split_errors(spec)
    yield from _method_errors(spec)
    yield from fork_errors(spec)
    yield from family_errors(spec)
    yield from _curve_errors(spec)
    yield from _plane_errors(spec)
    yield from _verdict_errors(spec)
    yield from curvature_errors(spec)


def _loss_errors(spec: Spec) -> Iterator[InvalidField]:
    if spec.loss != "cross_entropy" and (spec.dataset in SOURCES or spec.dataset.startswith(("folder:", "hf:"))):
        message = (
            f"{spec.loss!r} needs numbers as targets, and {spec.dataset!r} has class numbers: use cross_entropy, "
            "or npz:PATH with numbers as y_train and y_test"
        )
        yield InvalidField(("loss",), spec.loss, message)


def _method_errors(spec: Spec) -> Iterator[InvalidField]:
    if spec.training.of is not None:
        yield InvalidField(("training", "of"), spec.training.of, "training cannot have it: give `of` in a minimum")
    for name, own in spec.minima.items():
        path: FieldPath = ("minima", name, "of")
        if own.of is not None and own.of not in spec.minima:
            yield _unknown_minimum(spec, path, own.of)
        elif own.of is not None and name in spec.sources(name):
            yield InvalidField(path, own.of, f"{name!r} would start from itself: use the weights of another minimum")
        if own.checkpoint is not None:
            continue
        yield from _merged_errors(spec, name)


def _merged_errors(spec: Spec, name: str) -> Iterator[InvalidField]:
    """What is wrong with a minimum's settings together with those that it takes from `training`."""
    try:
        merged = spec.minimum(name)
    except ValidationError as error:
        for detail in error.errors():
            message = detail["msg"].removeprefix("Value error, ")
            yield InvalidField(("minima", name), None, f"together with training: {message}")
        return
    architecture = describe_models().get(spec.model.name)
    batch_norm = None if architecture is None else architecture.batch_norm
    missing = missing_requirement(merged, batch_norm, spec.minima[name].model_fields_set)
    if missing is not None:
        field, message = missing
        yield InvalidField(("minima", name, field), getattr(merged, field), message)


def _split_errors(spec: Spec) -> Iterator[InvalidField]:
    given = list(spec.splits)
    if "train" not in given:
        yield InvalidField(("splits",), given, f"{given} lacks 'train', on which barriers are measured: add it")
    if len(set(given)) != len(given):
        yield InvalidField(("splits",), given, f"{given} names a split twice: remove one")


def _curve_errors(spec: Spec) -> Iterator[InvalidField]:
    lines = [line_name(*pair) for pair in spec.lines]
    if (line := coinciding_lines(spec.minima)) is not None:
        yield InvalidField(("minima",), list(spec.minima), f"two lines would have the name {line!r}: rename a minimum")
    for name, curve in (spec.curves or {}).items():
        if name in spec.minima:
            yield InvalidField(("curves", name), name, "a minimum already has this name: rename the curve")
        if name in lines:
            yield InvalidField(
                ("curves", name), name, "the line between two minima already has this name: rename the curve"
            )
        for field, end in (("from", curve.start), ("to", curve.end)):
            if end not in spec.minima:
                yield _unknown_minimum(spec, ("curves", name, field), end)


def _plane_errors(spec: Spec) -> Iterator[InvalidField]:
    points = set(spec.minima) | {bend for name in spec.all_curves for bend in spec.bends(name)}
    for name, plane in (spec.planes or {}).items():
        for index, point in enumerate(plane.through or ()):
            if point not in points:
                message = f"{point!r} is unknown: use one of {', '.join(sorted(points))}"
                yield InvalidField(("planes", name, "through", index), point, message)
        if plane.aligned:
            yield from _aligned_plane_errors(spec, name, plane)
        for field in ("around", "trajectory"):
            centre = getattr(plane, field)
            if centre is not None and centre not in spec.minima:
                yield _unknown_minimum(spec, ("planes", name, field), centre)
        if plane.trajectory in spec.minima:
            yield from _trajectory_errors(spec, ("planes", name, "trajectory"), plane.trajectory)


def _aligned_plane_errors(spec: Spec, name: str, plane: Plane) -> Iterator[InvalidField]:
    path: FieldPath = ("planes", name, "aligned")
    if spec.align == "none":
        yield InvalidField(path, True, "an aligned plane needs `align: weights` or `activations` in the spec")
    if not set(plane.through or ("",)) <= set(spec.minima):
        yield InvalidField(path, True, "an aligned plane goes through three minima, not through bends")


def _trajectory_errors(spec: Spec, path: FieldPath, name: str) -> Iterator[InvalidField]:
    """Principal directions need three points; without this check training would run first."""
    if spec.minima[name].checkpoint is not None:
        yield InvalidField(
            path, name, f"{name!r} is a checkpoint without a training path: choose a minimum that is trained"
        )
        return
    run = spec.minimum(name)
    if (kept := run.snapshot_count) < _MIN_SNAPSHOTS:
        message = (
            f"the training path of {name!r} would have {kept} of the {_MIN_SNAPSHOTS} points that a plane "
            f"needs (epochs={run.epochs}, snapshots={run.snapshots}): train for more epochs, or keep more snapshots"
        )
        yield InvalidField(path, name, message)


def _verdict_errors(spec: Spec) -> Iterator[InvalidField]:
    between, control = spec.verdict.between, spec.verdict.control
    for index, name in enumerate(between or ()):
        if name not in spec.minima:
            yield _unknown_minimum(spec, ("verdict", "between", index), name)
    if control is not None and control not in spec.minima:
        yield _unknown_minimum(spec, ("verdict", "control"), control)
    if between is not None and len({*between, control}) < 3:
        yield InvalidField(
            ("verdict", "between"), list(between), f"{list(between)} and control={control!r} must differ"
        )


def _unknown_minimum(spec: Spec, path: FieldPath, name: str) -> InvalidField:
    return InvalidField(path, name, f"{name!r} is not a minimum of this spec: use one of {', '.join(spec.minima)}")
