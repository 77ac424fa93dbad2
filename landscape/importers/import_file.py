"""Recognise a file by what is in it, and make a landscape of it.

Nothing in a foreign file is trusted: no pickles, no links to other files, sizes checked before anything is read.
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
    """The file is none of those that can be imported, or is damaged."""


def import_file(path: str | os.PathLike[str], regularised: bool = False) -> Landscape:
    """The landscape in ``plane.npz`` or ``curve.npz`` of dnn-mode-connectivity or a surface ``.h5`` of loss-landscape.

    The kind is told by the content, whatever the name. Errors become fractions, a row of a grid one value of y, values
    that were never computed "not done". Files of dnn-mode-connectivity hold the loss with and without the L2 term: the
    one without is taken, or with ``regularised`` the one with it. A landscape.h5 is opened as it is.

    Raises FileNotFoundError, NotImportable, which names the file, what is wrong and what would be right, or of a
    landscape.h5 what ``Landscape.open`` raises.
    """
    file = Path(path)
    if file.is_dir():
        raise NotImportable(f"{file}: is a folder; {EXPECTED}")
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    if file.stat().st_size > LARGEST_FILE:
        raise NotImportable(f"{file}: is larger than {LARGEST_FILE} bytes; {EXPECTED}")
    with file.open("rb") as opened:
        opening = opened.read(8)
    try:
        if opening[:4] == b"PK\x03\x04":
            landscape = mode_connectivity.read(file, npz_archive.read_arrays(file), regularised)
        elif opening == b"\x89HDF\r\n\x1a\n":
            with open_file(file) as hdf5:
                ours = has_attribute(hdf5, "format") and attribute(hdf5, "format") == FORMAT
                landscape = Landscape(file.stem) if ours else loss_landscape.read(file, hdf5)
            if ours:
                return Landscape.open(file)
        else:
            raise InvalidContent("is neither a .npz nor an HDF5 file" if opening else "is empty")
        landscape.provenance = {"fingerprint": None, "sha256": _digest(file), **landscape.provenance}
        check_landscape(landscape)
    except InvalidContent as flaw:
        raise NotImportable(f"{file}: {flaw}; {EXPECTED}") from None
    except (NotALandscape, DamagedLandscape):
        raise
    except Exception as error:  # whatever a damaged file may lead to
        raise NotImportable(f"{file}: {error}; {EXPECTED}") from error
    return landscape


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
