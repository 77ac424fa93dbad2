"""One colour per minimum in every figure and table, from the Okabe-Ito palette, and the colour maps of surfaces.

Okabe and Ito chose their colours so that people with any common colour blindness can tell them apart. Viridis and
cividis rise evenly in lightness, so equal steps of the value look equally large.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from valleyscope.landscape.plot_style import STYLE

NAMED: Final[Mapping[str, str]] = STYLE["named"]
FURTHER: Final[Sequence[str]] = STYLE["further"]
MAPS: Final[Mapping[str, str]] = {quantity: found["name"] for quantity, found in STYLE["maps"].items()}


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name: sgd, altsdp and control have theirs, the others take the rest in order.

    >>> colours_of(["sgd", "swa", "control", "pruned"])
    {'sgd': '#0072B2', 'swa': '#CC79A7', 'control': '#009E73', 'pruned': '#E69F00'}
    """
    unique = list(dict.fromkeys(names))
    spare = [*FURTHER, *(colour for name, colour in NAMED.items() if name not in unique)]
    others = [name for name in unique if name not in NAMED]
    given = {name: spare[position % len(spare)] for position, name in enumerate(others)}
    return {name: NAMED.get(name) or given[name] for name in unique}
