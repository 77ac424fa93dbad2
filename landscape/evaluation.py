"""Loss and error at points of weight space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import vector_to_parameters


@dataclass(frozen=True, eq=False)
class Values:
    """Mean loss in nats and error rate at every point; losses of all samples where asked for."""

    loss: NDArray[np.float64]
    error: NDArray[np.float64]
    samples: NDArray[np.float32] | None = None


class Evaluator:
    """Loss and error of a network at many points, over fixed data."""

    def __init__(self, model: nn.Module, data: Mapping[str, tuple[Tensor, Tensor]], *, batch_norm: str = "population") -> None:
        self.model = deepcopy(model).eval()
        self.data = dict(data)

    @torch.no_grad()
    def at(
        self,
        basis: Tensor,
        coefficients: ArrayLike,
        *,
        samples: bool = False,
        progress: Callable[..., Any] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> dict[str, Values]:
        table = torch.as_tensor(np.asarray(coefficients), dtype=torch.float64)
        found: dict[str, list[Any]] = {split: [] for split in self.data}
        for row in table:
            vector_to_parameters((row @ basis.double()).to(basis.dtype), self.model.parameters())
            for split, (x, y) in self.data.items():
                logits = self.model(x).double()
                losses = cross_entropy(logits, y, reduction="none").nan_to_num(nan=np.inf)
                found[split].append((losses.mean().item(), (logits.argmax(1) != y).double().mean().item(), losses.float().numpy()))
        return {
            split: Values(
                np.array([v[0] for v in values]), np.array([v[1] for v in values]), np.stack([v[2] for v in values]) if samples else None
            )
            for split, values in found.items()
        }


def evaluate(model: nn.Module, weights: Any, data: Any) -> Any:
    raise RuntimeError("in work")
