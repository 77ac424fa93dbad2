"""`valley import`: files of other tools become landscapes, and a damaged one neither hangs nor ends the command."""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from rich.console import Console

from tests.landscape.importers.other_tools import GaripovPlane
from valleyscope.app.cli import EXIT_BAD_INPUT, main
from valleyscope.app.commands import import_file
from valleyscope.app.experiments import landscape_import
from valleyscope.landscape import Landscape
from valleyscope.landscape.importers import NotImportable


def surface(path: Path) -> Path:
    """A surface as loss-landscape writes it."""
    with h5py.File(path, "w") as file:
        file["dir_file"] = "model_weights_xignore=biasbn_xnorm=filter.h5"
        file["xcoordinates"], file["ycoordinates"] = np.linspace(-1, 1, 5), np.linspace(-1, 1, 4)
        file["train_loss"], file["train_acc"] = np.ones((5, 4)), np.full((5, 4), 90.0)
    return path


def test_a_surface_becomes_a_landscape_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(surface(tmp_path / "surface.h5"))]) == 0
    target = tmp_path / "surface-valley"
    assert Landscape.open(target / "landscape.h5").planes["surface"].done.all()
    assert (target / "report.html").is_file()
    assert capsys.readouterr().out.split() == [str(target / "landscape.h5"), str(target / "report.html")]


@pytest.mark.parametrize("content", [None, b"", b"rubbish", b"\x89HDF\r\n\x1a\n"])
def test_what_is_no_such_file_is_named_and_nothing_is_left(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "surface.h5"
    if content is not None:
        file.write_bytes(content)
    assert main(["import", str(file)]) == EXIT_BAD_INPUT
    assert capsys.readouterr().err.startswith(f"valley: {file}: ")
    assert not (tmp_path / "surface-valley").exists()


def test_a_file_that_hangs_its_reader_is_given_up(tmp_path: Path) -> None:
    file = surface(tmp_path / "surface.h5")
    content = bytearray(file.read_bytes())
    content[content.index(b"GCOL") + 24] = 0xFF  # the size of an object in the heap of texts, which sends it in circles
    file.write_bytes(content)
    with pytest.raises(NotImportable, match=r"surface\.h5: (could not be read within|.*cannot be read)"):
        import_file.import_landscape([file], None, Console(), timeout=6.0)
    assert not (tmp_path / "surface-valley").exists()


def test_a_file_that_ends_its_reader_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr(landscape_import, "_COMMAND", (sys.executable, "-c", dies))
    with pytest.raises(NotImportable, match=r"surface\.h5: is damaged; reading it fails \(SIGSEGV\)"):
        import_file.import_landscape([surface(tmp_path / "surface.h5")], None, Console())


def test_several_files_become_several_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = GaripovPlane()
    files = [theirs.save(tmp_path), theirs.save_curve(tmp_path), surface(tmp_path / "surface.h5")]
    assert main(["import", *map(str, files), "--out", str(tmp_path / "out")]) == 0
    assert len(capsys.readouterr().out.split()) == 4
    one = Landscape.open(tmp_path / "out" / "1-plane" / "landscape.h5")
    assert (list(one.planes), list(one.curves)) == (["connection"], ["connection"])
    assert (tmp_path / "out" / "2-surface" / "report.html").is_file()
