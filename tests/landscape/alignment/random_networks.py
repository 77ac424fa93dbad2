"""Random networks of all kinds of layers, also of some that depend on the order of channels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import Tensor, nn

WIDTH = 8
BLOCKS = (
    *("conv", "narrow", "residual", "concat", "depthwise", "grouped", "squeeze", "batchnorm", "groupnorm"),
    *("layernorm", "gate", "shuffle", "padded", "attention", "heads", "shared", "roll", "cumsum", "window", "scale"),
)


class Block(nn.Module):
    """Images of WIDTH channels to images of WIDTH channels."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        c = WIDTH
        self.one = nn.Conv2d(c, 6 if kind == "narrow" else 2 * c if kind == "gate" else c, 3, padding=1)
        match kind:
            case "narrow" | "residual" | "shared":
                self.two = nn.Conv2d(6 if kind == "narrow" else c, c, 1)
            case "concat":
                self.two, self.three = nn.Conv2d(c, 3, 1), nn.Conv2d(3 + c + c, c, 1)
            case "depthwise":
                self.two, self.three = nn.Conv2d(c, 2 * c, 3, padding=1, groups=c), nn.Conv2d(2 * c, c, 1)
            case "grouped":
                self.two, self.three = nn.Conv2d(c, 12, 3, padding=1, groups=4), nn.Conv2d(12, c, 1)
            case "squeeze":
                self.two, self.three = nn.Linear(c, 5), nn.Linear(5, c)
            case "batchnorm":
                self.two = nn.BatchNorm2d(c)
                self.two.running_mean.normal_()
                self.two.running_var.uniform_(0.5, 2.0)
            case "groupnorm":
                self.two = nn.GroupNorm(2, c)
            case "layernorm":
                self.two = nn.LayerNorm(c)
            case "padded":
                self.two = nn.Conv2d(c + 5, c, 1)
            case "attention":
                self.two = nn.MultiheadAttention(c, 4, batch_first=True)
            case "heads":
                self.two, self.three = nn.Linear(c, 3 * c), nn.Linear(c, c)
            case "scale":
                self.two = nn.Parameter(torch.randn(c, 1, 1))
            case "window":
                self.register_buffer("table", torch.randn(1, c, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x)
        match self.kind:
            case "narrow":
                return self.two(x.relu())
            case "residual":
                return x + torch.tanh(self.two(F.relu(x)))
            case "shared":
                return self.two(F.silu(self.two(x)))
            case "concat":
                return self.three(torch.cat([x, self.two(x), x.abs()], dim=1))
            case "depthwise" | "grouped":
                return self.three(self.two(x).relu())
            case "squeeze":
                return x * torch.sigmoid(self.three(F.relu(self.two(x.mean((2, 3))))))[:, :, None, None]
            case "batchnorm" | "groupnorm":
                return F.leaky_relu(self.two(x))
            case "layernorm":
                return self.two(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            case "gate":
                a, b = x.chunk(2, dim=1)
                return a * b.sigmoid()
            case "shuffle":
                return x.view(x.shape[0], 2, 4, 4, 4).transpose(1, 2).reshape(x.shape[0], WIDTH, 4, 4)
            case "padded":
                return self.two(F.pad(x, (0, 0, 0, 0, 2, 3)))
            case "attention":
                tokens = x.flatten(2).transpose(1, 2)
                return (tokens + self.two(tokens, tokens, tokens)[0]).transpose(1, 2).unflatten(2, (4, 4))
            case "heads":
                tokens = x.flatten(2).transpose(1, 2)
                q, k, v = self.two(tokens).reshape(-1, 16, 3, 4, 2).permute(2, 0, 3, 1, 4).unbind(0)
                mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, 16, WIDTH)
                return self.three(mixed).transpose(1, 2).unflatten(2, (4, 4))
            case "roll":
                return x + torch.roll(x, 1, dims=1)
            case "cumsum":
                return torch.cumsum(x, dim=1)
            case "scale":
                return x * self.two
            case "window":
                return x * self.table + x[:, 3:4]
            case _:
                return x.relu()


class Network(nn.Module):
    """Images of two channels and 4 x 4 pixels to three numbers."""

    def __init__(self, kinds: list[str], head: str) -> None:
        super().__init__()
        self.kinds = kinds
        self.first = nn.Conv2d(2, WIDTH, 3, padding=1)
        self.blocks = nn.Sequential(*(Block(kind) for kind in kinds))
        self.head = head
        self.hidden = nn.Linear(16 * WIDTH if head == "flat" else WIDTH, 7)
        self.last = nn.Linear(7, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.first(x).relu())
        x = x.flatten(1) if self.head == "flat" else F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.last(torch.relu(self.hidden(x)))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    torch.manual_seed(draw(st.integers(0, 1000)))
    kinds = draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4))
    return Network(kinds, draw(st.sampled_from(("flat", "pooled")))).eval()
