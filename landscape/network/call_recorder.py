"""Run a network on a few samples and record which modules it calls and whether it changes its input."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a module: whether its input is the raw data (or a view of it), and the size of its output."""

    module: nn.Module
    raw: bool
    output: torch.Size
    nbytes: int


@dataclass(frozen=True, eq=False)
class CallRecord:
    """All calls of modules in a forward pass, its output, and whether it wrote into its input."""

    samples: int
    calls: tuple[Call, ...]
    output: Tensor
    writes_input: bool

    @property
    def largest_output(self) -> int:
        """Bytes per sample of the largest output of a module."""
        return max((call.nbytes for call in self.calls), default=self.output.nbytes) // self.samples


def record_calls(network: nn.Module, x: Tensor) -> CallRecord:
    """Run the network on a copy of ``x`` without gradients and record the calls of its modules.

    TorchScript modules take no hooks and are not recorded.
    """
    x = x.clone(memory_format=torch.contiguous_format)
    version = x._version
    calls: list[Call] = []

    def record(module: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        raw = x._version == version and any(_shares_memory(value, x) for value in inputs)
        if isinstance(output, Tensor):
            calls.append(Call(module, raw, output.shape, output.nbytes))

    hooked = [module for module in network.modules() if not isinstance(module, torch.jit.ScriptModule)]
    hooks = [module.register_forward_hook(record) for module in hooked]
    try:
        with torch.no_grad():
            output = network(x)
    finally:
        for hook in hooks:
            hook.remove()
    if not isinstance(output, Tensor) or output.dim() != 2 or len(output) != len(x) or not output.is_floating_point():
        found = (
            f"shape {tuple(output.shape)} of {output.dtype}" if isinstance(output, Tensor) else type(output).__name__
        )
        raise ValueError(
            f"{type(network).__name__} returns {found} for {len(x)} samples; expected logits of shape "
            f"({len(x)}, classes): wrap the network in a module that returns them"
        )
    return CallRecord(len(x), tuple(calls), output, x._version != version)


def _shares_memory(value: object, x: Tensor) -> bool:
    return isinstance(value, Tensor) and value.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
