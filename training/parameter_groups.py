"""Partitions of a network's weights into groups: filters, kernels, vectors or elements.

A partition is a list of torch-style parameter groups, one per layer, whose tensors share an output index (weight,
bias, BatchNorm γ and β), and a last one of everything that is never thresholded. Torch's optimisers accept it as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, get_args

import torch
from torch import Tensor, fx, nn

from valleyscope.training.residual_channels import residual_offsets
from valleyscope.training.settings import Structure

ParameterGroup = dict[str, Any]
Layer = nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear
_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_TRANSPARENT = (nn.Dropout, nn.Dropout2d, nn.Identity)


class Assumed(UserWarning):
    """A partition rests on an assumption, since the network could not be traced."""


def partition(
    model: nn.Module,
    structure: Structure = "filter",
    bias: bool = True,
    skip_output: bool = True,
    tie_residual: bool = False,
    output: str | Sequence[str] | None = None,
) -> list[ParameterGroup]:
    """Split the parameters of a network into prunable layers and the rest.

    - `filter`: an output filter of a convolution, a row of a linear layer; with `bias`, its bias and the γ and β of the
      BatchNorm that follows are in the group, so that the output of a zero group is exactly zero;
    - `kernel`: each 2-D kernel of a convolution; `vector`: each row of a kernel; in both, a linear layer keeps its rows
      (it has no kernels, and a row is a vector), with the bias as above;
    - `element`: each weight by itself (unstructured).

    Biases and BatchNorm parameters are never thresholded alone: without weights in their group they are in the rest,
    like the output layers (`skip_output`). These are found by tracing the network, all of them where it has several
    heads; `output` names them instead. A network that cannot be traced is partitioned by the order in which its layers
    were registered, and a warning (`Assumed`) says what was assumed.

    With `tie_residual`, filters whose outputs are added to each other (in residual blocks) are one group: `compact` can
    then remove the channel from the whole stage. Such a layer has several weights; row r of each tensor is in group
    r + its entry of `offsets` (not 0 where a shortcut pads with channels of zeros).

    >>> [group["name"] for group in partition(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)))]
    ['0', 'rest']
    """
    if structure not in get_args(Structure):
        raise ValueError(f"structure={structure!r} is unknown: use one of {', '.join(get_args(Structure))}")
    layers, norms, found, reason = _find_layers(model)
    outputs = found if output is None else _named_outputs([output] if isinstance(output, str) else output, layers)
    if reason is not None and skip_output:
        _warn(type(model).__name__, reason, found if output is None else None, has_norms=bool(norms))
    if tie_residual and structure != "filter":
        raise ValueError(f"tie_residual=True ties filters: use structure='filter', not {structure!r}")
    groups: list[ParameterGroup] = []
    assigned: set[Tensor] = set()
    for name, layer in layers.items():
        if (skip_output and name in outputs) or layer.weight in assigned:
            continue
        level = "filter" if isinstance(layer, nn.Linear) and structure in ("kernel", "vector") else structure
        members: list[Tensor] = [layer.weight]
        if bias and level == "filter":
            companions = [layer.bias, *(p for norm in norms.get(name, ()) for p in (norm.weight, norm.bias))]
            members += [p for p in companions if isinstance(p, Tensor) and p not in assigned]
        assigned.update(members)
        groups.append({"params": members, "name": name, "structure": level})
    if tie_residual:
        groups = _tied(model, groups)
    rest = [parameter for parameter in model.parameters() if parameter not in assigned]
    if rest:
        groups.append({"params": rest, "name": "rest", "structure": None})
    return groups


def group_dims(weight: Tensor, structure: str) -> tuple[int, ...]:
    """Dimensions of a weight tensor that lie inside one group."""
    first = {"filter": 1, "kernel": 2, "vector": weight.dim() - 1, "element": weight.dim()}[structure]
    return tuple(range(max(first, 1), weight.dim()))


def group_norms(group: Mapping[str, Any]) -> Tensor:
    """L2 norms of all groups of one layer of a partition, in one flat tensor."""
    weight, *companions = (parameter.detach() for parameter in group["params"])
    norms = _norms(weight, group["structure"])
    for companion, rows in zip(companions, companion_rows(group), strict=True):
        norms[rows] = torch.hypot(norms[rows], _norms(companion, group["structure"]))
    return norms.flatten()


def companion_rows(group: Mapping[str, Any]) -> list[slice]:
    """The groups, by row, that each parameter after the first belongs to: all, except in tied layers."""
    offsets = group.get("offsets") or [0] * len(group["params"])
    return [
        slice(offset, offset + len(parameter))
        for offset, parameter in zip(offsets[1:], group["params"][1:], strict=True)
    ]


def broadcast_masks(group: Mapping[str, Any], chosen: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The parameters of a layer, each with the mask of the chosen groups in a shape that broadcasts over it."""
    lead, *companions = group["params"]
    dims = group_dims(lead, group["structure"])
    yield lead, chosen.view([1 if dim in dims else size for dim, size in enumerate(lead.shape)])
    for companion, rows in zip(companions, companion_rows(group), strict=True):
        yield companion, chosen[rows].view(-1, *(1,) * (companion.dim() - 1))


def _norms(parameter: Tensor, structure: str) -> Tensor:
    dims = group_dims(parameter, structure)
    norms: Tensor = torch.linalg.vector_norm(parameter, dim=dims) if dims else parameter.abs()
    return norms


def _tied(model: nn.Module, groups: list[ParameterGroup]) -> list[ParameterGroup]:
    """Join the layers whose outputs are added to each other."""
    by_name = {group["name"]: group for group in groups}
    widths = {name: len(group["params"][0]) for name, group in by_name.items()}
    joined: dict[str, ParameterGroup] = {}
    tied: set[str] = set()
    for offsets in residual_offsets(model, widths):
        lead = next(name for name in offsets if widths[name] == max(map(widths.__getitem__, offsets)))
        members = sorted(offsets, key=lambda name: name != lead)
        joined[min(offsets, key=list(by_name).index)] = {
            "params": [parameter for name in members for parameter in by_name[name]["params"]],
            "name": f"{lead} and {len(members) - 1} tied",
            "structure": "filter",
            "offsets": [offsets[name] for name in members for _ in by_name[name]["params"]],
        }
        tied.update(offsets)
    return [joined.get(name, group) for name, group in by_name.items() if name in joined or name not in tied]


def prunable(groups: Sequence[ParameterGroup]) -> Iterator[ParameterGroup]:
    """The layers of a partition, without the rest."""
    return (group for group in groups if group["structure"] is not None)


Found = tuple[dict[str, Layer], dict[str, list[nn.Module]], list[str], str | None]
"""Layers by name, the BatchNorms after each, the names of the output layers, and why the network was not traced."""


def _find_layers(model: nn.Module) -> Found:
    try:
        graph = fx.Tracer().trace(model)
    except Exception as error:  # tracing runs custom code on symbols, which may raise anything
        return (*_find_layers_by_order(model), str(error).partition("\n")[0] or type(error).__name__)
    modules = dict(model.named_modules())
    calls = [node for node in graph.nodes if node.op == "call_module"]
    layers = {name: module for name, module in modules.items() if isinstance(module, _LAYERS)}
    norms: dict[str, list[nn.Module]] = {}
    last = None
    for node in calls:
        module = modules[str(node.target)]
        if isinstance(module, _LAYERS):
            last = str(node.target)
        if isinstance(module, _NORMS) and (source := _input_layer(node, modules)) in layers:
            norms.setdefault(source, []).append(module)
    heads = _heads(next(node for node in graph.nodes if node.op == "output"), layers)
    return layers, norms, heads or ([] if last is None else [last]), None


def _heads(output: fx.Node, layers: Mapping[str, Layer]) -> list[str]:
    """The last layer on the way to each of several outputs; none where the network has a single output."""
    value = output.args[0]
    parts = list(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(parts, list | tuple) or len(parts) < 2:
        return []
    found: list[str] = []
    for part in parts:
        waiting, seen = ([part] if isinstance(part, fx.Node) else []), set()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if str(node.target) in layers and node.op == "call_module":
                found.append(str(node.target))
            else:
                waiting += node.all_input_nodes
    return list(dict.fromkeys(found))


def _named_outputs(names: Sequence[str], layers: Mapping[str, Layer]) -> list[str]:
    for name in names:
        if name not in layers:
            raise ValueError(f"output={name!r} is no convolution or linear layer: use one of {', '.join(layers)}")
    return list(names)


def _warn(network: str, reason: str, output: list[str] | None, *, has_norms: bool) -> None:
    """Say what a partition without a trace assumes."""
    assumed = []
    if output:
        assumed.append(
            f"the layer registered last, {output[0]!r}, is the output: name the output layers by output=[...]"
        )
    if has_norms:
        assumed.append("a BatchNorm belongs to the layer before it in the same nn.Sequential")
    if assumed:
        warnings.warn(
            f"{network} cannot be traced ({reason}), so partition assumes that {'; and that '.join(assumed)}",
            Assumed,
            stacklevel=3,
        )


def _input_layer(node: fx.Node, modules: Mapping[str, nn.Module]) -> str:
    """Name of the module whose output a node uses, skipping modules that do nothing in evaluation."""
    while node.args and isinstance(node.args[0], fx.Node):
        node = node.args[0]
        if not isinstance(modules.get(str(node.target)), _TRANSPARENT):
            return str(node.target)
    return ""


def _find_layers_by_order(model: nn.Module) -> tuple[dict[str, Layer], dict[str, list[nn.Module]], list[str]]:
    """The same from the order of registration; a BatchNorm must follow its layer in one nn.Sequential."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, _LAYERS)}
    names = {module: name for name, module in layers.items()}
    norms: dict[str, list[nn.Module]] = {}
    for container in model.modules():
        if isinstance(container, nn.Sequential):
            steps = list(container)
            for before, after in pairwise(steps):
                if before in names and isinstance(after, _NORMS):
                    norms.setdefault(names[before], []).append(after)
    return layers, norms, list(layers)[-1:]
