"""`python -m app.experiments.drawing`: answers questions about networks, each a line of JSON, until its input ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from valleyscope.app.experiments.json_subprocess import serve_requests
from valleyscope.training.groups import group_norms, partition, prunable
from valleyscope.training.models import build_model, count_parameters, multiply_adds
from valleyscope.training.settings import Structure
from valleyscope.training.sources import SOURCES

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


def inspect_model(question: dict[str, Any]) -> dict[str, Any]:
    """Build the network on the meta device, where it costs no memory, then for real unless it is too large."""
    shape, classes = _samples(question["dataset"], question["data_root"])
    model, cost = _sketch(question["model"], shape, classes)
    parameters = count_parameters(model)
    if parameters > question["largest"]:
        raise ValueError(f"the network has {parameters:,} parameters, {question['largest']:,} are allowed here")
    return {
        "parameters": parameters,
        "multiply_adds": cost,
        "tensors": [[name, list(tensor.shape), _TYPES[tensor.dtype]] for name, tensor in model.state_dict().items()],
        "norms": list(_norms(build_model(question["model"], input_shape=shape, classes=classes, seed=0))),
    }


def _sketch(model: dict[str, Any], shape: tuple[int, ...], classes: int) -> tuple[nn.Module, int]:
    """The network and its multiplications for a sample."""

    def build() -> tuple[nn.Module, int]:
        network = build_model(model, input_shape=shape, classes=classes)
        return network, multiply_adds(network, shape)

    try:
        with torch.device("meta"):
            return build()
    except (RuntimeError, ValueError) as error:
        if ":" in model["name"] and "meta tensor" in str(error):  # an operator's own that looks at values
            return build()
        raise


def _samples(dataset: str, root: str | None) -> tuple[tuple[int, ...], int]:
    if dataset in SOURCES:
        return SOURCES[dataset].shape, SOURCES[dataset].classes
    from valleyscope.training.datasets import load_dataset

    loaded = load_dataset(dataset, root=None if root is None else Path(root))
    return loaded.shape, loaded.classes


def _norms(model: nn.Module) -> Iterator[list[Any]]:
    for structure in get_args(Structure):
        for bias in (True, False):
            layers = [group_norms(group).double() for group in prunable(partition(model, structure, bias))]
            if layers:
                norms = torch.cat(layers)
                yield [structure, bias, float(norms.min()), float(norms.median())]


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve_requests(inspect_model)
