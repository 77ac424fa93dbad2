"""The saved state of a training run, from which a killed run resumes."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.training.atomic_write import replace_file
from valleyscope.training.datasets import Dataset
from valleyscope.training.epochs import Epoch
from valleyscope.training.settings import Training

STATE_FILE = "training-state.pt"
_LATER_FIELDS = {
    "sparsity", "method", "macs", "of", "retrain", "penalty", "averaging", "polarization", "score", "scope", "periods",
    "cost_weight", "measure_every", "betas", "eps", "rho", "options", "fork",
    "strength", "factors", "curvature_cut", "curvature_samples",
}  # fmt: skip


class WrongState(ValueError):
    """A saved state belongs to another run, or cannot be read."""


@dataclass(frozen=True)
class State:
    """The state of a run after `step` batches of `epoch` (both counted from 0)."""

    epoch: int
    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    random: Tensor
    epochs: tuple[Epoch, ...]
    seconds: float
    method: dict[str, Any] = field(default_factory=dict)


def identity(model: nn.Module, data: Dataset, settings: Training) -> str:
    """A fingerprint of settings, data and architecture."""
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    described = settings.model_dump(mode="json")
    # Without the fields that older versions did not have, where they are unused, so that runs of those resume.
    described = {name: value for name, value in described.items() if value is not None or name not in _LATER_FIELDS}
    if not settings.tie_residual:
        del described["tie_residual"]
    parts = [described, data.fingerprint, shapes]
    text = json.dumps(parts if data.loss == "cross_entropy" else [*parts, data.loss], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def save_state(directory: Path, run: str, state: State) -> None:
    buffer = io.BytesIO()
    values = dict(vars(state)) | {"epochs": [epoch.to_json() for epoch in state.epochs], "run": run}
    torch.save(values, buffer)
    replace_file(directory / STATE_FILE, buffer.getvalue())


def load_state(directory: Path, run: str) -> State | None:
    """The saved state of this run; None if there is none."""
    path = directory / STATE_FILE
    if not path.exists():
        return None
    try:
        values = torch.load(path, weights_only=True, map_location="cpu")
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError) as error:
        raise WrongState(f"{path} cannot be read ({error}); delete it to train from the start") from error
    if values.pop("run", None) != run:
        raise WrongState(
            f"{path} belongs to a run with other settings, data or architecture; "
            "use another directory, or delete it to train from the start"
        )
    return State(**values | {"epochs": tuple(Epoch.from_json(epoch) for epoch in values["epochs"])})
