"""How many samples pass through a network at a time."""

from __future__ import annotations

from valleyscope.landscape.network.call_recorder import CallRecord

_SMALLEST, _LARGEST = 128, 1024


def block_size(record: CallRecord, weights: int) -> int:
    """Samples in a block, for weights of so many bytes: from sizes alone, so that every machine forms the same blocks.

    The weights of a point are written anew for every block, so the largest values between two layers shall be no
    smaller than the weights. For small networks 64 to 256 samples are alike (`benchmarks/surface.py --block`).
    """
    enough = -(-weights // max(1, record.largest_output))
    return min(_LARGEST, _SMALLEST * -(-max(_SMALLEST, enough) // _SMALLEST))
