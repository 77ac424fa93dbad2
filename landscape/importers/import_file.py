"""Recognise a file of another tool by its content and turn it into a landscape.

Files are not trusted: no pickles, no links to other files, sizes are checked before reading.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from valleyscope.landscape.importers import loss_landscape, mode_connectivity, npz_archive
from valleyscope.landscape.storage._checks import check_landscape
from valleyscope.landscape.storage._hdf5 import InvalidContent, attribute, has_attribute, open_file
from valleyscope.landscape.storage.landscape_file import FORMAT, DamagedLandscape, Landscape, NotALandscape

EXPECTED: Final = (
    "expected plane.npz or curve.npz of dnn-mode-connectivity, a surface .h5 of loss-landscape, or a landscape.h5"
)
LARGEST_FILE: Final = 2**30


class NotImportable(ValueError):
    """The file has an unknown format, or is damaged."""


def import_file(path: str | os.PathLike[str], regularised: bool = False) -> Landscape:
    """The landscape in ``plane.npz`` or ``curve.npz`` of dnn-mode-connectivity or a surface ``.h5`` of loss-landscape.

    The content decides the kind, not the name. Errors become fractions, a row of a grid is one value of y, and missing
    values are marked as not done. Files of dnn-mode-connectivity hold the loss with and without the L2 term: the one
    without is used, or with ``regularised`` the one with it. A landscape.h5 is opened as it is.

    Raises FileNotFoundError or NotImportable, and for a landscape.h5 the errors of ``Landscape.open``.
    """
    file = Path(path)
    if file.is_dir():
        raise NotImportable(f"{file}: is a folder; {EXPECTED}")
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    if file.stat().st_size > LARGEST_FILE:
        raise NotImportable(f"{file}: is larger than {LARGEST_FILE} bytes; {EXPECTED}")
    with file.open("rb") as opened:
        signature = opened.read(8)
    try:
        if signature[:4] == b"PK\x03\x04":
            landscape = mode_connectivity.read(file, npz_archive.read_arrays(file), regularised)
        elif signature == b"\x89HDF\r\n\x1a\n":
            with open_file(file) as hdf5:
                ours = has_attribute(hdf5, "format") and attribute(hdf5, "format") == FORMAT
                landscape = Landscape(file.stem) if ours else loss_landscape.read(file, hdf5)
            if ours:
                return Landscape.open(file)
        else:
            raise InvalidContent("is neither a .npz nor an HDF5 file" if signature else "is empty")
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        landscape.provenance = {"fingerprint": None, "sha256": digest, **landscape.provenance}
        check_landscape(landscape)
    except InvalidContent as error:
        raise NotImportable(f"{file}: {error}; {EXPECTED}") from None
    except (NotALandscape, DamagedLandscape):
        raise
    except Exception as error:  # a damaged file may raise anything
        raise NotImportable(f"{file}: {error}; {EXPECTED}") from error
    return landscape
