"""Wide residual networks (Zagoruyko and Komodakis 2016), WRN-28-10 by default."""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor, nn

from valleyscope.training.models._options import share, whole

_BASE = 16


def wide_resnet(input_shape: tuple[int, ...], classes: int, *, depth: int, widen: int, dropout: float) -> nn.Sequential:
    """One convolution, three stages of (depth - 4) / 6 wide blocks, BatchNorm, and one linear layer.

    The stages have 16, 32 and 64 times `widen` channels. All convolutions have a bias, as in the reference
    implementation of the connectivity experiments.
    """
    depth, widen = whole("wrn28x10", "depth", depth), whole("wrn28x10", "widen", widen)
    dropout = share("wrn28x10", "dropout", dropout)
    if depth < 10 or depth % 6 != 4:
        raise ValueError(
            f"model 'wrn28x10': depth is {depth}, must be 6 n + 4 with n of 1 or more (10, 16, 22, 28, ...)"
        )
    stages: OrderedDict[str, nn.Module] = OrderedDict()
    channels = _BASE
    for stage in (1, 2, 3):
        wider = _BASE * widen * 2 ** (stage - 1)
        for index in range(1, (depth - 4) // 6 + 1):
            stride = 2 if stage > 1 and index == 1 else 1
            stages[f"block{stage}_{index}"] = WideBlock(channels, wider, stride, dropout)
            channels = wider
    return nn.Sequential(
        OrderedDict(
            conv=_convolution(input_shape[0], _BASE, 3),
            **stages,
            norm=nn.BatchNorm2d(channels),
            relu=nn.ReLU(),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            linear=nn.Linear(channels, classes),
        )
    )


class WideBlock(nn.Module):
    """x' + conv(relu(norm(dropout(conv(relu(norm(x))))))); the second convolution has the stride.

    The shortcut x' is x, or a 1x1 convolution of x where the number of channels or the size changes.
    """

    def __init__(self, channels: int, wider: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv1 = _convolution(channels, wider, 3)
        self.dropout = nn.Dropout(dropout)
        self.norm2 = nn.BatchNorm2d(wider)
        self.relu2 = nn.ReLU()
        self.conv2 = _convolution(wider, wider, 3, stride)
        changes = stride != 1 or channels != wider
        self.shortcut = _convolution(channels, wider, 1, stride) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.dropout(self.conv1(self.relu1(self.norm1(x))))
        y = self.conv2(self.relu2(self.norm2(y)))
        result: Tensor = self.shortcut(x) + y
        return result


def _convolution(channels: int, wider: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    convolution = nn.Conv2d(channels, wider, kernel, stride=stride, padding=kernel // 2)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution
