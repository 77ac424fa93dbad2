"""The optimiser of a run from its settings; AltSDP and its family are methods (`methods/altsdp.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.optim import SGD, AdamW, Optimizer

from valleyscope.training._plugins import load_factory
from valleyscope.training.optimizers import OPTIMIZERS
from valleyscope.training.sam import SAM
from valleyscope.training.settings import Training


def build_optimizer(parameters: Sequence[Tensor], settings: Training) -> Optimizer:
    """SGD, AdamW, SAM, or what `package.module:factory` makes."""
    name = settings.optimizer
    if name == "adamw":
        betas, eps = settings.optimizer_option("betas"), settings.optimizer_option("eps")
        return AdamW(parameters, lr=settings.lr, betas=betas, eps=eps, weight_decay=settings.weight_decay)
    momentum, decay = settings.momentum, settings.weight_decay
    if name == "sam":
        rho = settings.optimizer_option("rho")
        return SAM(parameters, lr=settings.lr, rho=rho, momentum=momentum, weight_decay=decay)
    if name in OPTIMIZERS:
        return SGD(parameters, lr=settings.lr, momentum=momentum, weight_decay=decay)
    options = settings.optimizer_option("options")
    if settings.weight_decay:
        options = {"weight_decay": settings.weight_decay} | options
    try:
        made = load_factory("optimizer", name)(list(parameters), lr=settings.lr, **options)
    except TypeError as error:
        raise ValueError(f"optimizer {name!r} does not take lr and the options {options}: {error}") from error
    if not isinstance(made, Optimizer):
        raise ValueError(
            f"optimizer {name!r}: the factory returned a {type(made).__name__}, must return a torch.optim.Optimizer"
        )
    return made
