"""How many samples pass through a network at a time."""

from __future__ import annotations

from typing import Final

BLOCK: Final = 128
"""Measured: activations of so many samples stay in cache, and the vector units are still full; 64 to 256 are alike."""
