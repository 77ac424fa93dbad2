"""Networks inside the wrappers of ``torch.compile`` and data parallelism, and the names that the wrappers add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

_COMPILED = "_orig_mod"
_PARALLEL = "module."


def unwrapped(model: nn.Module) -> nn.Module:
    """The network itself, without the wrappers of ``torch.compile``, DataParallel and DistributedDataParallel."""
    while True:
        inner = dict(model.named_children()).get(_COMPILED)
        if inner is None and isinstance(model, DataParallel | DistributedDataParallel):
            inner = model.module
        if inner is None:
            return model
        model = inner


def plain_name(name: str) -> str:
    """The name of a parameter without what wrappers add.

    >>> plain_name("module._orig_mod.head.weight"), plain_name("encoder._orig_mod.bias")
    ('head.weight', 'encoder.bias')
    """
    parts = [part for part in name.split(".") if part != _COMPILED]
    return ".".join(parts).removeprefix(_PARALLEL) or name


def renamed(state_dict: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """The state dict with the names that the network knows, where only a wrapper's prefix differs."""
    names = set(known)
    by_plain = {plain_name(name): name for name in names}
    return {
        key if key in names else by_plain.get(plain_name(str(key)), key): value for key, value in state_dict.items()
    }
