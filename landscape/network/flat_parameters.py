"""A copy of a network whose parameters are views of one flat buffer.

Writing the buffer sets all parameters at once. Every parameter is a leaf with a gradient of its size; slices of a
flat vector that requires a gradient would each get a full-size gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from valleyscope.landscape.geometry.parameter_choice import Parameters, frozen_parameters, moving_parameters
from valleyscope.landscape.geometry.wrapped_networks import unwrapped
from valleyscope.landscape.network.copying import copied


class FlatNetwork:
    """A copy of the model, in training mode, whose moving parameters are views of the buffer ``weights``.

    The other parameters share the memory of the model's and have no gradient.

    In the buffer, parameters of four dimensions are in channels-last order by default, which is faster;
    ``to_buffer`` converts flat vectors (in the order of ``flatten``) to buffer order and ``from_buffer`` back.
    """

    def __init__(self, model: nn.Module, parameters: Parameters = None) -> None:
        model = unwrapped(model)
        names = list(moving_parameters(model, parameters))
        self.network = copied(model, shared=frozen_parameters(model, parameters).values()).train()
        named = dict(self.network.named_parameters())
        self.parameters = [named[name] for name in names]
        kinds = {(parameter.dtype, parameter.device) for parameter in self.parameters}
        if len(kinds) > 1:
            found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
            raise ValueError(f"the parameters have several data types or devices ({found}); convert the model to one")
        ((dtype, device),) = kinds
        self.released: set[nn.Parameter] = set()
        self.dimension = sum(parameter.numel() for parameter in self.parameters)
        self.weights = torch.zeros(self.dimension, dtype=dtype, device=device)
        self.bind_parameters(channels_last=True)
        for parameter in self.parameters:
            parameter.requires_grad_(True)

    def bind_parameters(self, *, channels_last: bool) -> None:
        """Make all parameters views of the buffer, with their values, in this memory order."""
        self.channels_last = channels_last
        for parameter, view in zip(self.parameters, self.views_of_buffer(self.weights), strict=True):
            # In both orders a parameter has the same part of the buffer, which may hold its values already.
            parameter.data = view.copy_(parameter.detach().clone())

    def release(self, parameters: Iterable[nn.Parameter]) -> None:
        """Remove parameters from the buffer: the caller sets them from now on."""
        self.released.update(parameters)
        remaining = [parameter for parameter in self.parameters if parameter not in self.released]
        weights = self.weights.new_zeros(sum(parameter.numel() for parameter in remaining))
        for parameter, view in zip(remaining, self.views_of_buffer(weights), strict=True):
            parameter.data = view.copy_(parameter.detach())
        self.weights = weights

    def moves(self, module: nn.Module) -> bool:
        """Whether all parameters of a module itself move."""
        own = {id(parameter) for parameter in self.parameters}
        return all(id(parameter) in own for parameter in module.parameters(recurse=False))

    @property
    def device(self) -> torch.device:
        return self.weights.device

    def views_of_buffer(self, vector: Tensor) -> list[Tensor]:
        """Views of a vector in buffer order with the shapes of the parameters in the buffer."""
        parts: list[Tensor] = []
        offset = 0
        for parameter in self.parameters:
            if parameter in self.released:
                continue
            part = vector[offset : offset + parameter.numel()]
            offset += parameter.numel()
            if parameter.dim() == 4 and self.channels_last:
                outputs, inputs, height, width = parameter.shape
                parts.append(part.view(outputs, height, width, inputs).permute(0, 3, 1, 2))
            else:
                parts.append(part.view(parameter.shape))
        return parts

    def to_buffer(self, vector: Tensor) -> Tensor:
        """A copy of a flat vector in buffer order."""
        buffer = torch.empty_like(self.weights)
        for part, value in zip(self.views_of_buffer(buffer), self.remaining(self.views_of_flat(vector)), strict=True):
            part.copy_(value)
        return buffer

    def remaining(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Of values for all parameters those that belong to the buffer."""
        pairs = zip(self.parameters, values, strict=True)
        return [value for parameter, value in pairs if parameter not in self.released]

    def views_of_flat(self, vector: Tensor) -> list[Tensor]:
        """Views of a flat vector with the shapes of all parameters."""
        sizes = [parameter.numel() for parameter in self.parameters]
        views_of_flat = torch.split(vector, sizes)
        return [piece.view(parameter.shape) for piece, parameter in zip(views_of_flat, self.parameters, strict=True)]

    def from_buffer(self, buffer: Tensor) -> Tensor:
        """The inverse of ``to_buffer``."""
        return torch.cat([part.reshape(-1) for part in self.views_of_buffer(buffer)])

    def inputs(self, x: Tensor) -> Tensor:
        """Inputs on the device, in the data type (integers stay) and, for images, the memory order of the weights."""
        x = x.to(self.weights) if x.is_floating_point() else x.to(self.device)
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 and self.channels_last else x

    def pop_gradients(self) -> Sequence[Tensor]:
        """Return and clear the gradients of the parameters; zeros for unused ones."""
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in self.parameters
        ]
        for parameter in self.parameters:
            parameter.grad = None
        return gradients
