"""Residual networks for CIFAR (He et al. 2016, section 4.2), ResNet-56 by default."""

from __future__ import annotations

from collections import OrderedDict

import torch.nn.functional as F
from torch import Tensor, nn

from valleyscope.training.models._options import whole


def resnet(input_shape: tuple[int, ...], classes: int, *, depth: int, width: int) -> nn.Sequential:
    """One convolution, three stages of (depth - 2) / 6 blocks, average pooling, and one linear layer.

    The stages have 1, 2 and 4 times `width` channels.
    """
    depth, width = whole("resnet56", "depth", depth), whole("resnet56", "width", width)
    if depth < 8 or depth % 6 != 2:
        raise ValueError(
            f"model 'resnet56': depth is {depth}, must be 6 n + 2 with n of 1 or more (8, 14, 20, ..., 56)"
        )
    blocks = (depth - 2) // 6
    stages: OrderedDict[str, nn.Module] = OrderedDict()
    channels = width
    for stage in (1, 2, 3):
        wider = width * 2 ** (stage - 1)
        for index in range(1, blocks + 1):
            stages[f"block{stage}_{index}"] = BasicBlock(channels, wider)
            channels = wider
    linear = nn.Linear(channels, classes)
    nn.init.kaiming_normal_(linear.weight)
    return nn.Sequential(
        OrderedDict(
            conv=_convolution(input_shape[0], width),
            norm=nn.BatchNorm2d(width),
            relu=nn.ReLU(),
            **stages,
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            linear=linear,
        )
    )


class BasicBlock(nn.Module):
    """relu(x' + norm(conv(relu(norm(conv(x)))))); where the block widens, both paths halve the image.

    The shortcut x' is x, or (option A) every second pixel of it with channels of zeros around: no parameters.
    """

    def __init__(self, channels: int, wider: int) -> None:
        super().__init__()
        self.stride = 1 if wider == channels else 2
        self.missing = wider - channels
        self.conv1 = _convolution(channels, wider, self.stride)
        self.norm1 = nn.BatchNorm2d(wider)
        self.relu1 = nn.ReLU()
        self.conv2 = _convolution(wider, wider)
        self.norm2 = nn.BatchNorm2d(wider)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu1(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        if self.missing:
            before = self.missing // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.missing - before))
        result: Tensor = self.relu2(x + y)
        return result


def _convolution(channels: int, wider: int, stride: int = 1) -> nn.Conv2d:
    convolution = nn.Conv2d(channels, wider, 3, stride=stride, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight)
    return convolution
