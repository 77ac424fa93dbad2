"""`python -m valleyscope.app.experiments.model_inspector`: inspect networks with torch, a line of JSON per request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from valleyscope.app.experiments.json_subprocess import serve_requests
from valleyscope.training.dataset_sources import SOURCES
from valleyscope.training.losses import LossName
from valleyscope.training.methods.selection import fewest_operations
from valleyscope.training.models import build_model, count_parameters, multiply_adds
from valleyscope.training.models.registry import Samples
from valleyscope.training.models.remaining_operations import RemainingOperations
from valleyscope.training.parameter_groups import group_norms, partition, prunable
from valleyscope.training.settings import Structure

# The names that safetensors gives to torch's types.
_TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The facts about a network, or, with `partition` in the request, how small a cut can make it."""
    return fewest_share(request) if "partition" in request else inspect_model(request)


def fewest_share(request: dict[str, Any]) -> dict[str, Any]:
    """The smallest share of its multiply-adds that a cut of filters can leave of a network."""
    samples = _samples(request["dataset"], request["data_root"], request.get("loss", "cross_entropy"))
    model = build_model(request["model"], samples, seed=0)
    groups = partition(model, **request["partition"])
    operations = RemainingOperations(model, groups, samples.shape)
    return {"fewest": fewest_operations(operations, prunable(groups), request["floor"])}


def inspect_model(request: dict[str, Any]) -> dict[str, Any]:
    """Build the network on the meta device, which takes no memory, then with values unless it is too large."""
    samples = _samples(request["dataset"], request["data_root"], request.get("loss", "cross_entropy"))
    model, cost = _build_on_meta(request["model"], samples)
    parameters = count_parameters(model)
    if parameters > request["max_parameters"]:
        limit = f"{request['max_parameters']:,}"
        raise ValueError(f"the network has {parameters:,} parameters, the limit (VALLEY_MAX_PARAMETERS) is {limit}")
    return {
        "parameters": parameters,
        "multiply_adds": cost,
        "tensors": [[name, list(tensor.shape), _TYPES[tensor.dtype]] for name, tensor in model.state_dict().items()],
        "groups": [layer["params"][0].shape[0] for layer in prunable(partition(model))],
        "norms": list(_norms(build_model(request["model"], samples, seed=0))),
    }


@dataclass(frozen=True)
class _Samples:
    """What a network depends on, of a data set that need not be loaded."""

    shape: tuple[int, ...]
    classes: int
    output_shape: tuple[int, ...]
    loss: LossName = "cross_entropy"


def _build_on_meta(model: dict[str, Any], samples: Samples) -> tuple[nn.Module, int]:
    """The network and its multiply-adds per sample."""

    def build() -> tuple[nn.Module, int]:
        network = build_model(model, samples)
        return network, multiply_adds(network, samples.shape)

    try:
        with torch.device("meta"):
            return build()
    except (RuntimeError, ValueError) as error:
        if ":" in model["name"] and "meta tensor" in str(error):  # a custom network that depends on values
            return build()
        raise


def _samples(dataset: str, root: str | None, loss: LossName) -> Samples:
    if dataset in SOURCES:
        source = SOURCES[dataset]
        return _Samples(source.shape, source.classes, (source.classes,))
    from valleyscope.training.datasets import load_dataset

    return load_dataset(dataset, root=None if root is None else Path(root), loss=loss)


def _norms(model: nn.Module) -> Iterator[list[Any]]:
    for structure in get_args(Structure):
        for bias in (True, False):
            layers = [group_norms(group).double() for group in prunable(partition(model, structure, bias))]
            if layers:
                norms = torch.cat(layers)
                yield [structure, bias, float(norms.min()), float(norms.median())]


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve_requests(answer)
