"""Losses by name or as functions: what is measured of every sample, and its unit.

A named loss calls the network on the inputs of a batch and compares its output with the target:

- ``cross_entropy``: logits (N, classes) or (N, classes, ...), class numbers (N, ...);
- ``token_cross_entropy``: logits (N, T, vocabulary), token numbers (N, T); position t is the target of position t;
- ``bce``: logits and targets in [0, 1] of one shape, for several labels;
- ``mse``, ``l1``: outputs and targets of one shape, averaged over all dimensions but the first.

Targets of -100 in the cross-entropies are ignored: the loss of a split is the mean over all positions that count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope.landscape.evaluation.batches import Batch, samples_in

IGNORED: Final = -100

SampleFunction = Callable[[nn.Module, Batch], Tensor]
"""A function of the network and a batch that returns one number a sample."""

Loss = str | SampleFunction | None
"""The name of a loss, or a function ``loss(model, batch)`` of one loss a sample. None: ``cross_entropy``."""

ErrorRate = SampleFunction | Literal[False] | None
"""A function ``error(model, batch)`` of one error in [0, 1] a sample; None: that of a named entropy; False: none."""

_TARGETS: Final = ("labels", "label", "targets", "target", "y")
_OUTPUTS: Final = ("logits", "out", "output", "prediction", "predictions", "reconstruction")


@dataclass(frozen=True)
class Terms:
    """Of every sample: the sum of its losses, the number of wrong predictions (None without), and how many count."""

    loss: Tensor
    wrong: Tensor | None
    count: Tensor


Measure = Callable[[Tensor, Tensor], Terms]


@dataclass(frozen=True)
class Objective:
    """What is measured of every sample of a batch."""

    name: str
    unit: str
    """``nats`` for entropies, else empty: the loss's own unit."""
    measure: Measure | None = None
    """The terms of a named loss from output and target; None for a function."""
    loss: SampleFunction | None = None
    error: SampleFunction | None = None
    has_error: bool = False
    reconstructs: bool = False
    """Whether a batch without target is its own target."""

    @property
    def is_classification(self) -> bool:
        return self.name == "cross_entropy"

    def __call__(self, network: nn.Module, batch: Batch) -> Terms:
        """The terms of a batch at the weights of the network."""
        if self.measure is not None:
            inputs, target = self.split(batch)
            terms = self.measure(output_tensor(call(network, inputs), self.name), target)
        else:
            assert self.loss is not None
            losses = _one_each(self.loss(network, batch), samples_in(batch), "loss")
            terms = Terms(losses.masked_fill(losses.isnan(), math.inf), None, torch.ones_like(losses))
        if self.error is None:
            return terms if self.has_error or terms.wrong is None else replace(terms, wrong=None)
        wrong = _one_each(self.error(network, batch), samples_in(batch), "error")
        if bool((wrong < 0).any() or (wrong > 1).any()):
            raise ValueError(f"error returns {float(wrong.min()):g} to {float(wrong.max()):g}; give shares in [0, 1]")
        return replace(terms, wrong=wrong.nan_to_num(nan=1.0) * terms.count)

    def mean(self, network: nn.Module, batch: Batch) -> Tensor:
        """The mean loss of a batch, with its gradient."""
        terms = replace(self, error=None, has_error=False)(network, batch)
        return terms.loss.sum() / terms.count.sum().clamp_min(1.0)

    def split(self, batch: Batch) -> tuple[Any, Tensor]:
        """Inputs and target of a batch for a named loss."""
        return inputs_and_target(batch, self)


def objective_of(loss: Loss = None, error: ErrorRate = None) -> Objective:
    """The objective of a loss, a name or a function, and an error."""
    name = "cross_entropy" if loss is None else loss
    if isinstance(name, str):
        if name not in NAMED:
            raise ValueError(
                f"loss is {name!r}; use one of {', '.join(NAMED)}, or a function loss(model, batch) of one loss a "
                "sample"
            )
        found = NAMED[name]
    elif callable(name):
        if isinstance(name, nn.Module):
            raise ValueError(
                f"loss is the module {type(name).__name__}; give a name ({', '.join(NAMED)}) or a function "
                "loss(model, batch) that calls the model and returns one loss a sample"
            )
        found = Objective(getattr(name, "__name__", "loss").strip("<>"), "", loss=name)
    else:
        raise ValueError(f"loss is {loss!r}; give a name ({', '.join(NAMED)}) or a function loss(model, batch)")
    if error is False:
        return replace(found, has_error=False)
    if error is None:
        return found
    if not callable(error):
        raise ValueError(f"error is {error!r}; give a function error(model, batch) of one share a sample, or False")
    return replace(found, error=error, has_error=True)


def inputs_and_target(batch: Batch, objective: Objective) -> tuple[Any, Tensor]:
    if isinstance(batch, Mapping):
        key = next((key for key in _TARGETS if key in batch), None)
        if key is not None:
            return {name: value for name, value in batch.items() if name != key}, batch[key]
        if not (objective.reconstructs and len(batch) == 1):
            raise ValueError(
                f"data: a batch has the entries {', '.join(map(str, batch))}, and none is the target; call it "
                f"'labels', or give a function loss(model, batch)"
            )
        return batch, next(iter(batch.values()))
    if isinstance(batch, tuple) and len(batch) > 1:
        inputs = batch[0] if len(batch) == 2 else batch[:-1]
        if not isinstance(batch[-1], Tensor):
            raise ValueError(
                f"data: the last part of a batch is the target, a tensor; it is a {type(batch[-1]).__name__}"
            )
        return inputs, batch[-1]
    x = batch[0] if isinstance(batch, tuple) else batch
    if not (objective.reconstructs and isinstance(x, Tensor)):
        raise ValueError(f"data: loss {objective.name!r} needs targets; give (x, y)")
    return x, x


def call(network: nn.Module, inputs: Any) -> Any:
    """The output of a network for one tensor, several inputs (a tuple) or named inputs (a dict)."""
    if isinstance(inputs, Mapping):
        return network(**inputs)
    return network(*inputs) if isinstance(inputs, tuple) else network(inputs)


def output_tensor(output: Any, name: str) -> Tensor:
    """The tensor that a named loss compares: the output, its logits, or the first of several."""
    if isinstance(output, Tensor):
        return output
    for key in _OUTPUTS:
        value = output.get(key) if isinstance(output, Mapping) else getattr(output, key, None)
        if isinstance(value, Tensor):
            return value
    if isinstance(output, Mapping):
        tensors = [value for value in output.values() if isinstance(value, Tensor)]
        if len(tensors) == 1:
            return tensors[0]
    if isinstance(output, tuple | list) and output and isinstance(output[0], Tensor):
        return output[0]
    found = f"a dict of {', '.join(map(str, output))}" if isinstance(output, Mapping) else type(output).__name__
    raise ValueError(
        f"the network returns {found}; loss {name!r} needs a tensor, a tuple that starts with one, or an output with "
        "logits: give a function loss(model, batch)"
    )


def _one_each(values: Any, samples: int, what: str) -> Tensor:
    """The numbers of a function, in float64, checked: one a sample."""
    if not isinstance(values, Tensor):
        raise ValueError(f"{what} returns a {type(values).__name__}; return a tensor of one number a sample")
    if values.shape != (samples,):
        mean = values.numel() == 1 and samples != 1
        hint = (
            "that is a mean or sum over the batch: use reduction='none'"
            if mean
            else "average over all dimensions but the first"
        )
        raise ValueError(
            f"{what} returns shape {tuple(values.shape)} for {samples} samples; return one number a sample, shape "
            f"({samples},): {hint}"
        )
    return values.to(torch.float64)


def _cross_entropy(output: Tensor, target: Tensor) -> Terms:
    if output.dim() < 2 or target.shape != output.shape[:1] + output.shape[2:]:
        if target.dim() > 1 and target.shape == output.shape:
            raise ValueError(
                f"loss 'cross_entropy': y of shape {tuple(target.shape)} is not class numbers; expected labels "
                "of shape (N,), or another loss such as loss='mse'"
            )
        hint = ", or loss='token_cross_entropy'" if target.shape == output.shape[:-1] and output.dim() == 3 else ""
        raise ValueError(
            f"loss 'cross_entropy': the network returns shape {tuple(output.shape)} and targets have "
            f"{tuple(target.shape)}; expected logits (N, classes, ...) and class numbers (N, ...){hint}"
        )
    return _entropies(output.movedim(1, -1), target, "cross_entropy")


def _token_cross_entropy(output: Tensor, target: Tensor) -> Terms:
    if output.dim() < 3 or target.shape != output.shape[:-1]:
        raise ValueError(
            f"loss 'token_cross_entropy': the network returns shape {tuple(output.shape)} and targets have "
            f"{tuple(target.shape)}; expected logits (N, T, vocabulary) and token numbers (N, T)"
        )
    return _entropies(output, target, "token_cross_entropy")


def _entropies(logits: Tensor, target: Tensor, name: str) -> Terms:
    """Terms of logits (N, ..., classes); positions with target -100 do not count."""
    if target.is_floating_point() or target.dtype is torch.bool:
        raise ValueError(f"loss {name!r}: targets have data type {target.dtype}; give class numbers 0, 1, 2, ...")
    target = target.to(device=logits.device, dtype=torch.int64)
    counts = target != IGNORED
    safe = target.masked_fill(~counts, 0)
    low, high, classes = int(safe.min()), int(safe.max()), logits.shape[-1]
    if low < 0 or high >= classes:
        raise ValueError(
            f"loss {name!r}: targets run from {low} to {high}, but the network has {classes} classes: targets must "
            f"lie in 0 to {classes - 1}, or be {IGNORED} to be ignored"
        )
    precise = logits.to(torch.float64)
    losses = -torch.log_softmax(precise, dim=-1).gather(-1, safe.unsqueeze(-1)).squeeze(-1)
    overflows = ~torch.isfinite(precise.detach().sum(dim=-1))
    losses = losses.masked_fill(overflows, math.inf).masked_fill(~counts, 0.0)
    wrong = ((logits.argmax(dim=-1) != safe) | overflows) & counts
    return Terms(_per_sample(losses), _per_sample(wrong.to(torch.float64)), _per_sample(counts.to(torch.float64)))


def _binary_cross_entropy(output: Tensor, target: Tensor) -> Terms:
    output, target = _same_shape(output, target, "bce")
    if bool((target < 0).any() or (target > 1).any()):
        raise ValueError(
            f"loss 'bce': targets run from {float(target.min()):g} to {float(target.max()):g}; they must lie in [0, 1]"
        )
    losses = F.binary_cross_entropy_with_logits(output, target, reduction="none")
    wrong = ((output > 0) != (target > 0.5)) | ~torch.isfinite(output)
    has_labels = bool(((target == 0) | (target == 1)).all())  # shades of grey have no error
    return _averaged(losses, wrong.to(torch.float64) if has_labels else None)


def _squared_error(output: Tensor, target: Tensor) -> Terms:
    output, target = _same_shape(output, target, "mse")
    return _averaged((output - target) ** 2, None)


def _absolute_error(output: Tensor, target: Tensor) -> Terms:
    output, target = _same_shape(output, target, "l1")
    return _averaged((output - target).abs(), None)


def _same_shape(output: Tensor, target: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Output and target in float64 and in one shape: a last dimension of one may be missing in either."""
    target = target.to(device=output.device, dtype=torch.float64)
    output = output.to(torch.float64)
    if output.dim() == target.dim() + 1 and output.shape[-1] == 1:
        output = output.squeeze(-1)
    elif target.dim() == output.dim() + 1 and target.shape[-1] == 1:
        target = target.squeeze(-1)
    if output.shape != target.shape:
        raise ValueError(
            f"loss {name!r}: the network returns shape {tuple(output.shape)} and targets have {tuple(target.shape)}; "
            "they must be equal"
        )
    return output, target


def _averaged(losses: Tensor, wrong: Tensor | None) -> Terms:
    """Terms of losses that are averaged over all dimensions but the first; NaN is an overflow."""
    losses = losses.flatten(1).mean(dim=1) if losses.dim() > 1 else losses
    losses = losses.masked_fill(losses.isnan(), math.inf)
    if wrong is not None:
        wrong = wrong.flatten(1).mean(dim=1) if wrong.dim() > 1 else wrong
    return Terms(losses, wrong, torch.ones_like(losses))


def _per_sample(values: Tensor) -> Tensor:
    return values.flatten(1).sum(dim=1) if values.dim() > 1 else values


NAMED: Final[Mapping[str, Objective]] = {
    "cross_entropy": Objective("cross_entropy", "nats", _cross_entropy, has_error=True),
    "token_cross_entropy": Objective("token_cross_entropy", "nats", _token_cross_entropy, has_error=True),
    "mse": Objective("mse", "", _squared_error, reconstructs=True),
    "bce": Objective("bce", "nats", _binary_cross_entropy, has_error=True, reconstructs=True),
    "l1": Objective("l1", "", _absolute_error, reconstructs=True),
}
"""The losses by name."""
