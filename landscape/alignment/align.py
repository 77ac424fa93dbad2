"""Order the hidden units of a network like those of a reference, without changing what it computes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from valleyscope.landscape.alignment.activation_matching import match_activations, observed_numbers
from valleyscope.landscape.alignment.example_input import SAMPLES, DataInputs, as_inputs, random_inputs
from valleyscope.landscape.alignment.symmetries import (
    TOLERANCE,
    Symmetries,
    in_double,
    largest_change,
    outputs,
    symmetries,
)
from valleyscope.landscape.alignment.weight_matching import match_weights
from valleyscope.landscape.evaluation.splits import Data
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import as_vector, unflatten
from valleyscope.landscape.geometry.weight_files import Weights, loaded
from valleyscope.landscape.geometry.wrapped_networks import unwrapped
from valleyscope.landscape.network.copying import copied
from valleyscope.landscape.network.fx_graph import NotTraceable

Method = Literal["weights", "activations"]
"""What is compared to find units that correspond: their weights, or their activations on data."""
METHODS: tuple[str, ...] = get_args(Method)
_CHECKED = 16
_MOST_SAMPLES, _BATCH = 5000, 250
_MOST_NUMBERS, _HELD = 2 * 10**9, 5 * 10**7
"""Activations that are compared, at most but for one batch, and that are held at a time, for each network."""


class NotAligned(ValueError):
    """A network that cannot be aligned; the message says why."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """An aligned network, and what was done.

    ``state`` computes the same as the given weights. ``units`` could change places, ``moved`` of them did; what is
    ``left_alone`` says where the network has no known symmetry, and why. Distances are those of the parameters to the
    reference.
    """

    state: dict[str, Any]
    method: str
    units: int
    moved: int
    left_alone: tuple[str, ...]
    distance_before: float
    distance_after: float
    change: float
    """The largest difference of two outputs, in units of the largest output."""

    def text(self, start: str, end: str) -> str:
        """What was done to the network `end`, in one line."""
        text = (
            f"{self.moved} of {self.units} hidden units of {end} moved to the order of {start} (by {self.method}); "
            f"distance in weight space {self.distance_before:.4g} before, {self.distance_after:.4g} after"
        )
        return text + (f"; left alone: {'; '.join(self.left_alone[:4])}" if self.left_alone else "")


class Aligner:
    """Aligns networks of one architecture to a reference; the symmetries are found once."""

    def __init__(
        self,
        model: nn.Module,
        to: Weights,
        data: Data | None = None,
        *,
        method: Method | None = None,
        parameters: Parameters = None,
        example: Any = None,
    ) -> None:
        self.model, self.parameters = unwrapped(model), parameters
        self.method = method or ("weights" if data is None else "activations")
        if self.method not in METHODS:
            raise ValueError(f"method is {method!r}; use {' or '.join(METHODS)}")
        if self.method == "activations" and data is None:
            raise ValueError("method 'activations' compares units on data: give data=, or use method='weights'")
        self._reference = _state(self.model, to, "to", parameters)
        self._data = None if data is None else DataInputs(self.model, data)
        with torch.no_grad():
            network = _with_state(self.model, self._reference)
        if example is not None:
            self._example = as_inputs(example)
        elif self._data is not None:
            self._example = self._data.first(_CHECKED)
        else:
            self._example = random_inputs(network, _CHECKED)
        few = [value[:SAMPLES] if isinstance(value, Tensor) else value for value in self._example]
        try:
            self.symmetries: Symmetries = symmetries(network, few, parameters=parameters)
        except NotTraceable as error:
            raise NotAligned(f"{error}; so its symmetries are unknown") from error

    def align(self, weights: Weights, name: str = "weights") -> Alignment:
        """The weights with their units in the order of the reference; refused if that changed what they compute."""
        state = _state(self.model, weights, name, self.parameters)
        if self.method == "weights":
            matching = match_weights(self.symmetries, self._reference, state)
        else:
            assert self._data is not None
            matching = match_activations(self.symmetries, self._reference, state, self._batches(self._data))
        aligned = self.symmetries.permuted(state, matching.orders)
        _copy_to_aliases(self.model, aligned)
        change = self._change(state, aligned)
        if not change <= TOLERANCE:
            raise NotAligned(
                f"{name}: the aligned network differs from the given one by {change:.1e} of its largest output, more "
                f"than {TOLERANCE:.0e}; {type(self.model).__name__} depends on the order of its units in a way that "
                "its trace does not show"
            )
        return Alignment(
            aligned,
            self.method,
            sum(group.units for group in self.symmetries.groups),
            sum(int((order != torch.arange(len(order))).sum()) for order in matching.orders.values()),
            self.symmetries.left_alone,
            _distance(self.model, state, self._reference),
            _distance(self.model, aligned, self._reference),
            change,
        )

    def _batches(self, data: DataInputs) -> Iterator[list[Any]]:
        """Data for activation matching: fewer samples of networks with many activations, which have many pixels."""
        samples = min(len(data), SAMPLES)
        each = max(1, observed_numbers(self.symmetries, data.first(samples)) // samples)
        return data.batches(min(_MOST_SAMPLES, max(_BATCH, _MOST_NUMBERS // each)), max(1, min(_BATCH, _HELD // each)))

    def _change(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
        found: list[Sequence[Tensor]] = []
        for state in (before, after):
            network, inputs = in_double(_with_state(self.model, state), self._example)
            found.append(outputs(network, inputs))
        return largest_change(*found)


def align(
    model: nn.Module,
    weights: Weights,
    to: Weights,
    data: Data | None = None,
    *,
    method: Method | None = None,
    parameters: Parameters = None,
    example: Any = None,
) -> dict[str, Any]:
    """A state dict that computes the same as ``weights``, its hidden units in the order of the reference ``to``.

    The units that can change places are found by tracing the network. They are matched by their weights or, with
    ``data``, by the correlations of their activations; ``method`` chooses. Where the network has no known symmetry the
    order stays. The result is compared with the given network on the data, on ``example`` (the inputs of a few
    samples) or on random inputs, and refused (``NotAligned``) if an output differs by more than 1e-5.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> other = {name: value.clone() for name, value in model.state_dict().items()}
    >>> other["0.weight"], other["0.bias"] = other["0.weight"][[2, 0, 1]], other["0.bias"][[2, 0, 1]]
    >>> other["2.weight"] = other["2.weight"][:, [2, 0, 1]]
    >>> found = align(model, other, to=model)
    >>> all(torch.equal(found[name], value) for name, value in model.state_dict().items())
    True
    """
    return Aligner(model, to, data, method=method, parameters=parameters, example=example).align(weights).state


def _state(model: nn.Module, weights: Weights, name: str, parameters: Parameters) -> dict[str, Any]:
    """A complete state dict: the given weights, and what they do not have from the model."""
    given = loaded(model, weights, name)
    vector = as_vector(model, given, name, parameters)
    state = unflatten(model, vector, parameters=parameters)
    if isinstance(given, Mapping):
        buffers = dict(model.named_buffers(remove_duplicate=False))
        state |= {key: torch.as_tensor(given[key]).detach().clone() for key in buffers if key in state and key in given}
        for key, buffer in buffers.items():
            if key in state and state[key].shape != buffer.shape:
                raise ValueError(
                    f"{name}: buffer {key!r} has shape {tuple(state[key].shape)}, but {tuple(buffer.shape)} in "
                    f"{type(model).__name__}: the weights belong to another architecture"
                )
    return state


def _with_state(model: nn.Module, state: Mapping[str, Any]) -> nn.Module:
    network = copied(model).eval()
    network.load_state_dict(state)
    return network


def _copy_to_aliases(model: nn.Module, state: dict[str, Any]) -> None:
    """Names that share a parameter get the same tensor."""
    first: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        alias = first.setdefault(id(parameter), name)
        if name in state and alias in state:
            state[name] = state[alias]


def _distance(model: nn.Module, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    names = [name for name, _ in model.named_parameters()]
    squares = (float((one[name].double() - other[name].double()).square().sum()) for name in names)
    return math.sqrt(sum(squares))
