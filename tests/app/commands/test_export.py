"""`valley export`: of a run, of a file, and of an experiment by its id, from the home or from a server."""

from __future__ import annotations

import csv
import os
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.app.runs import valley
from tests.app.servers import Server
from tests.landscape import cases
from valleyscope.app.cli import main
from valleyscope.app.commands.client import Client, Unreachable
from valleyscope.app.settings import Settings

UNKNOWN = "0123456789abcdef"
POINTS = 1 + sum(plane.done.size for plane in cases.landscape(21).planes.values())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with an empty home beside it."""
    for name in (*Settings.model_fields, "server"):
        monkeypatch.delenv(f"VALLEY_{name.upper()}", raising=False)
    monkeypatch.setenv("VALLEY_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def rows(path: Path) -> int:
    with path.open(newline="", encoding="utf-8") as file:
        return sum(1 for _ in csv.reader(file))


def test_a_run_and_its_file_are_exported_beside_themselves(folder: Path) -> None:
    (folder / "out").mkdir()
    cases.landscape(21).save(folder / "out" / "landscape.h5")
    for source in ("out", "out/landscape.h5"):
        assert main(["export", source, "--formats", "csv"]) == 0
        assert rows(folder / "out" / "export" / "surface.csv") == POINTS


def test_an_experiment_of_a_server_is_exported_by_its_id(bare: Server, folder: Path) -> None:
    id = bare.charted()
    for _ in range(2):  # also where the folder is there already
        assert main(["export", id, "--formats", "csv", "--server", bare.url]) == 0
        assert rows(folder / id / "surface.csv") == POINTS
    assert main(["export", id, "--formats", "csv", "--server", bare.url, "--out", "other"]) == 0
    assert rows(folder / "other" / "surface.csv") == POINTS


def test_an_experiment_of_the_home_needs_no_server(folder: Path) -> None:
    kept = folder.parent / "home" / "experiments" / UNKNOWN
    kept.mkdir(parents=True)
    cases.landscape(21).save(kept / "landscape.h5")
    for _ in range(2):
        assert main(["export", UNKNOWN, "--formats", "csv"]) == 0
        assert rows(folder / UNKNOWN / "surface.csv") == POINTS
    assert [path.name for path in kept.iterdir()] == ["landscape.h5"]


def test_a_fetched_experiment_is_a_run(bare: Server, folder: Path) -> None:
    id = bare.charted()
    assert main(["fetch", id, "--server", bare.url]) == 0
    assert main(["export", id, "--formats", "csv"]) == 0
    assert rows(folder / id / "export" / "surface.csv") == POINTS


@pytest.mark.parametrize("source", [UNKNOWN, "nowhere", "nowhere/landscape.h5"])
def test_what_is_not_there_is_one_clear_line(bare: Server, folder: Path, source: str) -> None:
    done = subprocess.run(
        valley("export", source),
        capture_output=True,
        text=True,
        env={**os.environ, "VALLEY_SERVER": bare.url},
        check=False,
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert source in line
    assert ("there is no experiment" if source == UNKNOWN else "there is no such file") in line
    assert list(folder.iterdir()) == []


def test_an_experiment_without_results_and_a_server_that_is_away_are_named(
    bare: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    id = bare.submit()
    assert main(["export", id, "--server", bare.url]) == 2
    assert "landscape.h5 does not exist yet: the experiment is queued" in capsys.readouterr().err
    assert main(["export", id, "--server", "http://127.0.0.1:1"]) == 2
    assert "cannot be reached" in capsys.readouterr().err


def test_a_download_that_is_cut_off_leaves_nothing(folder: Path) -> None:
    class Broken(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 10)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Broken) as server:
        Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(Unreachable, match="990 bytes before the end"):
            Client(f"http://127.0.0.1:{server.server_port}").download(UNKNOWN, "landscape.h5", folder / "landscape.h5")
    assert list(folder.iterdir()) == []
