"""States that a run keeps after some of its epochs, from which other runs fork.

A fork has everything that the trunk had after epoch k: weights, BatchNorm statistics, momentum, records, and the count
of steps; it goes on with epoch k + 1 of its own schedule and order. If its settings are the trunk's but for seeds, it
also has the state of the trunk's method (the threshold G and v of AltSDP), and without another order of batches it is
the trunk again, bit by bit. Under another method or other options that method starts at the fork, on the trunk's
weights.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from valleyscope.training.atomic_write import replace_file
from valleyscope.training.checkpoints import check_state
from valleyscope.training.epochs import Epoch
from valleyscope.training.settings import Training, fork_file
from valleyscope.training.state import State

MOMENTUM = "momentum_buffer"
_FIELDS = set(Training.model_fields)  # a minimum of a spec has more
_COMPARED = _FIELDS - {"seed", "init_seed", "order_seed", "augment_seed", "augment", "snapshots", "fork"}


class NoForkPoint(ValueError):
    """The trunk did not keep the state that a fork needs."""


@dataclass(frozen=True)
class ForkPoint:
    """The state of a trunk, its settings, and its momentum by the names of the parameters."""

    state: State
    settings: Training
    momentum: dict[str, Tensor]

    def continues(self, settings: Training) -> bool:
        """Whether a fork with these settings differs from the trunk in its seeds at most."""
        own, trunk = (found.model_dump(include=_COMPARED) for found in (settings, self.settings))
        return own == trunk

    def restore_momentum(self, optimizer: Optimizer, model: nn.Module) -> None:
        """Give an optimiser with momentum what the trunk had gathered."""
        for name, parameter in model.named_parameters():
            if name in self.momentum and any(group.get("momentum") for group in optimizer.param_groups):
                optimizer.state[parameter][MOMENTUM] = self.momentum[name].to(parameter).clone()


def save_fork_point(directory: Path, state: State, settings: Training, model: nn.Module, optimizer: Optimizer) -> None:
    momentum = {
        name: optimizer.state[parameter][MOMENTUM]
        for name, parameter in model.named_parameters()
        if optimizer.state.get(parameter, {}).get(MOMENTUM) is not None
    }
    values = dict(vars(state)) | {"epochs": [epoch.to_json() for epoch in state.epochs]}
    buffer = io.BytesIO()
    torch.save(
        {"state": values, "settings": settings.model_dump(mode="json", include=_FIELDS), "momentum": momentum}, buffer
    )
    replace_file(directory / fork_file(state.epoch), buffer.getvalue())


def check_kept(epochs: Collection[int], settings: Training, directory: str | Path | None) -> None:
    """Raise a ValueError unless a run can keep its state after these epochs."""
    if epochs and directory is None:
        raise ValueError(f"keep={sorted(epochs)}: states are kept in the directory of the run: give directory, too")
    if unknown := [epoch for epoch in sorted(epochs) if not settings.first_epoch < epoch <= settings.main_epochs]:
        raise ValueError(
            f"keep={unknown}: this run trains the epochs {settings.first_epoch + 1} to {settings.main_epochs}"
        )


def fork_point(settings: Training, trunk: str | Path | None, model: nn.Module) -> ForkPoint | None:
    """Where a fork starts; a fork at epoch 0 shares nothing but the initialisation, which is the model as given."""
    if settings.fork is None:
        if trunk is not None:
            raise ValueError(f"trunk={str(trunk)!r}: give fork, too, as fork={{'from': 'sgd', 'epoch': 5}}")
        return None
    epoch = settings.fork.epoch
    if epoch == 0:
        return None
    if trunk is None:
        raise ValueError(f"fork.epoch={epoch}: give trunk, the directory in which the trunk was trained")
    found = _load(Path(trunk), epoch)
    check_state(found.state.model, model, source=str(Path(trunk) / fork_file(epoch)))
    return found


def _load(directory: Path, epoch: int) -> ForkPoint:
    if directory.is_file():
        raise NoForkPoint(
            f"trunk={str(directory)!r} is a file: a checkpoint has no epochs to fork from; give the directory of a run"
        )
    path = directory / fork_file(epoch)
    if not path.is_file():
        kept = ", ".join(str(int(file.stem.rpartition("-")[2])) for file in sorted(directory.glob("fork-*.pt")))
        raise NoForkPoint(
            f"{path} does not exist{f' (the trunk kept the epochs {kept})' if kept else ''}: train the trunk with "
            f"directory={str(directory)!r} and keep=[{epoch}] first"
        )
    try:
        values: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    except (RuntimeError, EOFError, OSError, LookupError, ValueError, pickle.UnpicklingError) as error:
        raise NoForkPoint(f"{path} cannot be read ({error}): train the trunk again") from error
    state = values["state"]
    epochs = tuple(Epoch.from_json(record) for record in state["epochs"])
    return ForkPoint(State(**state | {"epochs": epochs}), Training(**values["settings"]), values["momentum"])
