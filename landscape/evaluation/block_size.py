"""The number of samples in a forward pass."""

from __future__ import annotations

from valleyscope.landscape.network.call_recorder import CallRecord

_SMALLEST, _LARGEST = 128, 1024
_MOST_BYTES = 256_000_000
"""Bytes of the largest layer output of a block, where outputs are much larger than those of classifiers."""


def block_size(record: CallRecord, weights: int) -> int:
    """Samples in a block, for weights of this many bytes; depends on sizes alone, so it is the same on every machine.

    The weights of a point are written for every block, so the largest layer output shall be no smaller than the
    weights. For small networks 64 to 256 samples are equally fast (`benchmarks/surface.py --block`).
    """
    enough = -(-weights // max(1, record.largest_output))
    return min(_LARGEST, _SMALLEST * -(-max(_SMALLEST, enough) // _SMALLEST))


def within_memory(block: int, record: CallRecord) -> int:
    """The block, smaller where the largest layer output of so many samples would fill the memory."""
    return max(1, min(block, _MOST_BYTES // max(1, record.largest_output)))
