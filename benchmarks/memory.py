"""Peak memory of one point of a surface of WRN-28-10, 36 million parameters, beside that of its vectors.

    python benchmarks/memory.py [--samples 2]

The plane has three vectors. Statistics of BatchNorm are those of the model (frozen): population statistics need the
activations of all samples, or many passes, see ``memory_limit`` of Evaluator.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from valleyscope.landscape import Evaluator, Plane, flatten
from valleyscope.training import build_model


def peak() -> float:
    """Peak memory of this process in bytes."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status["VmHWM"].split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = build_model("wrn28x10", input_shape=(3, 32, 32), classes=10, seed=0).eval()
    libraries = peak()
    origin = flatten(model)
    u, v = torch.zeros_like(origin), torch.zeros_like(origin)
    u[::2], v[1::2] = (2 / len(origin)) ** 0.5, (2 / len(origin)) ** 0.5
    plane = Plane(origin, u, v)
    before = peak()
    x, y = torch.randn(options.samples, 3, 32, 32), torch.zeros(options.samples, dtype=torch.int64)
    evaluator = Evaluator(model, (x, y), batch_norm="frozen")
    evaluator.at(plane.vectors, [(1.0, 0.1, 0.1)])
    vector = origin.nbytes
    print(f"one vector: {vector / 1e6:.0f} MB; libraries and the model: {libraries / 1e6:.0f} MB")
    plane_vectors, point_vectors = (before - libraries) / vector, (peak() - before) / vector
    print(f"the plane adds {plane_vectors:.1f} vectors, evaluating a point {point_vectors:.1f}")
    print(f"peak: {peak() / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
