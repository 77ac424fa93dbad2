"""Run a network on a few samples and record which modules it calls and whether it changes its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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


class StructuredOutput(ValueError):
    """The network returns something other than one tensor, such as a dict or an object with logits."""


@dataclass(frozen=True, eq=False)
class RecordedCall:
    """The result of a function and the calls of a network's modules during it."""

    result: Any
    record: CallRecord


@contextmanager
def first_run(network: nn.Module, example: Any) -> Iterator[None]:
    """Errors of torch in the first run of a network name the samples: most often their shape or data type is wrong."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, IndexError, KeyError) as error:
        raise ValueError(
            f"data: {type(network).__name__} cannot run on the first samples, {_described(example)}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _described(batch: Any) -> str:
    """The data types and shapes of the tensors of a batch."""
    if isinstance(batch, Tensor):
        return f"{str(batch.dtype).removeprefix('torch.')} {tuple(batch.shape)}"
    parts = batch.values() if isinstance(batch, Mapping) else batch
    return ", ".join(map(_described, parts))


def record_any_calls(network: nn.Module, samples: int, function: Callable[[], Any]) -> RecordedCall:
    """Run a function that calls the network on this many samples, and record the sizes of its modules' outputs."""
    calls: list[Call] = []

    def record(module: nn.Module, _: object, output: object) -> None:
        if isinstance(output, Tensor):
            calls.append(Call(module, False, output.shape, output.nbytes))

    hooked = [module for module in network.modules() if not isinstance(module, torch.jit.ScriptModule)]
    hooks = [module.register_forward_hook(record) for module in hooked]
    try:
        result = function()
    finally:
        for hook in hooks:
            hook.remove()
    return RecordedCall(result, CallRecord(samples, tuple(calls), torch.empty(samples), False))


def record_calls(network: nn.Module, x: Tensor, *, logits: bool = True) -> CallRecord:
    """Run the network on a copy of ``x`` without gradients and record the calls of its modules.

    With ``logits`` its output must have the shape (samples, classes), else it may be any tensor. TorchScript modules
    take no hooks and are not recorded.
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
    if not isinstance(output, Tensor):
        raise StructuredOutput(f"{type(network).__name__} returns a {type(output).__name__}, not a tensor")
    if logits and (output.dim() != 2 or len(output) != len(x) or not output.is_floating_point()):
        raise ValueError(
            f"{type(network).__name__} returns shape {tuple(output.shape)} of {output.dtype} for {len(x)} samples; "
            f"expected logits of shape ({len(x)}, classes): wrap the network in a module that returns them, or give "
            "another loss"
        )
    return CallRecord(len(x), tuple(calls), output, x._version != version)


def _shares_memory(value: object, x: Tensor) -> bool:
    return isinstance(value, Tensor) and value.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
