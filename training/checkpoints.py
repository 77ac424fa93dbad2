"""Checkpoints: safetensors files with the spec, the metrics and the library versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from valleyscope.training.atomic_write import replace_file

FORMAT = "valleyscope-checkpoint"
FORMAT_VERSION = 1


class BadCheckpoint(ValueError):
    """A file is not a checkpoint, or not one of this network."""


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and the metadata of the file."""

    state: dict[str, Tensor]
    spec: dict[str, Any]
    metrics: dict[str, Any]
    versions: dict[str, str]


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that results depend on."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    for library in ("valleyscope", "numpy", "safetensors"):
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    return found


def save_checkpoint(
    path: str | Path,
    weights: nn.Module | Mapping[str, Tensor],
    *,
    spec: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> None:
    """Write a network's state as safetensors, atomically."""
    state = weights.state_dict() if isinstance(weights, nn.Module) else weights
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "spec": json.dumps(spec or {}, sort_keys=True),
        "metrics": json.dumps(metrics or {}, sort_keys=True),
        "versions": json.dumps(versions(), sort_keys=True),
    }
    # Copies: safetensors does not accept tensors that share memory, such as tied weights.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()}
    replace_file(Path(path), save(tensors, metadata=metadata))


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read any safetensors file; missing metadata stays empty."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"checkpoint {path} does not exist")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise BadCheckpoint(f"{path} is not a readable safetensors file: {error}") from error
    return Checkpoint(
        state=state,
        spec=_json(metadata, "spec", path),
        metrics=_json(metadata, "metrics", path),
        versions=_json(metadata, "versions", path),
    )


def load_checkpoint(path: str | Path, model: nn.Module) -> Checkpoint:
    """Load a checkpoint into a network, after checking every name, shape and value."""
    checkpoint = read_checkpoint(path)
    check_state(checkpoint.state, model, source=str(path))
    model.load_state_dict(checkpoint.state)
    return checkpoint


def check_state(state: Mapping[str, Tensor], model: nn.Module, *, source: str) -> None:
    """Raise BadCheckpoint with the differences if the tensors do not fit the network."""
    expected = model.state_dict()
    differences = [f"{name} is missing" for name in expected if name not in state]
    differences += [f"{name} is not part of the network" for name in state if name not in expected]
    differences += [
        f"{name} has shape {tuple(state[name].shape)}, the network has {tuple(tensor.shape)}"
        for name, tensor in expected.items()
        if name in state and state[name].shape != tensor.shape
    ]
    if not differences:
        differences = [f"{name} has values that are not finite" for name in state if not state[name].isfinite().all()]
    if differences:
        shown = "; ".join(differences[:8]) + (f"; and {len(differences) - 8} more" if len(differences) > 8 else "")
        raise BadCheckpoint(f"{source} does not fit {type(model).__name__}: {shown}")


def _json(metadata: Mapping[str, str], key: str, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(metadata.get(key, "{}"))
    except json.JSONDecodeError as error:
        raise BadCheckpoint(f"{path}: its metadata field {key!r} is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}
