"""Sharpness-aware minimisation, as published by Foret et al. (2021)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD


class SAM(SGD):
    """SGD with the gradient of the loss at w + rho g/||g||, where g is the gradient at w over all parameters.

    `step` takes a closure that sets the gradients to zero, computes the loss of the same batch and calls `backward`;
    the gradients at w are there already. Momentum and weight decay are those of SGD, and so is the saved state.

    >>> w = torch.nn.Parameter(torch.tensor([3.0, 4.0])); optimizer = SAM([w], lr=0.1, rho=0.5)
    >>> def closure():
    ...     optimizer.zero_grad(); loss = w.square().sum() / 2; loss.backward(); return loss
    >>> _ = closure(); _ = optimizer.step(closure); [round(float(value), 3) for value in w]
    [2.67, 3.56]
    """

    requires_closure = True

    def __init__(self, params: Any, lr: float = 0.1, rho: float = 0.05, **options: Any) -> None:
        if not (math.isfinite(rho) and rho > 0):
            raise ValueError(f"rho={rho}: must be a finite number above 0 (the paper uses 0.05)")
        super().__init__(params, lr=lr, **options)
        self.rho = rho

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is None:
            raise ValueError("SAM needs a second gradient: call step(closure)")
        moved = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        before = [p.detach().clone() for p in moved]
        norms: list[Tensor] = [torch.linalg.vector_norm(p.grad, dtype=torch.float64) for p in moved]
        norm = float(torch.linalg.vector_norm(torch.stack(norms))) if norms else 0.0
        if norm > 0:
            for p in moved:
                assert p.grad is not None
                p.add_(p.grad, alpha=self.rho / norm)
        with torch.enable_grad():
            loss = closure()
        # Copies, not a subtraction: w comes back to the bit.
        for p, value in zip(moved, before, strict=True):
            p.copy_(value)
        super().step()
        return loss
