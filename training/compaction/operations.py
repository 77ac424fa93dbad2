"""How each kind of operation treats channels: what it makes of constants, what it reads, and its compact form."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from valleyscope.training.compaction.builder import Builder, Part
from valleyscope.training.compaction.channels import Channels, is_uniform, one_pixel

Known = Mapping[fx.Node, Channels | None]


class Operation:
    """One node of the old graph."""

    reason = ""
    """Why an operation is left whole; empty if it is not."""

    def __init__(self, node: fx.Node) -> None:
        self.node = node

    def channels(self, known: Known, value: Any) -> Channels | None:
        """What is known of the output's channels; `value` is the output for the example."""
        raise NotImplementedError

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:
        """The channels of each input on which the live channels of the output depend."""
        raise NotImplementedError

    def build(self, builder: Builder, live: Tensor) -> Part:
        """Add the operation to the new graph."""
        raise NotImplementedError

    def _source(self, known: Known) -> Channels:
        found = known[self.node.all_input_nodes[0]]
        assert found is not None
        return found


class Whole(Operation):
    """Any operation that is not known here: takes all channels of its inputs, and gives all of its output."""

    def __init__(self, node: fx.Node, reason: str, module: nn.Module | None = None) -> None:
        super().__init__(node)
        self.reason = reason
        self.module = module

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        return Channels.unknown(value)

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:  # noqa: ARG002
        found = ((source, known[source]) for source in self.node.all_input_nodes)
        return {
            source: torch.ones(1 if channels is None else channels.count, dtype=torch.bool)
            for source, channels in found
        }

    def build(self, builder: Builder, live: Tensor) -> Part:
        if self.node.op == "get_attr":
            node = builder.attribute(str(self.node.target))
        else:
            if self.module is not None:
                builder.keep_module(str(self.node.target), self.module)
            node = builder.graph.node_copy(self.node, builder.whole)
        return Part(node, tuple(range(len(live))))


class Channelwise(Operation):
    """Treats every channel by itself and alike: activations, pooling, dropout, slices and padding of images."""

    def __init__(self, node: fx.Node, function: Callable[..., Any]) -> None:
        super().__init__(node)
        self.function = function

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        source = self._source(known)
        return Channels.of(source.varying.clone(), self._apply(source.constants))

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:  # noqa: ARG002
        return {self.node.all_input_nodes[0]: live}

    def build(self, builder: Builder, live: Tensor) -> Part:  # noqa: ARG002
        part = builder.parts[self.node.all_input_nodes[0]]
        assert part.node is not None
        return Part(self._copy(builder, part.node), part.present)

    def _apply(self, constants: Tensor) -> Tensor:
        arguments, options = fx.node.map_arg((self.node.args, self.node.kwargs), lambda _: constants)
        result: Tensor = self.function(*arguments, **options)
        return result

    def _copy(self, builder: Builder, value: fx.Node) -> fx.Node:
        if self.node.op != "call_module":
            return builder.graph.node_copy(self.node, lambda _: value)
        return builder.module(str(self.node.target), (), lambda: copy.deepcopy(self.function), value)


class PerChannel(Channelwise):
    """A module with parameters for each channel: BatchNorm, PReLU, a depthwise convolution."""

    def __init__(self, node: fx.Node, module: nn.Module) -> None:
        super().__init__(node, copy.deepcopy(module).double())
        self.module = module

    def build(self, builder: Builder, live: Tensor) -> Part:  # noqa: ARG002
        part = builder.parts[self.node.all_input_nodes[0]]
        assert part.node is not None
        node = builder.module(str(self.node.target), part.present, lambda: self._sliced(part.present), part.node)
        return Part(node, part.present)

    def _sliced(self, present: tuple[int, ...]) -> nn.Module:
        if getattr(self.module, "num_parameters", None) == 1:  # a PReLU with one slope for all channels
            return copy.deepcopy(self.module)
        return _with_rows(self.module, present, num_features=len(present), num_parameters=len(present))


class Norm(PerChannel):
    """BatchNorm with running statistics; a channel whose γ is zero is the constant β."""

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        source = self._source(known)
        return Channels.of(source.varying & self._scaled(), self._apply(source.constants))

    def _scaled(self) -> Tensor:
        weight = self.module.weight
        return weight.detach() != 0 if isinstance(weight, Tensor) else torch.tensor(True)


class Depthwise(PerChannel):
    """A convolution with one filter for each channel; a channel whose filter is zero is the constant bias."""

    module: nn.Conv2d

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        source = self._source(known)
        alive = self.module.weight.detach().flatten(1).any(dim=1)
        return Channels.of(source.varying & alive, self._apply(source.constants))

    def build(self, builder: Builder, live: Tensor) -> Part:
        wanted = tuple(live.nonzero().flatten().tolist())
        value = builder.aligned(self.node.all_input_nodes[0], wanted)
        return Part(builder.module(str(self.node.target), wanted, lambda: self._sliced(wanted), value), wanted)

    def _sliced(self, present: tuple[int, ...]) -> nn.Module:
        width = len(present)
        return _with_rows(self.module, present, in_channels=width, out_channels=width, groups=width)


class Layer(Operation):
    """A convolution or linear layer: each output channel is a weighted sum over input channels, and a bias."""

    def __init__(self, node: fx.Node, module: nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear) -> None:
        super().__init__(node)
        self.module = module
        self.double = copy.deepcopy(module).double()
        self.linked = module.weight.detach().flatten(2).any(dim=2) if module.weight.dim() > 2 else module.weight != 0

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        source = self._source(known)
        varying = (self.linked & source.varying).any(dim=1)
        return Channels.of(varying, self.double(source.constants))

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:  # noqa: ARG002
        return {self.node.all_input_nodes[0]: self.linked[live].any(dim=0)}

    def build(self, builder: Builder, live: Tensor) -> Part:
        source, name = self.node.all_input_nodes[0], str(self.node.target)
        part = builder.parts[source]
        assert part.node is not None
        wanted = tuple(live.nonzero().flatten().tolist())
        offset = self._offset(builder, source, part.present, wanted)
        uniform = is_uniform(offset)
        bias = offset.flatten(2)[0, :, 0] if offset.dim() > 2 and uniform else offset[0] if uniform else None
        key = (part.present, wanted, None if bias is None else tuple(bias.tolist()))
        node = builder.module(name, key, lambda: self._sliced(part.present, wanted, bias), part.node)
        if bias is None:
            node = builder.call(operator.add, node, builder.buffer(f"{name}_constant", offset))
            builder.fixed_size.append(name)
        return Part(node, wanted)

    def _offset(self, builder: Builder, source: fx.Node, present: tuple[int, ...], wanted: tuple[int, ...]) -> Tensor:
        """What bias and constant channels add to the wanted outputs: one value each, or under padding a map."""
        known = builder.channels[source]
        assert known is not None
        constants = known.constants.clone()
        constants[:, list(present)] = 0.0
        with torch.no_grad():
            offset: Tensor = self.double(constants)[:, list(wanted)]
        return offset

    def _sliced(self, present: tuple[int, ...], wanted: tuple[int, ...], bias: Tensor | None) -> nn.Module:
        layer = copy.copy(self.module)
        layer._parameters = {}
        weight = self.module.weight.detach()[list(wanted)][:, list(present)].contiguous()
        layer.weight = nn.Parameter(weight)
        needed = bias is not None and (self.module.bias is not None or bool(bias.any()))
        layer.bias = nn.Parameter(bias.to(weight.dtype)) if needed and bias is not None else None
        ends = ("in_features", "out_features") if isinstance(layer, nn.Linear) else ("in_channels", "out_channels")
        for attribute, width in zip(ends, (len(present), len(wanted)), strict=True):
            setattr(layer, attribute, width)
        return layer


class Flatten(Operation):
    """Makes every pixel of every channel a channel."""

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        source = self._source(known)
        return Channels.of(source.varying.repeat_interleave(self._pixels(source)), source.constants.flatten(1))

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:
        source = self._source(known)
        return {self.node.all_input_nodes[0]: live.view(source.count, -1).any(dim=1)}

    def build(self, builder: Builder, live: Tensor) -> Part:  # noqa: ARG002
        source = self.node.all_input_nodes[0]
        part, pixels = builder.parts[source], self._pixels(self._source(builder.channels))
        present = tuple(channel * pixels + pixel for channel in part.present for pixel in range(pixels))
        return Part(builder.call(torch.flatten, part.node, 1), present)

    @staticmethod
    def _pixels(source: Channels) -> int:
        return source.constants[0, 0].numel()


class Renumbered(Operation):
    """Adds constant channels around those of its input, or takes a slice of them.

    `images_only` adds what the operation does to images; `origins` are the old numbers of channels, -1 for new ones.
    """

    origins: Tensor

    def __init__(
        self, node: fx.Node, function: Callable[..., Any], images_only: Callable[[fx.Graph, fx.Node], fx.Node]
    ):
        super().__init__(node)
        self.function = function
        self.images_only = images_only

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        source = self._source(known)
        numbers = torch.arange(1, source.count + 1).view(1, -1, *(1,) * (source.constants.dim() - 2))
        moved = self._apply(numbers.expand(source.constants.shape).double())
        self.origins = moved.flatten(2).amax(dim=2)[0].long() - 1 if moved.dim() > 2 else moved[0].long() - 1
        varying = torch.where(self.origins >= 0, source.varying[self.origins.clamp_min(0)], False)
        return Channels.of(varying, self._apply(source.constants))

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:
        read = torch.zeros(self._source(known).count, dtype=torch.bool)
        read[self.origins[live]] = True
        return {self.node.all_input_nodes[0]: read}

    def build(self, builder: Builder, live: Tensor) -> Part:
        source = self.node.all_input_nodes[0]
        part = builder.parts[source]
        places = {int(origin): place for place, origin in enumerate(self.origins.tolist()) if origin >= 0}
        kept = [channel for channel in part.present if channel in places]
        if len(kept) < len(part.present):
            kept = [channel for channel in kept if live[places[channel]]]
        node = builder.aligned(source, kept)
        return Part(self.images_only(builder.graph, node), tuple(places[channel] for channel in kept))

    def _apply(self, constants: Tensor) -> Tensor:
        arguments, options = fx.node.map_arg((self.node.args, self.node.kwargs), lambda _: constants)
        result: Tensor = self.function(*arguments, **options)
        return result


class Elementwise(Operation):
    """An operation on two values with the same channels, such as a product."""

    def __init__(self, node: fx.Node, function: Callable[..., Any]) -> None:
        super().__init__(node)
        self.function = function

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        inputs = {source: known[source] for source in self.node.all_input_nodes}
        arguments, options = fx.node.map_arg(
            (self.node.args, self.node.kwargs),
            lambda source: inputs[source].constants,  # type: ignore[union-attr]
        )
        constants = self.function(*arguments, **options)
        varying = torch.stack([channels.varying for channels in inputs.values() if channels is not None])
        return Channels.of(self._varies(varying, inputs), constants)

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:  # noqa: ARG002
        return dict.fromkeys(self.node.all_input_nodes, live)

    def build(self, builder: Builder, live: Tensor) -> Part:
        wanted = tuple(live.nonzero().flatten().tolist())
        node = builder.graph.node_copy(self.node, lambda source: builder.aligned(source, wanted))
        return Part(node, wanted)

    def _varies(self, varying: Tensor, inputs: Mapping[fx.Node, Channels | None]) -> Tensor:  # noqa: ARG002
        return varying.any(dim=0)


class Product(Elementwise):
    """A product is zero where one factor is the constant zero."""

    def _varies(self, varying: Tensor, inputs: Mapping[fx.Node, Channels | None]) -> Tensor:
        found = varying.any(dim=0)
        for channels in inputs.values():
            assert channels is not None
            found &= channels.varying | channels.constants.flatten(2).any(dim=2)[0]
        return found


class Addition(Elementwise):
    """The sum of two values: of a residual block and its shortcut."""

    def build(self, builder: Builder, live: Tensor) -> Part:  # noqa: ARG002
        a, b = self.node.args
        assert isinstance(a, fx.Node)
        assert isinstance(b, fx.Node)
        parts = builder.parts
        if len(parts[a].present) < len(parts[b].present):
            a, b = b, a
        node, present, other = parts[a].node, parts[a].present, parts[b]
        if other.present == present:
            return Part(builder.call(operator.add, node, other.node), present)
        added = tuple(channel for channel in other.present if channel not in set(present))
        if added:  # room for the channels that are constant in the larger part
            dims = self._source(builder.channels).constants.dim()
            node = builder.call(F.pad, node, [*(0, 0) * (dims - 2), 0, len(added)])
            present = (*present, *added)
        if other.node is not None:
            places = {channel: place for place, channel in enumerate(present)}
            index = builder.index(self.node.name, [places[channel] for channel in other.present])
            node = builder.call(torch.index_add, node, 1, index, other.node)
        node = self._with_constants(builder, node, a, present)
        return Part(self._with_constants(builder, node, b, present), present)

    def _with_constants(self, builder: Builder, node: fx.Node | None, old: fx.Node, present: tuple[int, ...]) -> Any:
        """Add the constant channels of a summand."""
        held = set(builder.parts[old].present)
        constants = builder.constants(old, present).clone()
        constants[:, [place for place, channel in enumerate(present) if channel in held]] = 0.0
        if not constants.any():
            return node
        if not is_uniform(constants):
            builder.fixed_size.append(self.node.name)
        return builder.call(operator.add, node, builder.buffer(f"{self.node.name}_constant", one_pixel(constants)))


class Concatenation(Operation):
    """The channels of several values, one after the other."""

    def channels(self, known: Known, value: Any) -> Channels | None:  # noqa: ARG002
        inputs = [known[source] for source in self._sources()]
        return Channels.of(
            torch.cat([channels.varying for channels in inputs if channels is not None]),
            torch.cat([channels.constants for channels in inputs if channels is not None], dim=1),
        )

    def reads(self, known: Known, live: Tensor) -> dict[fx.Node, Tensor]:
        read: dict[fx.Node, Tensor] = {}
        for source, part in zip(self._sources(), live.split(self._widths(known)), strict=True):  # type: ignore[no-untyped-call]
            read[source] = read[source] | part if source in read else part
        return read

    def build(self, builder: Builder, live: Tensor) -> Part:  # noqa: ARG002
        nodes, present, start = [], [], 0
        for source, width in zip(self._sources(), self._widths(builder.channels), strict=True):
            part = builder.parts[source]
            if part.node is not None:
                nodes.append(part.node)
                present += [start + channel for channel in part.present]
            start += width
        return Part(nodes[0] if len(nodes) == 1 else builder.call(torch.cat, nodes, dim=1), tuple(present))

    def _sources(self) -> list[fx.Node]:
        return list(self.node.args[0])  # type: ignore[arg-type]

    def _widths(self, known: Known) -> list[int]:
        return [channels.count for source in self._sources() if (channels := known[source]) is not None]


def _with_rows(module: nn.Module, rows: tuple[int, ...], **attributes: int) -> nn.Module:
    """A copy of a module with some rows of its parameters and buffers."""
    sliced = copy.copy(module)
    index = list(rows)
    sliced._parameters = {
        name: None if value is None else nn.Parameter(value.detach()[index].contiguous())
        for name, value in module._parameters.items()
    }
    sliced._buffers = {
        name: value if value is None or value.dim() == 0 else value[index].clone()
        for name, value in module._buffers.items()
    }
    for attribute, value in attributes.items():
        if hasattr(module, attribute):
            setattr(sliced, attribute, value)
    return sliced
