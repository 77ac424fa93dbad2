"""Surfaces and paths for ParaView, in VTK's XML formats.

A plane becomes a structured grid (``.vts``) whose x and y are plane coordinates in equal units and whose height is
log10 of the train loss, or zero; every quantity is there as a point array, each loss also as ``log10_<split>_loss``.
What VTK cannot show is written so: an overflow is the largest finite value of its array, with ``overflow`` 1; a point
that is not computed is the smallest value, with ``done`` 0, and hidden with its cells (``vtkGhostType``). Curves,
lines and trajectories become a second file (``.vtp``) that lies on the surface.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.analysis.grid_sampling import sample, straight_lines
from valleyscope.landscape.figures.contour import surface_scale
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Floats, PlaneRecord, recorded

Height = Literal["log", "flat"]

_HIDDEN_POINT, _HIDDEN_CELL = 2, 32
_TYPES: Final = {"float64": "Float64", "int64": "Int64", "uint8": "UInt8"}


def write_vtk(landscape: Landscape, directory: Path, height: Height = "log") -> list[Path]:
    """Write <plane>.vts and, where there are paths, <plane>-paths.vtp for each plane with a computed point."""
    written = []
    for plane in landscape.planes.values():
        if not plane.done.any():
            continue
        heights = surface_heights(plane, height)
        path = directory / f"{plane.name}.vts"
        _write(path, _structured_grid(plane, heights))
        written.append(path)
        tracks = [*plane.paths.values(), *straight_lines(plane).values()]
        if tracks:
            path = directory / f"{plane.name}-paths.vtp"
            _write(path, _poly_lines(plane, heights, tracks))
            written.append(path)
    return written


def surface_heights(plane: PlaneRecord, height: Height = "log") -> Floats:
    """The third coordinate of the grid: log10 of the clipped train loss (or of the first loss there is), or zero."""
    if height not in ("log", "flat"):
        raise ValueError(f"height is {height!r}; choose log or flat")
    losses = [plane.splits[split].loss for split in ("train", *plane.splits) if split in plane.splits]
    known = next((values for values in losses if recorded(values)), None)
    if height == "flat" or known is None:
        return np.zeros(plane.shape)
    encoded = surface_scale(plane, known, "loss", log=True, clip=None).encode(known)
    return np.where(plane.done, encoded, np.nanmin(encoded))


def _structured_grid(plane: PlaneRecord, heights: Floats) -> str:
    x, y = np.meshgrid(plane.x, plane.y)
    points = np.stack([x, y, heights], axis=-1).reshape(-1, 3)
    overflow = np.zeros(plane.shape, dtype=np.uint8)
    arrays: dict[str, NDArray[Any]] = {}
    for split, grid in plane.splits.items():
        for quantity in ("loss", "error"):
            values = grid[quantity]
            if not recorded(values):
                continue
            overflow |= np.isposinf(values).astype(np.uint8)
            arrays[f"{split}_{quantity}"] = _finite(values)
            if quantity == "loss":
                positive = np.maximum(_finite(values), np.finfo(np.float64).tiny)
                arrays[f"log10_{split}_loss"] = np.log10(positive)
    arrays["done"] = plane.done.astype(np.uint8)
    arrays["overflow"] = overflow
    arrays["vtkGhostType"] = np.where(plane.done, 0, _HIDDEN_POINT).astype(np.uint8)
    active = next((name for name in arrays if name.startswith("log10")), next(iter(arrays)))
    whole = plane.done[:-1, :-1] & plane.done[1:, :-1] & plane.done[:-1, 1:] & plane.done[1:, 1:]
    hidden = np.where(whole, 0, _HIDDEN_CELL).astype(np.uint8)
    extent = f"0 {len(plane.x) - 1} 0 {len(plane.y) - 1} 0 0"
    data = "".join(_array(name, values.ravel()) for name, values in arrays.items())
    return _document(
        "StructuredGrid",
        f'<StructuredGrid WholeExtent="{extent}"><Piece Extent="{extent}">'
        f"<PointData Scalars={quoteattr(active)}>{data}</PointData>"
        f"<CellData>{_array('vtkGhostType', hidden.ravel())}</CellData>"
        f"<Points>{_array('points', points.ravel(), 3)}</Points></Piece></StructuredGrid>",
    )


def _poly_lines(plane: PlaneRecord, heights: Floats, tracks: Sequence[Floats]) -> str:
    lift = 0.01 * float(np.ptp(heights))
    parts = []
    for places in tracks:
        height = sample(plane.x, plane.y, heights, places)
        inside = np.isfinite(height)
        parts.append(np.column_stack([places[inside], height[inside] + lift]))
    kept = [part for part in parts if len(part) > 1]
    points = np.concatenate(kept) if kept else np.empty((0, 3))
    offsets = np.cumsum([len(part) for part in kept], dtype=np.int64)
    connectivity = np.arange(len(points), dtype=np.int64)
    cells = _array("connectivity", connectivity) + _array("offsets", offsets)
    index = _array("path", np.arange(len(kept), dtype=np.int64))
    return _document(
        "PolyData",
        f'<PolyData><Piece NumberOfPoints="{len(points)}" NumberOfVerts="0" NumberOfLines="{len(kept)}" '
        f'NumberOfStrips="0" NumberOfPolys="0"><CellData Scalars="path">{index}</CellData>'
        f"<Points>{_array('points', points.ravel(), 3)}</Points><Lines>{cells}</Lines></Piece></PolyData>",
    )


def _finite(values: Floats) -> Floats:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    return np.nan_to_num(values, nan=low, posinf=high, neginf=low)


def _array(name: str, values: NDArray[Any], components: int = 1) -> str:
    raw = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()
    content = base64.b64encode(len(raw).to_bytes(8, "little") + raw).decode()
    return (
        f'<DataArray type="{_TYPES[values.dtype.name]}" Name={quoteattr(name)} NumberOfComponents="{components}" '
        f'format="binary">{content}</DataArray>'
    )


def _document(kind: str, content: str) -> str:
    return (
        f'<?xml version="1.0"?>\n<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">'
        f"{content}</VTKFile>\n"
    )


def _write(path: Path, document: str) -> None:
    with write_atomically(path) as file:
        file.write(document.encode())
