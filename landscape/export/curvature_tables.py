"""The curvature of minima as CSV: eigenvalues and traces, direction factors, and the theorem's predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from valleyscope.landscape.storage.landscape_file import Landscape

Row = Sequence[Any]


def curvature_rows(landscape: Landscape) -> Iterator[Row]:
    """A row a number; ``error`` is a residual norm, or the standard error of a trace. At the end of training, ``epoch``
    is empty."""
    yield ["minimum", "epoch", "quantity", "number", "value", "error"]
    for name, record in landscape.curvature.items():
        for quantity, values, errors in (
            ("eigenvalue", record.eigenvalues, record.residuals),
            ("lowest", record.lowest, record.lowest_residuals),
        ):
            for number, (value, error) in enumerate(zip(values.tolist(), errors.tolist(), strict=True), start=1):
                yield [name, None, quantity, number, value, error]
        yield [name, None, "trace", None, record.trace, record.trace_error]
        columns = [record.epochs[column].tolist() for column in record.epochs]
        for row in (dict(zip(record.epochs, values, strict=True)) for values in zip(*columns, strict=True)):
            yield [name, int(row["epoch"]), "eigenvalue", 1, row["largest"], row["residual"]]
            yield [name, int(row["epoch"]), "trace", None, row["trace"], row["trace_error"]]


def factor_rows(landscape: Landscape) -> Iterator[Row]:
    """A row a group and cut."""
    yield ["minimum", "layer", "group", "norm", "cut", "removed", "factor"]
    for name, record in landscape.curvature.items():
        found = record.directions
        if found is None:
            continue
        for cut, removed, factors in zip(found.cuts.tolist(), found.removed.tolist(), found.factors, strict=True):
            for group, (layer, norm) in enumerate(zip(found.layers, found.norms.tolist(), strict=True)):
                yield [name, layer, group, norm, cut, int(removed), float(factors[group])]


def theorem_rows(landscape: Landscape) -> Iterator[Row]:
    """A row a group: its norm before, as predicted with s_i and with s_i = 1, and as measured."""
    yield ["minimum", "run", "layer", "group", "norm", "factor", "predicted", "null", "measured"]
    for name, record in landscape.curvature.items():
        for run, trial in record.trials.items():
            table = zip(trial.start, trial.factors, trial.theorem, trial.null, trial.measured, strict=True)
            for group, (layer, numbers) in enumerate(zip(trial.layers, table, strict=True)):
                yield [name, run, layer, group, *map(float, numbers)]
