"""The saved state of a fit, to resume after its process was killed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from valleyscope.landscape.storage.atomic_write import write_atomically

FORMAT = 1


def write_state(path: Path, identity: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Replace the state file atomically; ``identity`` describes the fit it belongs to."""
    with write_atomically(path) as file:
        torch.save({"format": FORMAT, "identity": dict(identity), "state": dict(state)}, file)


def read_state(path: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The state of an earlier run of the same fit; None if there is none.

    The state of another fit (other settings, ends or data) is an error.
    """
    if not path.exists():
        return None
    remedy = f"delete {path} to start the fit again"
    try:
        content = torch.load(path, weights_only=True, map_location="cpu")
        found, state, version = content["identity"], content["state"], content["format"]
    except Exception as error:  # the unpickler may raise anything on a damaged file
        raise ValueError(f"{path} is not the state of a fit ({error}); {remedy}") from None
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}, this version reads {FORMAT}; {remedy}")
    for name, value in identity.items():
        if found.get(name) != value:
            raise ValueError(f"{path} is the state of another fit: {name} was {found.get(name)}, is {value}; {remedy}")
    return dict(state)


def digest(tensors: Iterable[Tensor]) -> str:
    """A fingerprint of the values of tensors."""
    hasher = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        hasher.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        hasher.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return hasher.hexdigest()
