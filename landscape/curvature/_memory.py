"""Memory for vectors of weights: what is allowed, and an error with the number before the work starts."""

from __future__ import annotations

import torch
from torch import Tensor

from valleyscope.landscape.network.memory_limit import machine_memory


def available(device: torch.device) -> int:
    """Bytes of the machine or container, or the free bytes of the GPU."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else machine_memory()


def vectors_limit(device: torch.device, memory_limit: int | None) -> int:
    """Bytes that vectors may take: the given limit, or half of the memory."""
    return available(device) // 2 if memory_limit is None else memory_limit


def check_memory(
    dimension: int, vectors: int, doubles: int, like: Tensor, memory_limit: int | None, cause: str
) -> None:
    """Raise an error if vectors of the data type of ``like``, and ``doubles`` of float64, do not fit in the limit."""
    limit = vectors_limit(like.device, memory_limit)
    needed = dimension * (vectors * like.element_size() + doubles * 8)
    if needed > limit:
        raise ValueError(
            f"{cause} needs {vectors + doubles} vectors of {dimension:,} weights, {needed / 1e9:.2g} GB; the limit is "
            f"{limit / 1e9:.2g} GB: ask for fewer eigenvalues, or pass a larger memory_limit (bytes)"
        )
