"""VGG16 for images of 32x32 pixels, in the two forms that the literature of pruning and connectivity uses."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from valleyscope.training.models._options import share, whole

# Convolutions of each block, and their channels as multiples of the first block's.
_BLOCKS = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))


def vgg16(input_shape: tuple[int, ...], classes: int, *, width: int, dropout: float) -> nn.Sequential:
    """VGG16 without BatchNorm: 13 convolutions with bias, then dropout and three linear layers.

    `width` is the number of channels in the first block; the linear layers have 8 times as many units.
    """
    width, dropout = whole("vgg16", "width", width), share("vgg16", "dropout", dropout)
    layers = _features(input_shape[0], width, batch_norm=False)
    layers.update(
        dropout1=nn.Dropout(dropout),
        linear1=nn.Linear(8 * width, 8 * width),
        relu6=nn.ReLU(),
        dropout2=nn.Dropout(dropout),
        linear2=nn.Linear(8 * width, 8 * width),
        relu7=nn.ReLU(),
        linear3=nn.Linear(8 * width, classes),
    )
    return nn.Sequential(layers)


def vgg16_bn(input_shape: tuple[int, ...], classes: int, *, width: int) -> nn.Sequential:
    """VGG16 with BatchNorm: 13 convolutions without bias, each normalised, and one linear layer."""
    width = whole("vgg16_bn", "width", width)
    layers = _features(input_shape[0], width, batch_norm=True)
    layers["linear"] = nn.Linear(8 * width, classes)
    return nn.Sequential(layers)


def _features(channels: int, width: int, batch_norm: bool) -> OrderedDict[str, nn.Module]:
    """Return five blocks of 3x3 convolutions, each halved by max-pooling, down to one pixel, and flattened."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for block, (convolutions, multiple) in enumerate(_BLOCKS, start=1):
        for index in range(1, convolutions + 1):
            convolution = nn.Conv2d(channels, multiple * width, 3, padding=1, bias=not batch_norm)
            nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
            layers[f"conv{block}_{index}"] = convolution
            if convolution.bias is not None:
                nn.init.zeros_(convolution.bias)
            if batch_norm:
                layers[f"norm{block}_{index}"] = nn.BatchNorm2d(multiple * width)
            layers[f"relu{block}_{index}"] = nn.ReLU()
            channels = multiple * width
        layers[f"pool{block}"] = nn.MaxPool2d(2)
    layers["flatten"] = nn.Flatten()
    return layers
