"""The tables of the report: minima, paths, provenance and the spec."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from valleyscope.landscape.analysis.barriers import path_barrier
from valleyscope.landscape.analysis.curvature_summary import spectrum_cells
from valleyscope.landscape.analysis.method_table import COLUMNS, MethodRow
from valleyscope.landscape.figures.profile import path_label
from valleyscope.landscape.report.html_text import MISSING, barrier, loss, moment, percent, text
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Floats, MinimumRecord, PathRecord, error_split, recorded


def minima_table(landscape: Landscape, colours: Mapping[str, str]) -> str:
    """One row a minimum: accuracy, loss, sparsity, zero groups and, where measured, sharpness."""
    sharpness = (landscape.verdict or {}).get("sharpness") or {}
    heads = ["minimum", "optimiser", "train loss", "test loss", "test accuracy", "sparsity", "zero groups"]
    rows = []
    for minimum in landscape.minima.values():
        final = minimum.final
        cells = [
            dot(colours[minimum.name]) + text(minimum.name),
            text(minimum.optimizer or MISSING),
            loss(final.get("train_loss")),
            loss(final.get("test_loss")),
            percent(final.get("test_accuracy")),
            percent(final.get("sparsity")),
            _zero_groups(minimum),
        ]
        if sharpness:
            cells.append(_rise(sharpness.get(minimum.name)))
        rows.append(cells)
    heads += ["sharpness"] if sharpness else []
    if landscape.curvature:
        heads += ["largest eigenvalue", "trace"]
        for row, name in zip(rows, landscape.minima, strict=True):
            row += _curvature(landscape, name)
    if landscape.minima and not any(_has_error(minimum) for minimum in landscape.minima.values()):
        column = heads.index("test accuracy")
        heads, *rows = [[*row[:column], *row[column + 1 :]] for row in (heads, *rows)]
    return table("minima", heads, rows, words=2)


def _has_error(minimum: MinimumRecord) -> bool:
    """Whether the loss of a network has an error beside it; without final values that is unknown."""
    return not minimum.final or any(name.endswith("_accuracy") for name in minimum.final)


def pruning_lines(landscape: Landscape) -> str:
    """What each pruning method did: when its threshold ended, what its cut cost."""
    said = {name: minimum.pruning.get("text") for name, minimum in landscape.minima.items()}
    return "".join(f'<p class="caption">{text(name)}: {text(line)}.</p>' for name, line in said.items() if line)


def methods_table(rows: Sequence[MethodRow]) -> str:
    """One row a method and share: means over seeds, with standard deviations."""
    shown = [column for column in COLUMNS if any(column in row.values for row in rows)]
    heads = ["network", *(COLUMNS[column] for column in shown)]
    return table(
        "pruning methods",
        heads,
        [[text(row.name), *(row.cell(column) or MISSING for column in shown)] for row in rows],
        words=1,
    )


def published_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the paper prints for this network and these data."""
    shares = ("baseline_accuracy", "pruned_accuracy", "macs")
    heads = ["method", "source", "accuracy before", "accuracy", "multiply-adds left"]
    cells = [[text(row["method"]), text(row["source"]), *(percent(row[share]) for share in shares)] for row in rows]
    return table("published numbers", heads, cells, words=2)


def paths_table(paths: Iterable[PathRecord]) -> str:
    """One row a path: its length, barrier, and the range of loss and error along it."""
    paths = list(paths)
    errors = error_split(paths)
    heads = ["path", "length", "barrier", "train loss", f"{errors} error"]
    rows = [
        [
            text(path_label(path)),
            f"{path.arc[-1]:.3g}",
            barrier(_barrier(path)),
            _range(path, "train", "loss"),
            _range(path, errors, "error"),
        ]
        for path in paths
    ]
    if not any(recorded(values.error) for path in paths for values in path.splits.values()):
        heads, *rows = [row[:-1] for row in (heads, *rows)]
    return table("paths", heads, rows, words=1)


def provenance_list(landscape: Landscape) -> str:
    """What the numbers depend on, as terms and values."""
    entries = {**landscape.provenance, "created": moment(landscape.created), "updated": moment(landscape.updated)}
    known = {"fingerprint": "data fingerprint", "batch_norm": "BatchNorm statistics", "versions": "library versions"}
    absent = {"subset": "all of the data", "fingerprint": "not known"}
    items = []
    for key, value in entries.items():
        term = text(known.get(key, key.replace("_", " ")))
        if value not in ("", {}, []):
            items.append(f"<div><dt>{term}</dt><dd>{_value(absent.get(key) if value is None else value)}</dd></div>")
    return f'<dl class="provenance">{"".join(items)}</dl>'


def spec_block(landscape: Landscape) -> str:
    if not landscape.spec:
        return ""
    content = text(json.dumps(landscape.spec, indent=2, ensure_ascii=False))
    return f'<details class="spec"><summary>spec</summary><pre>{content}</pre></details>'


def table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    """A table whose cells are HTML already; the first ``words`` columns are text, the rest numbers."""
    top = "".join(f'<th scope="col"{_numeric(column, words)}>{text(head)}</th>' for column, head in enumerate(heads))
    body = "".join(
        "<tr>"
        + f'<th scope="row">{row[0]}</th>'
        + "".join(f"<td{_numeric(column, words)}>{cell}</td>" for column, cell in enumerate(row) if column)
        + "</tr>"
        for row in rows
    )
    frame = f'<div class="scroll" tabindex="0" role="region" aria-label="table of {text(name)}">'
    return f"{frame}<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def dot(colour: str) -> str:
    return f'<i class="dot" style="background:{text(colour)}"></i>'


def _numeric(column: int, words: int) -> str:
    return ' class="number"' if column >= words else ""


def _zero_groups(minimum: MinimumRecord) -> str:
    groups = sum(layer.groups for layer in minimum.layers)
    if not groups:
        return percent(minimum.final.get("zero_groups"))
    zero = sum(layer.zero_groups for layer in minimum.layers)
    return f"{percent(zero / groups)} <small>{zero} of {groups}</small>"


def _rise(values: Mapping[str, Any] | None) -> str:
    if not values or values.get("rise") is None:
        return MISSING
    radius = values.get("radius")
    within = f" <small>within {radius:.3g}</small>" if isinstance(radius, int | float) else ""
    return f"+{loss(values['rise'])}{within}"


def _curvature(landscape: Landscape, name: str) -> list[str]:
    found = spectrum_cells(landscape.curvature.get(name))
    if not found:
        return [MISSING, MISSING]
    error = "" if np.isnan(found["trace_error"]) else f" <small>± {found['trace_error']:.2g}</small>"
    trace = MISSING if np.isnan(found["trace"]) else f"{found['trace']:.3g}{error}"
    return [f"{found['largest']:.3g}", trace]


def _barrier(path: PathRecord) -> float | None:
    return path_barrier(path, "train" if "train" in path.splits else next(iter(path.splits)))


def _range(path: PathRecord, split: str, quantity: str) -> str:
    if split not in path.splits:
        return MISSING
    values: Floats = path.splits[split][quantity]
    if np.isnan(values).all():
        return MISSING
    low, high = float(values.min()), float(values.max())
    if quantity == "error":
        return f"{percent(low).removesuffix(' %')} to {percent(high)}"
    return f"{loss(low)} to {loss(high)}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "".join(f"<span>{text(key)} {_value(entry)}</span>" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return text(", ".join(map(str, value)))
    return text(MISSING if value is None else value)
