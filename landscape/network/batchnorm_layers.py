"""BatchNorm layers with given mean and variance."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from valleyscope.landscape.network.fx_graph import is_altered
from valleyscope.landscape.network.graph_rewrites import Window, window_maximum
from valleyscope.landscape.network.running_moments import RunningMoments

_COLUMNS = 512

Normalise = Callable[..., Tensor]
"""The forward pass of a layer with given statistics."""


def is_standard(layer: _BatchNorm) -> bool:
    """Whether a layer has the forward pass of torch and no hooks."""
    return type(layer).forward in (_BatchNorm.forward, nn.SyncBatchNorm.forward) and not is_altered(layer)


def scale_and_shift(
    layer: _BatchNorm, mean: Tensor, variance: Tensor, dtype: torch.dtype, window: Window | None = None
) -> ScaleAndShift:
    """BatchNorm as x -> x * scale + shift: scale = gamma / sqrt(v + eps), shift = beta - m * scale; from float64.

    With a ``window`` max-pooling follows.
    """
    scale = (variance + layer.eps).rsqrt()
    if layer.weight is not None:
        scale = scale * layer.weight
    shift = -mean * scale
    if layer.bias is not None:
        shift = shift + layer.bias
    scale, shift = scale.to(dtype), shift.to(dtype)
    return ScaleAndShift(scale, shift) if window is None else PooledScaleAndShift(scale, shift, window, signs_of(layer))


def through_running_averages(
    layer: _BatchNorm, forward: Normalise, moments: RunningMoments, dtype: torch.dtype
) -> Normalise:
    """The layer's own forward pass, with the statistics set as its running averages."""
    mean, variance = (moment.to(dtype) for moment in moments.pooled())

    def with_statistics(*arguments: object, **options: object) -> Tensor:
        layer.running_mean, layer.running_var = mean, variance
        return forward(*arguments, **options)

    return with_statistics


def check_accepts_statistics(name: str, layer: _BatchNorm, x: Tensor) -> None:
    """Raise an error unless a custom BatchNorm layer normalises by its running averages.

    It does if some samples, with the statistics of all set, give the same as all of them in training mode.
    """
    saved = dict(layer._buffers)
    generator = torch.Generator().manual_seed(0)
    shape = (8, *x.shape[1:])
    channels = torch.linspace(1.0, 2.0, x.shape[1]).view(-1, *(1,) * (x.dim() - 2))
    samples = (channels * (1.0 + torch.randn(shape, generator=generator))).to(x)
    moments = RunningMoments()
    moments.add(samples)
    try:
        layer._buffers.update({key: None if value is None else value.clone() for key, value in saved.items()})
        with torch.no_grad():
            expected = layer.train()(samples)[:4]
            found = through_running_averages(layer.eval(), layer, moments, x.dtype)(samples[:4])
        accepted = torch.allclose(found, expected, rtol=1e-2, atol=1e-2)
    except Exception:  # custom code may raise anything on these inputs
        accepted = False
    finally:
        layer.eval()
        layer._buffers.update(saved)
    if not accepted:
        raise ValueError(
            f"BatchNorm layer {name!r} is a {type(layer).__name__} with its own forward pass or hooks, which does not "
            "normalise by running_mean and running_var alone, so population statistics cannot be set; "
            "use batch_norm='running' or 'frozen'"
        )


class ScaleAndShift:
    """x -> x * scale + shift for every channel (dimension 1).

    Images in channels-last order become a matrix with the channels repeated to about 500 columns: torch has one inner
    loop a row, which is slow for few channels.
    """

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        self._scale = scale
        self._shift = shift
        self._repeated: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, x: Tensor) -> Tensor:
        return self._applied(x, in_place=False)

    def in_place(self, x: Tensor) -> Tensor:
        """The same in the memory of x."""
        return self._applied(x, in_place=True)

    def _applied(self, x: Tensor, *, in_place: bool) -> Tensor:
        channels = x.shape[1]
        if x.dim() != 4 or not x.is_contiguous(memory_format=torch.channels_last):
            shape = (1, -1) + (1,) * (x.dim() - 2)
            scale, shift = self._scale.view(shape), self._shift.view(shape)
            return torch.addcmul(shift, x, scale, out=x) if in_place else torch.addcmul(shift, x, scale)
        repeats, pixels = 1, x.numel() // channels
        while 2 * repeats * channels <= _COLUMNS and pixels % (2 * repeats) == 0:
            repeats *= 2
        if repeats not in self._repeated:
            self._repeated[repeats] = self._scale.repeat(repeats), self._shift.repeat(repeats)
        scale, shift = self._repeated[repeats]
        y = x if in_place else torch.empty_like(x)
        matrix, target = (images.movedim(1, -1).view(-1, repeats * channels) for images in (x, y))
        torch.addcmul(shift, matrix, scale, out=target)
        return y


class PooledScaleAndShift(ScaleAndShift):
    """x -> x * scale + shift with max-pooling before it instead of after it, on a quarter of the values.

    The maximum of s x + t is |s| max(sign(s) x) + t, and rounding keeps order, so the values have the same bits. A ReLU
    between the two may follow instead, for the same reason.
    """

    def __init__(self, scale: Tensor, shift: Tensor, window: Window, signs: Tensor | None) -> None:
        super().__init__(scale if signs is None else scale * signs, shift)
        self._window = window
        self._signs = signs

    def __call__(self, x: Tensor) -> Tensor:
        return self.in_place(signed_maximum(x, self._window, self._signs))


def signs_of(layer: _BatchNorm) -> Tensor | None:
    """The signs of the scales of a layer, shape (channels,); None if none is negative."""
    if layer.weight is None or not bool((layer.weight < 0).any()):
        return None
    return torch.where(layer.weight < 0, -1.0, 1.0).to(layer.weight.dtype)


def signed_maximum(x: Tensor, window: Window, signs: Tensor | None) -> Tensor:
    """Max-pooling of the channels times their signs."""
    return window_maximum(x if signs is None else x * signs.view(-1, 1, 1), window)
