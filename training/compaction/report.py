"""What a compact network saves: parameters, multiply-adds, bytes and the widths of its layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from safetensors.torch import save
from torch import Tensor, nn

from valleyscope.training.models.operation_count import count_parameters, layer_multiply_adds


@dataclass(frozen=True)
class Size:
    """The size of a network: its parameters, multiply-adds for one sample, and the bytes of its weights in a file."""

    parameters: int
    multiply_adds: int
    bytes: int


@dataclass(frozen=True)
class LayerWidths:
    """Input and output channels of a layer before and after; a layer that vanished has none."""

    name: str
    inputs: tuple[int, int]
    outputs: tuple[int, int]


@dataclass(frozen=True)
class CompactReport:
    """A network before and after; `left_whole` names what was not made smaller, and why.

    Layers in `fixed_size` have a map of constants: the compact network takes images of the example's size only.
    """

    before: Size
    after: Size
    layers: tuple[LayerWidths, ...]
    left_whole: Mapping[str, str]
    fixed_size: tuple[str, ...] = ()

    @property
    def is_smaller(self) -> bool:
        return self.after.parameters < self.before.parameters

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        plain["layers"] = [
            {"name": layer.name, "inputs": list(layer.inputs), "outputs": list(layer.outputs)} for layer in self.layers
        ]
        return plain | {"left_whole": dict(self.left_whole), "fixed_size": list(self.fixed_size)}

    def __str__(self) -> str:
        rows = [
            f"{label:<14}{before:>15,} -> {after:>13,}   {after / max(before, 1):.1%}"
            for label, before, after in (
                ("parameters", self.before.parameters, self.after.parameters),
                ("multiply-adds", self.before.multiply_adds, self.after.multiply_adds),
                ("bytes", self.before.bytes, self.after.bytes),
            )
        ]
        return "\n".join([*rows, *(f"left whole: {name}: {reason}" for name, reason in self.left_whole.items())])


def compare_networks(
    old: nn.Module,
    new: nn.Module,
    example: Sequence[Tensor],
    left_whole: Mapping[str, str],
    fixed_size: Collection[str],
    needed: Collection[str],
) -> CompactReport:
    """The report on two networks with the same names of layers."""
    layers = dict(old.named_modules())
    after = dict(new.named_modules())
    rows = []
    for name, layer in layers.items():
        if (widths := _widths(layer)) is not None:
            kept = (_widths(after[name]) if name in needed else None) or (0, 0)
            rows.append(LayerWidths(name, (widths[0], kept[0]), (widths[1], kept[1])))
    return CompactReport(
        _size(old, example), _size(new, example), tuple(rows), dict(left_whole), tuple(dict.fromkeys(fixed_size))
    )


def _widths(layer: nn.Module) -> tuple[int, int] | None:
    if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return layer.in_channels, layer.out_channels
    return (layer.in_features, layer.out_features) if isinstance(layer, nn.Linear) else None


def _size(model: nn.Module, example: Sequence[Tensor]) -> Size:
    tensors = {name: tensor.detach().contiguous().clone() for name, tensor in model.state_dict().items()}
    first = [x[:1] for x in example]
    return Size(count_parameters(model), sum(layer_multiply_adds(model, *first).values()), len(save(tensors)))
