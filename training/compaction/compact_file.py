"""Compact networks in safetensors files: the weights, and in the metadata the graph with its widths. No code runs.

The graph names modules of torch.nn with their arguments and functions of torch that take tensors; nothing else is
accepted when a file is read.
"""

from __future__ import annotations

import inspect
import json
import operator
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, fx, nn

from valleyscope.training.atomic_write import replace_file
from valleyscope.training.checkpoints import BadCheckpoint, versions
from valleyscope.training.compaction.compact import Compact
from valleyscope.training.compaction.tracing import NotCompactable

FORMAT = "valleyscope-compact"
FORMAT_VERSION = 1
_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "neg", "pow", "getitem")
_NODE, _SLICE, _TUPLE = "$node", "$slice", "$tuple"


def save_compact(path: str | Path, network: Compact, *, spec: Mapping[str, Any] | None = None) -> None:
    """Write a compact network as safetensors, atomically; `load_compact` builds it again from this file alone."""
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "graph": json.dumps(_describe(network.model)),
        "report": json.dumps(network.report.to_json()),
        "inputs": json.dumps([list(x.shape[1:]) for x in network.example]),
        "spec": json.dumps(spec or {}, sort_keys=True),
        "versions": json.dumps(versions(), sort_keys=True),
    }
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in network.model.state_dict().items()}
    replace_file(Path(path), save(tensors, metadata=metadata))


def load_compact(path: str | Path) -> fx.GraphModule:
    """Build the network of a file that `save_compact` wrote, in evaluation mode."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"compact network {path} does not exist")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise BadCheckpoint(f"{path} is not a readable safetensors file: {error}") from error
    if metadata.get("format") != FORMAT:
        raise BadCheckpoint(f"{path} is not a compact network (format {metadata.get('format')!r}): use load_checkpoint")
    try:
        model = _build(json.loads(metadata["graph"]), state)
        model.load_state_dict(state)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, IndexError) as error:
        raise BadCheckpoint(f"{path} does not describe a network: {error}") from error
    return model.eval()


def _describe(model: fx.GraphModule) -> dict[str, Any]:
    called = {str(node.target) for node in model.graph.nodes if node.op == "call_module"}
    owners = {name.rpartition(".")[0] for name in model.state_dict()}
    if strange := sorted(
        owner for owner in owners if owner and not any(f"{owner}.".startswith(f"{c}.") for c in called)
    ):
        raise NotCompactable(f"layer {strange[0]!r} has parameters, but is not called")
    nodes = [
        {
            "name": node.name,
            "op": node.op,
            "target": _function_name(node.target) if node.op == "call_function" else str(node.target),
            "args": _plain(node.args, node),
            "kwargs": {key: _plain(value, node) for key, value in node.kwargs.items()},
        }
        for node in model.graph.nodes
    ]
    parameters = [name for name, _ in model.named_parameters(recurse=False)]
    return {
        "nodes": nodes,
        "modules": {name: _module_arguments(name, model.get_submodule(name)) for name in sorted(called)},
        "parameters": parameters,
    }


def _build(described: Mapping[str, Any], state: Mapping[str, Tensor]) -> fx.GraphModule:
    root = nn.Module()
    for name, module in described["modules"].items():
        owner = root
        *parents, last = name.split(".")
        for parent in parents:
            if parent not in owner._modules:
                owner.add_module(parent, nn.Module())
            owner = owner.get_submodule(parent)
        owner.add_module(last, _module(module))
    for name, value in state.items():
        if "." not in name and name in described["parameters"]:
            root.register_parameter(name, nn.Parameter(torch.empty_like(value)))
        elif "." not in name:
            root.register_buffer(name, torch.empty_like(value))
    graph, nodes = fx.Graph(), dict[str, fx.Node]()
    for node in described["nodes"]:
        target = _function(node["target"]) if node["op"] == "call_function" else _checked_target(node)
        nodes[node["name"]] = graph.create_node(
            node["op"],
            target,
            _value(node["args"], nodes),
            {key: _value(value, nodes) for key, value in node["kwargs"].items()},
            name=node["name"],
        )
    graph.lint()
    model = fx.GraphModule(root, graph)
    first = next((value.dtype for value in state.values() if value.is_floating_point()), torch.float32)
    return model.to(first)


def _module_arguments(name: str, module: nn.Module) -> dict[str, Any]:
    """The class of a module of torch.nn and the arguments that build it again."""
    kind = type(module).__name__
    if getattr(nn, kind, None) is not type(module):
        raise NotCompactable(
            f"layer {name!r} is a {kind}, not a module of torch.nn: export it by export_program instead"
        )
    arguments: dict[str, Any] = {}
    for parameter in list(inspect.signature(type(module).__init__).parameters.values())[1:]:
        if parameter.name in ("device", "dtype") or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL or not hasattr(module, parameter.name):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL and kind == "Identity":
                continue
            if parameter.default is not inspect.Parameter.empty:
                continue
            raise NotCompactable(f"layer {name!r} ({kind}) cannot be described: export it by export_program instead")
        value = getattr(module, parameter.name)
        arguments[parameter.name] = value is not None if parameter.name == "bias" else value
    return {"class": kind, "arguments": _plain(arguments)}


def _module(described: Mapping[str, Any]) -> nn.Module:
    kind = getattr(nn, described["class"], None)
    if not (isinstance(kind, type) and issubclass(kind, nn.Module) and kind.__module__.startswith("torch.nn.modules.")):
        raise ValueError(f"{described['class']!r} is not a module of torch.nn")
    return kind(**_value(described["arguments"], {}))


def _plain(value: Any, node: fx.Node | None = None) -> Any:
    if isinstance(value, fx.Node):
        return {_NODE: value.name}
    if isinstance(value, slice):
        return {_SLICE: [_plain(part, node) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, tuple):
        return {_TUPLE: [_plain(item, node) for item in value]}
    if isinstance(value, list):
        return [_plain(item, node) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item, node) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise NotCompactable(
        f"{node} has the argument {value!r}, which a file cannot hold: export it by export_program instead"
    )


def _value(value: Any, nodes: Mapping[str, fx.Node]) -> Any:
    if isinstance(value, list):
        return [_value(item, nodes) for item in value]
    if not isinstance(value, dict):
        return value
    if _NODE in value:
        return nodes[value[_NODE]]
    if _SLICE in value:
        return slice(*(_value(part, nodes) for part in value[_SLICE]))
    if _TUPLE in value:
        return tuple(_value(item, nodes) for item in value[_TUPLE])
    return {key: _value(item, nodes) for key, item in value.items()}


@cache
def _functions() -> dict[str, Any]:
    """The functions that a graph may call, by name: those of torch that take tensors, and some operators."""
    overridable = torch.overrides.get_overridable_functions()
    found = {f"operator.{name}": getattr(operator, name) for name in _OPERATORS}
    for owner, prefix in ((torch, "torch"), (torch.nn.functional, "functional")):
        names = {name for name in dir(owner) if not name.startswith("_")}
        known = {id(function) for function in overridable.get(owner, ())}
        found |= {f"{prefix}.{name}": f for name in names if id(f := getattr(owner, name)) in known}
    return found


def _function_name(target: Any) -> str:
    name = next((name for name, function in _functions().items() if function is target), None)
    if name is None:
        raise NotCompactable(
            f"function {getattr(target, '__name__', target)!r} cannot be in a file: export it by export_program instead"
        )
    return name


def _function(name: str) -> Any:
    if name not in _functions():
        raise ValueError(f"{name!r} is not a function of tensors")
    return _functions()[name]


def _checked_target(node: Mapping[str, Any]) -> str:
    target = node["target"]
    if node["op"] not in ("placeholder", "call_module", "call_method", "get_attr", "output") or not isinstance(
        target, str
    ):
        raise ValueError(f"{node['op']!r} of {target!r} is not a node of a graph")
    # Names become source code of the forward pass.
    if (
        not all(part.isidentifier() or part.isdecimal() for part in target.split("."))
        or not node["name"].isidentifier()
    ):
        raise ValueError(f"{target!r} is not a name")
    if node["op"] == "call_method" and (target.startswith("_") or not callable(getattr(Tensor, target, None))):
        raise ValueError(f"{target!r} is not a method of tensors")
    return target
