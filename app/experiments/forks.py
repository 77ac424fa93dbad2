"""Minima that fork from the run of another one: what they take from it, what it must keep, and what can be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from valleyscope.app.experiments.spec_errors import InvalidField
from valleyscope.app.experiments.spec_errors import Path as FieldPath
from valleyscope.training.settings import nothing_left

if TYPE_CHECKING:
    from valleyscope.app.experiments.spec import Spec

_NOT_INHERITED = ("fork", "of", "snapshots", "checkpoint")
_SEEDS = ("order_seed", "augment_seed")


def start_of(spec: Spec, name: str) -> str | None:
    """The minimum that another one starts from: by its weights, or as the trunk of its run."""
    own = spec.minima[name]
    return own.of if own.fork is None else own.fork.start


def trunk_of(spec: Spec, name: str) -> str | None:
    """The trunk of a fork, if it is one that can be forked; else None."""
    fork = spec.minima[name].fork
    if fork is None or fork.start not in spec.minima or name in spec.sources(name):
        return None
    return None if spec.minima[fork.start].checkpoint is not None else fork.start


def inherited_from_trunk(spec: Spec, name: str, trunk: str) -> dict[str, Any]:
    """The settings that a fork takes from its trunk; with a seed of its own it has another order of batches."""
    run = spec.minimum(trunk)
    dropped = [*_NOT_INHERITED, *(_SEEDS if "seed" in spec.minima[name].model_fields_set else ())]
    values = run.model_dump(exclude_unset=True)
    return {field: value for field, value in values.items() if field not in dropped} | {"init_seed": run.initialisation}


def kept_epochs(spec: Spec, trunk: str) -> list[int]:
    """The epochs after which a minimum keeps its state for forks."""
    forks = (own.fork for own in spec.minima.values())
    return sorted({fork.epoch for fork in forks if fork is not None and fork.start == trunk and fork.epoch > 0})


def fork_errors(spec: Spec) -> Iterator[InvalidField]:
    """What is wrong with the forks of a spec, before anything is trained."""
    if spec.training.fork is not None:
        given = spec.training.fork.start
        yield InvalidField(("training", "fork"), given, "training cannot have it: give `fork` in a minimum")
    for name, own in spec.minima.items():
        if own.fork is not None:
            yield from _errors_of(spec, name)


def _errors_of(spec: Spec, name: str) -> Iterator[InvalidField]:
    own = spec.minima[name]
    assert own.fork is not None
    trunk, epoch = own.fork.start, own.fork.epoch
    path: FieldPath = ("minima", name, "fork")
    if trunk not in spec.minima:
        message = f"{trunk!r} is not a minimum of this spec: use one of {', '.join(spec.minima)}"
        yield InvalidField((*path, "from"), trunk, message)
        return
    if name in spec.sources(name):
        yield InvalidField((*path, "from"), trunk, f"{name!r} would fork from itself: fork another minimum")
        return
    if spec.minima[trunk].checkpoint is not None:
        message = f"{trunk!r} is a checkpoint, which has no epochs to fork from: use `of: {trunk}`, or train it"
        yield InvalidField((*path, "from"), trunk, message)
        return
    if "init_seed" in own.model_fields_set:
        message = f"a fork has the initialisation of its trunk {trunk!r}: remove init_seed"
        yield InvalidField(("minima", name, "init_seed"), own.init_seed, message)
    yield from _epoch_errors(spec, name, trunk, _epoch_path(spec, name, epoch))


def _epoch_errors(spec: Spec, name: str, trunk: str, path: FieldPath) -> Iterator[InvalidField]:
    try:
        own, run = spec.minimum(name), spec.minimum(trunk)
    except ValueError:  # named with the minimum itself
        return
    epoch = own.first_epoch
    if epoch > run.main_epochs:
        trained = f"is trained for {run.main_epochs} epochs" if run.main_epochs else "is not trained, only cut"
        yield InvalidField(path, epoch, f"epoch {epoch} is beyond {trunk!r}, which {trained}: fork earlier")
    elif run.fork is not None and epoch <= run.first_epoch and run.first_epoch > 0:
        message = f"{trunk!r} itself starts at epoch {run.first_epoch} of {run.fork.start!r}: fork that one"
        yield InvalidField(path, epoch, message)
    elif epoch == 0 and run.of is not None:
        yield InvalidField(path, epoch, f"{trunk!r} starts from the weights of {run.of!r}: use `of: {run.of}` instead")
    elif epoch >= own.epochs:
        yield InvalidField(path, epoch, nothing_left(own))


def _epoch_path(spec: Spec, name: str, epoch: int) -> FieldPath:
    """Where the epoch was given: in the sweep, if that made the fork."""
    if spec.forks is not None and name in spec.forks.made and epoch in spec.forks.epochs:
        return "forks", "epochs", spec.forks.epochs.index(epoch)
    return "minima", name, "fork", "epoch"
