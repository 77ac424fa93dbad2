"""A landscape in the formats of other tools: CSV, VTK for ParaView, PNG, SVG and PDF for papers.

>>> import tempfile
>>> from valleyscope.landscape.storage.landscape_file import Landscape
>>> [path.name for path in export(Landscape("empty"), tempfile.mkdtemp(), ["csv"])]
[]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

from valleyscope.landscape.export.csv_tables import write_spreadsheets
from valleyscope.landscape.export.vtk import write_vtk
from valleyscope.landscape.storage.landscape_file import Landscape

Writer = Callable[[Landscape, Path], list[Path]]

FORMATS: Final[dict[str, Writer]] = {
    "csv": write_spreadsheets,
    "vtk": write_vtk,
    "png": lambda landscape, directory: _write_pictures(landscape, directory, "png"),
    "svg": lambda landscape, directory: _write_pictures(landscape, directory, "svg"),
    "pdf": lambda landscape, directory: _write_pictures(landscape, directory, "pdf"),
}


def export(
    landscape: Landscape, directory: str | os.PathLike[str], formats: Iterable[str] = tuple(FORMATS)
) -> list[Path]:
    """Write the landscape in each of the formats (csv, vtk, png, svg, pdf) and return the files, in order.

    csv: surface.csv (a row a grid point), points.csv, tracks.csv (curves and trajectories on the planes), paths.csv
    (values along curves and lines), matrix.csv (barrier and rise between every two minima), minima.csv, training.csv,
    layers.csv, methods.csv, forks.csv, ensembles.csv, curvature.csv (eigenvalues and traces), factors.csv (direction
    factors) and theorem.csv. An overflow is ``inf``, what was not computed or recorded is empty. vtk: <plane>.vts and
    <plane>-paths.vtp. png, svg and pdf: <plane>-<split>-<value>, profile, forks and paper. Files of these names are
    replaced, each at once; files without content are not written.
    """
    wanted = list(dict.fromkeys(formats))
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        raise ValueError(f"formats has {', '.join(map(repr, unknown))}; choose from {', '.join(FORMATS)}")
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    return [path for name in wanted for path in FORMATS[name](landscape, target)]


def _write_pictures(landscape: Landscape, directory: Path, form: Literal["png", "svg", "pdf"]) -> list[Path]:
    from valleyscope.landscape.export.matplotlib_figures import (
        write_pictures,  # matplotlib is heavy, and a table does not need it
    )

    return write_pictures(landscape, directory, form)


__all__ = ["FORMATS", "export"]
