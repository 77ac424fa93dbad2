"""The landscape of an experiment and its file, ``landscape.h5``.

Every save atomically replaces the file by a complete HDF5 file, so you can open it at any time, also after the writer
was killed. Layout of format version 1:

    attributes             format, version, name, created, updated; spec and provenance as JSON; sha256 of every part
                           as JSON, to detect edits (see ``digests``; remove it to edit the file on purpose)
    planes/<name>          x, y, done (0 or 1), <split>/loss and <split>/error of shape (len(y), len(x)); points/<point>
                           = (x, y) with its distance from the plane; paths/<path> of shape (n, 2)
                           estimated: <split>/loss_error and <split>/error_error, attributes evaluated, estimate
    curves/<name>          t, arc, <split>/loss and <split>/error of shape (n,); attributes kind, start, end
    lines/<from>-<to>      the same for straight lines
    aligned/<from>-<to>    the same for lines to the second minimum with its hidden units in the order of the first
                           (``note`` says how many moved); missing where nothing was aligned
    trajectory/<minimum>   one column a quantity, one value an epoch
    minima/<name>          epochs (the same columns), layers (name, groups, zero_groups, parameters, zero_parameters),
                           final (one number a quantity); attributes optimizer, settings as JSON, checkpoint
    curvature/<minimum>    eigenvalues, residuals, lowest, density_values, density_weights, epochs/<column>, directions,
                           trials/<minimum>; attributes kind, samples, dimension, trace (see ``curvature_record``)
    verdict                attributes kind and sentence for people, json for programs
    matrix                 names (n), barrier, rise and their bounds (barrier_low, ...) of shape (n, n), of the straight
                           lines; only for other programs: it follows from lines and verdict (see ``matrix_record``)
    matrix_aligned         the same of the aligned lines
    ensembles/<name>       row (the members, then average and ensemble), <split>/loss and <split>/error, one value a row
    map                    names, clusters (the names by clusters), distances (n, n); places by distance and by barrier
                           (n, 2); only for other programs, too (see ``map_record``)
    forks                  name, trunk, kind and epoch of each fork (n), with barrier and rise of its line to the trunk;
                           only for other programs, too (see ``fork_record``)

JSON of more than 60,000 bytes, which no attribute holds, is a dataset of the same name.

After the HDF5 data comes a checksum of all bytes (see ``file_checksum``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

import h5py

from valleyscope.landscape.drawing import result_figures
from valleyscope.landscape.storage import _hdf5, _hdf5_records
from valleyscope.landscape.storage._checks import check_landscape, check_line_names
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.curvature_record import CurvatureRecord, read_curvature, write_curvature
from valleyscope.landscape.storage.digests import altered, digests
from valleyscope.landscape.storage.ensemble_record import EnsembleRecord, read_ensembles, write_ensembles
from valleyscope.landscape.storage.file_checksum import checksum_trailer
from valleyscope.landscape.storage.fork_record import ForkRecord, read_forks, write_forks
from valleyscope.landscape.storage.map_record import MinimaMap, read_map, write_map
from valleyscope.landscape.storage.matrix_record import ALIGNED_MATRIX, MatrixRecord, read_matrix, write_matrix
from valleyscope.landscape.storage.records import MinimumRecord, PathRecord, PlaneRecord

FORMAT: Final = "valleyscope-landscape"
VERSION: Final = 1
ALIGNED: Final = "aligned"
_DIGESTS: Final = "sha256"
_EARLIER_VERDICTS: Final = "valleyscope.landscape.analysis.earlier_verdict"  # made from landscapes: not imported before
_images: Final = count()


class NotALandscape(ValueError):
    """The file is not a landscape, or its format is newer than this version."""


class DamagedLandscape(ValueError):
    """The file is a landscape, but a part of it is missing or invalid."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(eq=False, repr=False)
class Landscape:
    """Minima, the curves and lines between them, surfaces on planes, and the verdict, with their provenance.

    ``provenance`` says what the numbers depend on besides the spec: seeds, versions of the libraries, ``fingerprint``
    of the data (required; None if unknown), batch_norm mode and subset. ``lines`` is keyed ``<from>-<to>``.
    """

    name: str
    spec: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=lambda: {"fingerprint": None})
    minima: dict[str, MinimumRecord] = field(default_factory=dict)
    planes: dict[str, PlaneRecord] = field(default_factory=dict)
    curves: dict[str, PathRecord] = field(default_factory=dict)
    lines: dict[str, PathRecord] = field(default_factory=dict)
    verdict: dict[str, Any] | None = None
    matrix: MatrixRecord | None = None
    minima_map: MinimaMap | None = None
    forks: ForkRecord | None = None
    ensembles: dict[str, EnsembleRecord] = field(default_factory=dict)
    aligned: dict[str, PathRecord] = field(default_factory=dict)
    aligned_matrix: MatrixRecord | None = None
    curvature: dict[str, CurvatureRecord] = field(default_factory=dict)
    created: str = field(default_factory=_now)
    updated: str = ""

    def __repr__(self) -> str:
        kind = (self.verdict or {}).get("kind", "no verdict")
        counts = {name: len(getattr(self, name)) for name in ("minima", "planes", "curves", "lines")}
        return f"Landscape({self.name!r}, {kind}, {', '.join(f'{number} {name}' for name, number in counts.items())})"

    def _repr_html_(self) -> str:
        """The verdict and the picture, for notebooks."""
        html: str = result_figures().landscape_html(self)
        return html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Check everything and replace ``path`` atomically; a ValueError names the first invalid member."""
        check_landscape(self)
        check_line_names(self)
        self.updated = _now()
        image = _image(self)
        with write_atomically(path) as file:
            file.write(image)
            file.write(checksum_trailer(image))

    def send(self, server: str, key: str | None = None) -> str:
        """Upload the landscape to a server, such as ``http://127.0.0.1:8360``; returns the address of its page.

        ``key`` is the API key of the server, by default that of ``VALLEY_API_KEY``. Raises ConnectionError if the
        server does not answer or refuses the landscape.
        """
        from valleyscope.landscape.storage.upload import send_landscape  # HTTP loads slowly

        check_landscape(self)
        check_line_names(self)
        image = _image(self)
        return send_landscape(image + checksum_trailer(image), server, key)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Landscape:
        """Read and verify a file; a verdict of an earlier version is judged anew.

        Raises FileNotFoundError, NotALandscape or DamagedLandscape; the message names the file and the member.
        """
        if not Path(path).exists():
            raise FileNotFoundError(f"{os.fspath(path)}: there is no such file")
        try:
            with _hdf5.open_file(path) as file:
                _check_format(file, path)
                landscape = _read(file)
                written = _hdf5_records.read_json(file, _DIGESTS) if _hdf5_records.has_json(file, _DIGESTS) else None
            check_landscape(landscape)
            _check_digests(landscape, written)
            landscape.verdict = import_module(_EARLIER_VERDICTS).judged_anew(landscape)
        except (NotALandscape, DamagedLandscape):
            raise
        except _hdf5.InvalidContent as error:
            kind = NotALandscape if "not an HDF5 file" in str(error) else DamagedLandscape
            raise kind(f"{os.fspath(path)}: {error}") from None
        except Exception as error:  # h5py may raise anything on a damaged file
            raise DamagedLandscape(f"{os.fspath(path)}: {error}") from error
        return landscape


def _image(landscape: Landscape) -> bytes:
    """The bytes of the HDF5 file, built in memory.

    HDF5 identifies files in memory by name, so each gets its own: threads may save different landscapes at once.
    """
    with h5py.File(f"landscape-{next(_images)}.h5", "w", driver="core", backing_store=False, track_order=True) as file:
        file.attrs["format"] = FORMAT
        file.attrs["version"] = VERSION
        for name in ("name", "created", "updated"):
            file.attrs[name] = getattr(landscape, name)
        _hdf5_records.write_json(file, "spec", landscape.spec)
        _hdf5_records.write_json(file, "provenance", landscape.provenance)
        _hdf5_records.write_json(file, _DIGESTS, digests(landscape))
        trajectories = file.create_group("trajectory", track_order=True)
        minima = file.create_group("minima", track_order=True)
        for minimum in landscape.minima.values():
            _hdf5_records.write_minimum(minima, trajectories, minimum)
        planes = file.create_group("planes", track_order=True)
        for plane in landscape.planes.values():
            _hdf5_records.write_plane(planes, plane)
        for kind, paths in (("curves", landscape.curves), ("lines", landscape.lines)):
            group = file.create_group(kind, track_order=True)
            for path in paths.values():
                _hdf5_records.write_path(group, path)
        if landscape.verdict is not None:
            _hdf5_records.write_verdict(file, landscape.verdict)
        if landscape.matrix is not None:
            write_matrix(file, landscape.matrix)
        if landscape.minima_map is not None:
            write_map(file, landscape.minima_map)
        if landscape.forks is not None:
            write_forks(file, landscape.forks)
        write_ensembles(file, landscape.ensembles)
        if landscape.aligned:
            group = file.create_group(ALIGNED, track_order=True)
            for path in landscape.aligned.values():
                _hdf5_records.write_path(group, path)
        if landscape.aligned_matrix is not None:
            write_matrix(file, landscape.aligned_matrix, ALIGNED_MATRIX)
        if landscape.curvature:
            write_curvature(file, landscape.curvature)
        file.flush()
        image: bytes = file.id.get_file_image()
        return image


def _check_format(file: h5py.File, path: str | os.PathLike[str]) -> None:
    try:
        name = _hdf5.text_attribute(file, "format")
    except _hdf5.InvalidContent:
        name = ""
    if name != FORMAT:
        members = ", ".join(sorted(_hdf5.names(file))[:6]) or "nothing"
        raise NotALandscape(
            f"{os.fspath(path)}: is an HDF5 file of another program (it holds {members}); `valley import` "
            "reads files of loss-landscape"
        )
    version = int(_hdf5.number_attribute(file, "version"))
    if version > VERSION:
        raise NotALandscape(
            f"{os.fspath(path)}: was written by a newer version of Valleyscope (format {version}, this one reads up to "
            f"{VERSION}); upgrade to open it"
        )
    if version != VERSION:
        raise DamagedLandscape(
            f"{os.fspath(path)}: attribute 'version' is {version}; known versions are 1 to {VERSION}"
        )


def _check_digests(landscape: Landscape, written: Any) -> None:
    """Raise an error that names the first altered part; files without digests pass."""
    if written is None:
        return
    if not isinstance(written, dict):
        raise _hdf5.InvalidContent(f"file: attribute {_DIGESTS!r} is not an object of members and digests")
    difference = altered(written, digests(landscape))
    if difference is not None:
        raise _hdf5.InvalidContent(difference)


def _read_aligned(file: h5py.File) -> dict[str, PathRecord]:
    if not _hdf5.has(file, ALIGNED):
        return {}
    group = _hdf5.subgroup(file, ALIGNED)
    return {name: _hdf5_records.read_path(group, name) for name in _hdf5.names(group)}


def _read(file: h5py.File) -> Landscape:
    minima = _hdf5.subgroup(file, "minima")
    planes = _hdf5.subgroup(file, "planes")
    paths = {kind: _hdf5.subgroup(file, kind) for kind in ("curves", "lines")}
    return Landscape(
        name=_hdf5.text_attribute(file, "name"),
        spec=_hdf5_records.read_json(file, "spec"),
        provenance=_hdf5_records.read_json(file, "provenance"),
        minima={name: _hdf5_records.read_minimum(minima, name) for name in _hdf5.names(minima)},
        planes={name: _hdf5_records.read_plane(planes, name) for name in _hdf5.names(planes)},
        curves={name: _hdf5_records.read_path(paths["curves"], name) for name in _hdf5.names(paths["curves"])},
        lines={name: _hdf5_records.read_path(paths["lines"], name) for name in _hdf5.names(paths["lines"])},
        verdict=_hdf5_records.read_verdict(file),
        matrix=read_matrix(file),
        minima_map=read_map(file),
        forks=read_forks(file),
        ensembles=read_ensembles(file),
        aligned=_read_aligned(file),
        aligned_matrix=read_matrix(file, ALIGNED_MATRIX),
        curvature=read_curvature(file),
        created=_hdf5.text_attribute(file, "created"),
        updated=_hdf5.text_attribute(file, "updated"),
    )
