"""A copy of a network whose parameters are views of one flat buffer, for gradients at any point of weight space.

Setting the buffer moves all parameters at once. Cutting a flat vector that requires a gradient would make each
parameter's gradient a full-size vector of zeros with one stretch filled; here every parameter is a leaf, and its
gradient has its own size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from valleyscope.landscape.geometry.vectors import dimension
from valleyscope.landscape.network.copying import copied


class FlatNetwork:
    """A private copy of the model, in training mode, with parameters bound to ``weights``.

    Inside the buffer, parameters of four dimensions lie in channels-last order unless told otherwise (convolutions on
    images are faster in it); ``arrange`` brings flat vectors into this order and ``restore`` brings them back. At
    first the weights are those of the model.
    """

    def __init__(self, model: nn.Module) -> None:
        self.network = copied(model).train()
        self.parameters = list(self.network.parameters())
        kinds = {(parameter.dtype, parameter.device) for parameter in self.parameters}
        if len(kinds) > 1:
            found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
            raise ValueError(f"the parameters are of several kinds ({found}); convert the model to one first")
        ((dtype, device),) = kinds
        self.released: set[nn.Parameter] = set()
        self.dimension = dimension(model)
        self.weights = torch.zeros(self.dimension, dtype=dtype, device=device)
        self.bind_parameters(channels_last=True)
        for parameter in self.parameters:
            parameter.requires_grad_(True)

    def bind_parameters(self, *, channels_last: bool) -> None:
        """Bind all parameters to the buffer, with their values, in this order of memory."""
        self.channels_last = channels_last
        for parameter, view in zip(self.parameters, self.views_of_buffer(self.weights), strict=True):
            # In either order a parameter has the same stretch of the buffer, where its own values may lie already.
            parameter.data = view.copy_(parameter.detach().clone())

    def release(self, parameters: Iterable[nn.Parameter]) -> None:
        """Take parameters out of the buffer: whoever does this looks after them, and the buffer gets smaller."""
        self.released.update(parameters)
        remaining = [parameter for parameter in self.parameters if parameter not in self.released]
        weights = self.weights.new_zeros(sum(parameter.numel() for parameter in remaining))
        for parameter, view in zip(remaining, self.views_of_buffer(weights), strict=True):
            parameter.data = view.copy_(parameter.detach())
        self.weights = weights

    @property
    def device(self) -> torch.device:
        return self.weights.device

    def views_of_buffer(self, vector: Tensor) -> list[Tensor]:
        """Views of an arranged vector with the shapes of the parameters in the buffer."""
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
        """A flat vector (in the order of ``flatten``) as a new vector in the order of the buffer."""
        buffer = torch.empty_like(self.weights)
        parts = iter(self.views_of_buffer(buffer))
        for parameter, value in zip(self.parameters, self.views_of_flat(vector), strict=True):
            if parameter not in self.released:
                next(parts).copy_(value)
        return buffer

    def views_of_flat(self, vector: Tensor) -> list[Tensor]:
        """Views of a flat vector with the shapes of all parameters."""
        sizes = [parameter.numel() for parameter in self.parameters]
        views_of_flat = torch.split(vector, sizes)
        return [piece.view(parameter.shape) for piece, parameter in zip(views_of_flat, self.parameters, strict=True)]

    def from_buffer(self, buffer: Tensor) -> Tensor:
        """The inverse of ``arrange``."""
        return torch.cat([part.reshape(-1) for part in self.views_of_buffer(buffer)])

    def inputs(self, x: Tensor) -> Tensor:
        """Inputs on the device, in the data type (whole numbers stay) and, if images, in the order of the weights."""
        x = x.to(self.weights) if x.is_floating_point() else x.to(self.device)
        return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 and self.channels_last else x

    def pop_gradients(self) -> Sequence[Tensor]:
        """The gradients of the parameters since the last call; a parameter that took no part has zeros."""
        gradients = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in self.parameters
        ]
        for parameter in self.parameters:
            parameter.grad = None
        return gradients
