"""What the report's script needs inside the file: the page's own plot modules, and the records that they draw."""

from __future__ import annotations

import base64
import json
import posixpath
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from valleyscope.landscape.analysis.curvature_summary import curvature_summaries
from valleyscope.landscape.analysis.fork_curves import fork_curves
from valleyscope.landscape.analysis.grid_sampling import spread
from valleyscope.landscape.analysis.method_table import method_table
from valleyscope.landscape.figures import profile_paths
from valleyscope.landscape.json_encoding import encoded, minimum_json, path_json, plane_data, to_json
from valleyscope.landscape.plot_style import STATIC
from valleyscope.landscape.report.matrix_section import drawn_map
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid, PlaneRecord, error_split

_FINEST: Final = 201
_IMPORTED = re.compile(r"(?<=from ')[\w./-]+(?=')")


def import_map(script: str, loss_unit: str = "nats") -> str:
    """An import map with the modules that a script imports from static/, and those that they import, as data URLs.

    Titles do not say nats where the loss has another unit.
    """
    modules: dict[str, str] = {}
    waiting = _IMPORTED.findall(script)
    while waiting:
        name = waiting.pop()
        if name in modules:
            continue
        source = (STATIC / name).read_text(encoding="utf-8")
        if name.endswith(".json"):
            source = source if loss_unit == "nats" else source.replace(", nats", "")
            source = f"export default {source}"
        else:
            # A data URL has no folder that a relative address could start from, and is JavaScript by its type.
            source = _IMPORTED.sub(partial(_resolved, name), source).replace(" with { type: 'json' }", "")
            waiting += _IMPORTED.findall(source)
        modules[name] = "data:text/javascript;base64," + base64.b64encode(source.encode()).decode()
    return json.dumps({"imports": modules})


def _resolved(module: str, imported: re.Match[str]) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), imported[0]))


def figure_data(landscape: Landscape, colours: Mapping[str, str]) -> str:
    """The records of a landscape as JSON that can stand in a script element."""
    paths = profile_paths(landscape)
    content = {
        "planes": {
            name: plane_data(_thinned(plane))
            for name, plane in landscape.planes.items()
            if plane.done.any() or plane.offsets
        },
        "paths": [path_json(path) for path in paths],
        "minima": [minimum_json(minimum) for minimum in landscape.minima.values()],
        "colours": colours,
        "errorSplit": error_split(paths),
        "verdict": to_json(landscape.verdict),
        "curvature": to_json(curvature_summaries(landscape)),
        "methods": [row.to_json() for row in method_table(landscape)],
        "map": to_json(drawn_map(landscape)),
        "forks": None if (forks := fork_curves(landscape)) is None else to_json(forks.to_json()),
    }
    # A less-than sign inside JSON could end the script element that holds it.
    return encoded(content).decode().replace("<", "\\u003c")


def _thinned(plane: PlaneRecord) -> PlaneRecord:
    """The plane with about 201 points a side at most: as many as a page can show."""
    rows, columns = spread(len(plane.y), _FINEST), spread(len(plane.x), _FINEST)
    cells = np.ix_(rows, columns)
    grids = {split: _part_of(grid, cells) for split, grid in plane.splits.items()}
    rest = {"x": plane.x[columns], "y": plane.y[rows], "done": plane.done[cells], "splits": grids}
    return PlaneRecord(**{**vars(plane), **rest})


def _part_of(grid: Grid, cells: Any) -> Grid:
    errors = (grid["loss_error"][cells], grid["error_error"][cells]) if grid.is_estimated else ()
    return Grid(grid.loss[cells], grid.error[cells], *errors)
