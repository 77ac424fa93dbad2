"""The numbers of a landscape as CSV: full precision, one table a file.

An overflow is written as ``inf``; a value that was not computed or not recorded is an empty cell.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import islice
from pathlib import Path
from typing import Any

from valleyscope.landscape.analysis.fork_curves import fork_curves
from valleyscope.landscape.analysis.method_table import COLUMNS, method_table
from valleyscope.landscape.analysis.minima_map import minima_map
from valleyscope.landscape.analysis.pair_matrix import QUANTITIES, pair_matrix
from valleyscope.landscape.analysis.published import published_beside
from valleyscope.landscape.export.curvature_tables import curvature_rows, factor_rows, theorem_rows
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.ensemble_record import TOGETHER
from valleyscope.landscape.storage.fork_record import COLUMNS as COLUMNS_OF_FORKS
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.map_record import KINDS
from valleyscope.landscape.storage.records import Grid, PathValues

Row = Sequence[Any]
_ERRORS = ("loss_error", "error_error")
"""Standard errors of estimated surfaces."""
CURVATURE_TABLES = {"curvature.csv": curvature_rows, "factors.csv": factor_rows, "theorem.csv": theorem_rows}


def write_spreadsheets(landscape: Landscape, directory: Path) -> list[Path]:
    """Write every table that has rows."""
    tables: dict[str, Iterable[Row]] = {
        "surface.csv": _surface(landscape),
        "points.csv": _points(landscape),
        "tracks.csv": _tracks(landscape),
        "paths.csv": _paths(landscape),
        "matrix.csv": _matrix(landscape),
        "map.csv": _map(landscape),
        "minima.csv": _minima(landscape),
        "training.csv": _training(landscape),
        "layers.csv": _layers(landscape),
        "methods.csv": _methods(landscape),
        "forks.csv": _forks(landscape),
        "ensembles.csv": _ensembles(landscape),
        "published.csv": _published(landscape),
        **{name: rows(landscape) for name, rows in CURVATURE_TABLES.items()},
    }
    written = []
    for name, rows in tables.items():
        heading, *body = rows
        if body:
            path = directory / name
            with write_atomically(path) as file:
                file.write(_encoded([heading, *body]))
            written.append(path)
    return written


def surface_chunks(landscape: Landscape, rows: int = 2000) -> Iterator[bytes]:
    """The bytes of surface.csv in pieces of so many rows, for those who send it while it is made."""
    table = _surface(landscape)
    while chunk := list(islice(table, rows)):
        yield _encoded(chunk)


def matrix_csv(landscape: Landscape) -> bytes:
    """The bytes of matrix.csv."""
    return _encoded(_matrix(landscape))


def curvature_csv(landscape: Landscape, name: str) -> bytes:
    """The bytes of curvature.csv, factors.csv or theorem.csv."""
    return _encoded(CURVATURE_TABLES[name](landscape))


def _surface(landscape: Landscape) -> Iterator[Row]:
    columns = _columns(plane.splits for plane in landscape.planes.values())
    yield ["plane", "x", "y", "done", *columns]
    for plane in landscape.planes.values():
        series = _series(plane.splits, columns, plane.done.size)
        x, y, done = plane.x.tolist(), plane.y.tolist(), plane.done.ravel().tolist()
        for index, known in enumerate(done):
            row, column = divmod(index, len(x))
            yield [plane.name, x[column], y[row], int(known), *(cells[index] for cells in series)]


def _points(landscape: Landscape) -> Iterator[Row]:
    yield ["plane", "point", "x", "y", "distance"]
    for plane in landscape.planes.values():
        for name, (x, y) in plane.points.items():
            yield [plane.name, name, x, y, plane.distances.get(name)]


def _tracks(landscape: Landscape) -> Iterator[Row]:
    yield ["plane", "path", "index", "x", "y"]
    for plane in landscape.planes.values():
        for name, places in plane.paths.items():
            for index, (x, y) in enumerate(places.tolist()):
                yield [plane.name, name, index, x, y]


def _paths(landscape: Landscape) -> Iterator[Row]:
    paths = [*landscape.curves.values(), *landscape.lines.values()]
    paths += [replace(path, name=f"{path.name} aligned") for path in landscape.aligned.values()]
    columns = _columns(path.splits for path in paths)
    yield ["path", "kind", "start", "end", "t", "arc", *columns]
    for path in paths:
        series = _series(path.splits, columns, len(path.t))
        for index, (t, arc) in enumerate(zip(path.t.tolist(), path.arc.tolist(), strict=True)):
            yield [path.name, path.kind, path.start, path.end, t, arc, *(cells[index] for cells in series)]


def _matrix(landscape: Landscape) -> Iterator[Row]:
    """Both directions of every pair, so a pivot table of it is the whole square."""
    matrix = pair_matrix(landscape)
    columns = [(quantity, bound) for quantity in QUANTITIES for bound in ("", "low", "high")]
    header = ["from", "to", "split", *(f"{quantity}_{bound}".rstrip("_") for quantity, bound in columns)]
    squares = [matrix.bounds(quantity, bound) if bound else matrix.values(quantity) for quantity, bound in columns]
    if landscape.aligned:
        other = pair_matrix(landscape, aligned=True)
        header += [f"aligned_{name}" for name in header[3:]]
        squares += [other.bounds(quantity, bound) if bound else other.values(quantity) for quantity, bound in columns]
    yield header
    for row, first in enumerate(matrix.minima):
        for column, second in enumerate(matrix.minima):
            if matrix.lines[row][column] is not None:
                yield [first, second, matrix.split, *(square[row][column] for square in squares)]


def _map(landscape: Landscape) -> Iterator[Row]:
    """The places of minima on their map, and which they are by clusters."""
    yield ["minimum", "cluster_order", *(f"{kind}_{axis}" for kind in KINDS for axis in "xy")]
    found = minima_map(landscape)
    for index, name in enumerate(found.minima if found else ()):
        assert found is not None
        places = [value for kind in KINDS for value in found.scaled[kind].coordinates[index].tolist()]
        yield [name, found.order.index(name), *places]


def _minima(landscape: Landscape) -> Iterator[Row]:
    columns = list(dict.fromkeys(name for minimum in landscape.minima.values() for name in minimum.final))
    yield ["minimum", "optimizer", *columns]
    for minimum in landscape.minima.values():
        yield [minimum.name, minimum.optimizer, *(minimum.final.get(name) for name in columns)]


def _training(landscape: Landscape) -> Iterator[Row]:
    columns = list(dict.fromkeys(name for minimum in landscape.minima.values() for name in minimum.epochs))
    yield ["minimum", *columns]
    for minimum in landscape.minima.values():
        length = max((len(values) for values in minimum.epochs.values()), default=0)
        for index in range(length):
            yield [
                minimum.name,
                *(float(minimum.epochs[name][index]) if name in minimum.epochs else None for name in columns),
            ]


def _layers(landscape: Landscape) -> Iterator[Row]:
    yield ["minimum", "layer", "groups", "zero_groups", "parameters", "zero_parameters"]
    for minimum in landscape.minima.values():
        for layer in minimum.layers:
            yield [minimum.name, *astuple(layer)]


def _methods(landscape: Landscape) -> Iterator[Row]:
    statistics = ("mean", "deviation", "count")
    yield ["name", "method", "wish", "collapsed", *(f"{column}_{part}" for column in COLUMNS for part in statistics)]
    for row in method_table(landscape):
        cells = [
            getattr(row.values[column], part) if column in row.values else None
            for column in COLUMNS
            for part in statistics
        ]
        yield [row.name, row.method, row.wish, row.collapsed, *cells]


def _forks(landscape: Landscape) -> Iterator[Row]:
    yield ["name", "trunk", "kind", "split", *COLUMNS_OF_FORKS]
    found = fork_curves(landscape)
    record = None if found is None else found.to_record()
    for index, name in enumerate([] if record is None else record.texts["name"]):
        assert record is not None
        about = [name, record.texts["trunk"][index], record.texts["kind"][index], record.split]
        yield [*about, *(float(record.columns[column][index]) for column in COLUMNS_OF_FORKS)]


def _ensembles(landscape: Landscape) -> Iterator[Row]:
    """The members of each set, then the network of their mean weights and their mean prediction."""
    columns = _columns(record.splits for record in landscape.ensembles.values())
    yield ["set", "network", *columns]
    for record in landscape.ensembles.values():
        rows = [*record.members, *TOGETHER]
        series = _series(record.splits, columns, len(rows))
        for index, name in enumerate(rows):
            yield [record.name, name, *(cells[index] for cells in series)]


def _published(landscape: Landscape) -> Iterator[Row]:
    columns = ("method", "baseline_accuracy", "pruned_accuracy", "macs", "source")
    yield columns
    for row in published_beside(landscape.spec or {}):
        yield [row[column] for column in columns]


def _columns(records: Iterable[Mapping[str, Grid] | Mapping[str, PathValues]]) -> list[str]:
    records = list(records)
    splits = dict.fromkeys(split for record in records for split in record)
    estimated = any(getattr(values, "is_estimated", False) for record in records for values in record.values())
    quantities = ("loss", "error", *(_ERRORS if estimated else ()))
    return [f"{split}_{quantity}" for split in splits for quantity in quantities]


def _series(
    splits: Mapping[str, Grid] | Mapping[str, PathValues], columns: Iterable[str], length: int
) -> list[Sequence[float | None]]:
    """The values of each column in order; a split that was not evaluated is empty."""
    pairs = [_split_and_quantity(column) for column in columns]
    empty = [None] * length
    return [splits[split][value].ravel().tolist() if split in splits else empty for split, value in pairs]


def _split_and_quantity(column: str) -> tuple[str, str]:
    quantity = next(each for each in (*_ERRORS, "loss", "error") if column.endswith(f"_{each}"))
    return column.removesuffix(f"_{quantity}"), quantity


def _encoded(rows: Iterable[Row]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        # repr is the shortest text that reads back as the same number
        return "" if math.isnan(value) else repr(value)
    # A spreadsheet would run a cell that opens like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
