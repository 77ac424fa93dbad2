"""Remove zero groups from a network exactly: a smaller network that computes the same."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from valleyscope.training.compaction.builder import Builder, Part
from valleyscope.training.compaction.channels import Channels
from valleyscope.training.compaction.classification import classify
from valleyscope.training.compaction.operations import Operation, Whole
from valleyscope.training.compaction.report import CompactReport, compare_networks
from valleyscope.training.compaction.tracing import NotCompactable, run_nodes, trace

TOLERANCE = 1e-5
"""How far outputs may differ, as a share of the largest one: rounding of sums in another order."""


@dataclass(frozen=True)
class Compact:
    """A compact network, what it saves, and an input that fits it."""

    model: fx.GraphModule
    report: CompactReport
    example: tuple[Tensor, ...]


def compact(model: nn.Module, example: Tensor | Sequence[Tensor]) -> Compact:
    """A network without the channels that are constant or never read, with the outputs of `model` in evaluation mode.

    `example` is an input (or a tuple of inputs) of the shape that the network gets; values do not matter. The old
    network stays as it is. Channels are removed if their weights are exactly zero; what a zero filter with a bias or β
    gives is a constant, and becomes part of the biases of the next layer. Raises `NotCompactable`, which names the
    layer, if the network cannot be traced.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> _ = model[0].weight.data[:5].zero_()
    >>> compact(model, torch.zeros(1, 4)).model.get_submodule("0")
    Linear(in_features=4, out_features=3, bias=True)
    """
    inputs = (example,) if isinstance(example, Tensor) else tuple(example)
    first = next(model.parameters(), torch.empty(0))
    inputs = tuple(x.detach().to("cpu", first.dtype if x.is_floating_point() else x.dtype) for x in inputs)
    old = copy.deepcopy(model).cpu().eval()
    with torch.no_grad():
        expected = old(*inputs)
        graph = trace(old, inputs)
        values = run_nodes(graph, inputs)
        operations = {
            node: classify(graph, node, values)
            for node in graph.graph.nodes
            if node.op not in ("placeholder", "output")
        }
        channels = _analyse(graph, operations, values)
        builder = _build(graph, operations, channels, first.dtype)
        result = fx.GraphModule(builder.root, builder.graph, type(model).__name__).eval()
        result.graph.lint()
        _check_equal(model, graph, result, inputs, expected)
        needed = {str(node.target) for node in builder.graph.nodes if node.op == "call_module"}
        whole = _left_whole(operations, builder)
        report = compare_networks(old, result, inputs, whole, builder.fixed_size, needed)
    return Compact(result.to(first.device), report, tuple(x.to(first.device) for x in inputs))


def _analyse(
    graph: fx.GraphModule, operations: dict[fx.Node, Operation], values: dict[fx.Node, Any]
) -> dict[fx.Node, Channels | None]:
    """What is known of every value: constants forward, then backward what is read."""
    known: dict[fx.Node, Channels | None] = {}
    for node in graph.graph.nodes:
        if node in operations:
            known[node] = operations[node].channels(known, values[node])
        elif node.op == "placeholder":
            known[node] = Channels.unknown(values[node])
    needed: set[fx.Node] = set()
    for node in reversed(graph.graph.nodes):
        if node.op == "output":
            reads = Whole(node, "").reads(known, torch.ones(1, dtype=torch.bool))
        elif node in operations and (node in needed if known[node] is None else bool(_live(known[node]).any())):
            reads = operations[node].reads(known, _live(known[node]))
        else:
            continue
        for source, mask in reads.items():
            channels = known[source]
            if channels is None:
                needed.add(source)
            else:
                channels.read |= mask
    for node in operations:
        if known[node] is None and node not in needed:
            del known[node]
    return known


def _live(channels: Channels | None) -> Tensor:
    return torch.ones(1, dtype=torch.bool) if channels is None else channels.live


def _build(
    graph: fx.GraphModule,
    operations: dict[fx.Node, Operation],
    channels: dict[fx.Node, Channels | None],
    dtype: torch.dtype,
) -> Builder:
    builder = Builder(graph, channels, dtype)
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            copied = builder.graph.node_copy(node)
            builder.input = builder.input or copied
            _enter(builder, node, Part(copied, tuple(range(len(_live(channels[node]))))))
        elif node.op == "output":
            builder.graph.output(fx.node.map_arg(node.args[0], builder.whole))
        elif node in channels:
            live = _live(channels[node])
            part = operations[node].build(builder, live) if live.any() else Part(None, ())
            _enter(builder, node, part)
    return builder


def _enter(builder: Builder, node: fx.Node, part: Part) -> None:
    if builder.channels[node] is None:
        assert part.node is not None
        builder.values[node] = part.node
    else:
        builder.parts[node] = part


def _left_whole(operations: dict[fx.Node, Operation], builder: Builder) -> dict[str, str]:
    """The layers and functions that take all channels, and why."""
    return {
        str(node.target) if node.op == "call_module" else node.name: operation.reason
        for node, operation in operations.items()
        if operation.reason and (node in builder.values or (node in builder.parts and builder.parts[node].node))
    }


def _check_equal(
    model: nn.Module, graph: fx.GraphModule, result: nn.Module, inputs: tuple[Tensor, ...], expected: Any
) -> None:
    """Refuse a compact network whose outputs are not those of the old one."""
    generator = torch.Generator().manual_seed(0)
    other = tuple(
        torch.randn(x.shape, generator=generator, dtype=x.dtype) if x.is_floating_point() else x for x in inputs
    )
    for x, outputs in ((inputs, expected), (other, graph(*other))):
        if (error := _difference(outputs, result(*x))) > TOLERANCE:
            raise NotCompactable(
                f"{type(model).__name__}: the compact network differs by {error:.2g} of the largest output, more than "
                f"{TOLERANCE:g}; report it with the code of the network"
            )


def _difference(a: Any, b: Any) -> float:
    """The largest difference of two outputs, as a share of the largest value."""
    if isinstance(a, Tensor):
        size = a.abs().amax().clamp_min(torch.finfo(a.dtype).tiny) if a.numel() and a.is_floating_point() else 1
        return float(((a - b).abs().amax() / size).nan_to_num(1.0)) if a.numel() else 0.0
    pairs = zip(a.values(), b.values(), strict=True) if isinstance(a, dict) else zip(a, b, strict=True)
    return max((_difference(x, y) for x, y in pairs), default=0.0)
