"""The table of compact networks: size and latency of the minima before and after their zero groups are removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from valleyscope.landscape.report.html_text import MISSING, text
from valleyscope.landscape.report.tables import dot, table
from valleyscope.landscape.storage.landscape_file import Landscape

_HEADS = ("minimum", "", "parameters", "multiply-adds", "file size", "latency, 1 sample", "latency, 32 samples")
_WORDS = (
    "<p>Zero groups removed: the same outputs, up to rounding. "
    "Latency: median on one CPU thread, with quartiles; both networks in turn.</p>"
)


def compact_table(landscape: Landscape, colours: Mapping[str, str]) -> str:
    """Two rows a minimum, as trained and compact; empty if nothing was removed or refused."""
    rows, notes = [], []
    for name, minimum in landscape.minima.items():
        found = minimum.compact or {}
        if "refused" in found:
            notes.append(f"<p>{text(name)} was not made compact: {text(found['refused'])}.</p>")
        if not found.get("smaller"):
            continue
        before, after = found["before"], found["after"]
        latency = found.get("latency", {})
        rows.append([dot(colours[name]) + text(name), "as trained", *_sizes(before), *_times(latency, "before")])
        rows.append(["", "compact", *_sizes(after, before), *_times(latency, "after")])
        if whole := found.get("left_whole"):
            listed = ", ".join(f"{layer} ({reason})" for layer, reason in list(whole.items())[:5])
            more = f" and {len(whole) - 5} more" if len(whole) > 5 else ""
            notes.append(f"<p>Left whole in {text(name)}: {text(listed + more)}.</p>")
        if found.get("fixed_size"):
            notes.append(f"<p>Compact {text(name)} takes images of this size only.</p>")
    shown = table("compact networks", _HEADS, rows, words=2) + _WORDS if rows else ""
    return shown + "".join(notes)


def _sizes(size: Mapping[str, int], before: Mapping[str, int] | None = None) -> list[str]:
    cells = [f"{size['parameters']:,}", f"{size['multiply_adds']:,}", _bytes(size["bytes"])]
    if before is None:
        return cells
    keys = ("parameters", "multiply_adds", "bytes")
    return [f"{cell} <small>{_factor(before[key], size[key])}</small>" for cell, key in zip(cells, keys, strict=True)]


def _times(latency: Mapping[str, Any], side: str) -> list[str]:
    cells = []
    for batch in ("1", "32"):
        if batch not in latency:
            cells.append(MISSING)
            continue
        found = latency[batch][side]
        median, low, high = (f"{1000 * found[key]:.3g}" for key in ("median", "low", "high"))
        gain = f", {_factor(latency[batch]['before']['median'], found['median'])}" if side == "after" else ""
        cells.append(f"{median} ms <small>{low} to {high}{gain}</small>")
    return cells


def _factor(before: float, after: float) -> str:
    return f"{before / after:.2g}\N{MULTIPLICATION SIGN}" if after else MISSING


def _bytes(size: float) -> str:
    """Bytes for people.

    >>> _bytes(812), _bytes(93_200)
    ('812 B', '93.2 kB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
