"""How long networks take on the CPU, measured side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

BATCHES = (1, 32)


@dataclass(frozen=True)
class Latency:
    """Seconds of a forward pass: the median, and the quartiles as its spread."""

    median: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def latencies(
    networks: Sequence[nn.Module], example: Sequence[Tensor], batch: int, *, seconds: float = 1.0, least: int = 5
) -> list[Latency]:
    """Time networks on one thread of the CPU, in turn, so that other load on the machine meets all of them alike.

    Each of them runs `least` times or more, until all took `seconds` together.
    """
    inputs = [_repeated(x.cpu(), batch) for x in example]
    times: list[list[float]] = [[] for _ in networks]
    modes = [(module, module.training) for network in networks for module in network.modules()]
    try:
        with _one_thread(), torch.inference_mode():
            for network in networks:  # the first pass chooses kernels and reserves memory
                network.eval()(*inputs)
            deadline = time.perf_counter() + seconds
            while len(times[0]) < least or time.perf_counter() < deadline:
                for network, taken in zip(networks, times, strict=True):
                    start = time.perf_counter()
                    network(*inputs)
                    taken.append(time.perf_counter() - start)
    finally:
        for module, training in modes:
            module.training = training
    return [Latency(*(float(np.quantile(taken, q)) for q in (0.5, 0.25, 0.75))) for taken in times]


def _repeated(x: Tensor, batch: int) -> Tensor:
    return x[:1].repeat(batch, *(1,) * (x.dim() - 1))


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
