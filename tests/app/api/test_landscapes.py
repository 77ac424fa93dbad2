"""Uploaded landscapes are experiments like others; hostile files are refused and leave nothing."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import httpx
import numpy as np
import pytest

from tests.app.servers import Server, serving
from tests.landscape import cases
from tests.landscape.importers.other_tools import GaripovPlane, li_line, li_surface
from valleyscope.app.cli import EXIT_BAD_INPUT, main
from valleyscope.app.storage.landscape_upload import MOST_FILES
from valleyscope.landscape.analysis.verdict_kind import VerdictKind
from valleyscope.landscape.claim import computed_planes
from valleyscope.landscape.storage.landscape_file import Landscape

MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that takes 2 MiB of landscapes at most."""
    home = tmp_path_factory.mktemp("landscapes") / "home"
    with serving(home, environment={"VALLEY_MAX_LANDSCAPE": str(2 * MEBIBYTE)}) as server:
        yield server


def send(server: Server, *files: Path | tuple[str, bytes], **fields: str) -> httpx.Response:
    parts = [file if isinstance(file, tuple) else (file.name, file.read_bytes()) for file in files]
    return server.client.post("/api/landscapes", files=[("file", part) for part in parts], data=fields)


def sent(server: Server, *files: Path | tuple[str, bytes], **fields: str) -> dict[str, Any]:
    response = send(server, *files, **fields)
    assert response.status_code == 201, response.text
    row: dict[str, Any] = response.json()
    assert response.headers["location"] == f"/api/experiments/{row['id']}"
    return row


def ours(folder: Path, **changes: Any) -> Path:
    landscape = cases.landscape(9)
    for name, value in changes.items():
        setattr(landscape, name, value)
    landscape.save(folder / "landscape.h5")
    return folder / "landscape.h5"


def left_behind(server: Server) -> list[Path]:
    return list((server.home / "uploads").glob("*"))


def test_our_own_file_is_an_experiment_with_all_its_results(server: Server, tmp_path: Path) -> None:
    file = ours(tmp_path)
    row = sent(server, file, name="from a friend")
    original = Landscape.open(file)
    assert original.verdict is not None
    assert (row["name"], row["state"], row["origin"], row["progress"]) == ("from a friend", "done", "imported", 1.0)
    assert row["verdict_kind"] == original.verdict["kind"]
    assert row["accuracy"] == pytest.approx(original.minima[original.verdict["between"][1]].final["test_accuracy"])
    assert (row["minima"], row["planes"]) == (
        list(original.minima),
        [plane.name for plane in computed_planes(original)],
    )
    path = f"/api/experiments/{row['id']}"
    assert server.client.get(path).json()["spec"]["imported"]["files"] == ["landscape.h5"]
    listed = server.client.get("/api/experiments").json()["items"]
    assert [found["origin"] for found in listed if found["id"] == row["id"]] == ["imported"]
    surface = server.client.get(f"{path}/surface", params={"plane": row["planes"][0]}).json()
    assert surface["complete"] == original.planes[row["planes"][0]].complete
    assert server.client.get(f"{path}/profile").json()["lines"].keys() == original.lines.keys()
    assert server.client.get(f"{path}/verdict").json()["sentence"] == original.verdict["sentence"]
    for kind in ("contour", "profile", "training", "sparsity", "paper"):
        assert server.client.get(f"{path}/figure", params={"kind": kind}).status_code == 200, kind
    names = [found["name"] for found in server.client.get(f"{path}/files").json()["items"]]
    assert names == ["landscape.h5", "report.html", "surface.csv", "matrix.csv", "spec.json", "verdict.json"]
    for name in names:
        assert server.client.get(f"{path}/files/{name}").status_code == 200, name
    contents = server.client.get(f"{path}/contents").json()
    assert contents["warnings"] == []
    assert server.client.get(f"{path}/events").status_code in (200, 204)
    assert left_behind(server) == []


def test_an_imported_landscape_is_not_cancelled_or_retried_but_deleted(server: Server, tmp_path: Path) -> None:
    row = sent(server, ours(tmp_path))
    path = f"/api/experiments/{row['id']}"
    cancelled, retried = (server.client.post(f"{path}/{action}") for action in ("cancel", "retry"))
    assert (cancelled.status_code, retried.status_code) == (409, 409)
    assert "upload its files again" in retried.json()["detail"]
    (server.directory(row["id"]) / "landscape.h5").unlink()
    assert server.client.post(f"{path}/retry").status_code == 409
    assert server.client.delete(path, params={"permanent": True}).status_code == 204
    assert server.client.get(path).status_code == 404
    assert not server.directory(row["id"]).exists()


def test_plane_and_curve_of_one_run_become_one_landscape(server: Server, tmp_path: Path) -> None:
    theirs = GaripovPlane()
    row = sent(server, theirs.save(tmp_path), theirs.save_curve(tmp_path))
    assert [found["id"] for found in row["items"]] == [row["id"]]
    assert (row["minima"], row["planes"]) == (["start", "end"], ["connection"])
    path = f"/api/experiments/{row['id']}"
    paths = server.client.get(f"{path}/profile").json()
    assert (list(paths["curves"]), list(paths["lines"])) == (["connection"], ["start-end"])
    assert "read off the surface" in paths["lines"]["start-end"]["note"]
    assert server.client.get(f"{path}/verdict").json()["kind"] == row["verdict_kind"] is not None


def test_a_curve_alone_has_no_verdict_and_says_why(server: Server, tmp_path: Path) -> None:
    path = f"/api/experiments/{sent(server, GaripovPlane().save_curve(tmp_path))['id']}"
    missing = server.client.get(f"{path}/verdict")
    assert missing.status_code == 404
    assert "do not have it" in missing.json()["detail"]
    (warning,) = server.client.get(f"{path}/contents").json()["warnings"]
    assert "no verdict" in warning["message"]
    assert "only a curve from start to end" in warning["message"]


def test_files_of_several_runs_become_several_landscapes(server: Server, tmp_path: Path) -> None:
    theirs, long = GaripovPlane(), tmp_path / "long"
    long.mkdir()
    other = theirs.save_curve(long, dl=np.full(31, 9.0))
    li_surface(tmp_path / "surface.h5", 5, 4, unfinished=7)
    row = sent(server, theirs.save(tmp_path), other, tmp_path / "surface.h5", li_line(tmp_path / "line.h5"))
    assert [found["name"] for found in row["items"]] == ["plane", "curve", "surface", "line"]


def test_a_line_between_two_models_gets_a_verdict_from_its_part_between_them(server: Server, tmp_path: Path) -> None:
    high, low = (sent(server, li_line(tmp_path / "line.h5", height)) for height in (1.0, 0.001))
    assert high["verdict_kind"] == "separate"
    assert low["verdict_kind"] != "separate"
    verdict = server.client.get(f"/api/experiments/{high['id']}/verdict").json()
    assert verdict["line"]["barrier"] == pytest.approx(1.0)
    assert verdict["line"]["low"] is None
    surface = server.client.get(f"/api/experiments/{high['id']}/surface")
    assert (surface.status_code, surface.json()["code"]) == (404, "unknown-plane")


def test_a_surface_that_is_not_complete_shows_which_points_are(server: Server, tmp_path: Path) -> None:
    li_surface(tmp_path / "surface.h5", 5, 4, unfinished=7)
    row = sent(server, tmp_path / "surface.h5")
    found = server.client.get(f"/api/experiments/{row['id']}/surface").json()
    assert (found["computed"], found["complete"]) == (13, False)
    refused = server.client.get(f"/api/experiments/{row['id']}/surface", params={"split": "test"})
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown-split")


def test_a_trajectory_belongs_to_the_surface_beside_it(server: Server, tmp_path: Path) -> None:
    surface, trajectory = tmp_path / "d.h5_[-1.0,1.0,5]x[-0.5,1.5,5].h5", tmp_path / "d.h5_proj_cos.h5"
    li_surface(surface, 5, 5)
    with h5py.File(trajectory, "w") as file:
        file["proj_xcoord"], file["proj_ycoord"] = np.linspace(-1, 0, 4), np.linspace(1, 0, 4)
    row = sent(server, trajectory, surface)
    found = server.client.get(f"/api/experiments/{row['id']}/surface").json()
    assert list(found["paths"]) == ["trajectory:model"]
    assert "surface" in send(server, trajectory).json()["detail"]


def test_the_same_file_twice_is_two_experiments_and_a_raw_body_will_do(server: Server, tmp_path: Path) -> None:
    content = li_line(tmp_path / "line.h5").read_bytes()
    ids = {
        server.client.post("/api/landscapes", params={"filename": "line.h5"}, content=content).json()["id"]
        for _ in range(2)
    }
    assert len(ids) == 2
    row = sent(server, ("line.h5", content), ("line.h5", content))
    assert [found["name"] for found in row["items"]] == ["line", "line"]


@pytest.mark.parametrize("name", ["../../../evil.h5", "/etc/evil.h5", "..\\evil.h5", ".evil.h5", "e\x00v\ril\n.h5", ""])
def test_names_of_files_lead_nowhere(server: Server, tmp_path: Path, name: str) -> None:
    content = li_line(tmp_path / "line.h5").read_bytes()
    response = server.client.post("/api/landscapes", params={"filename": name}, content=content)
    assert response.status_code == 201, response.text
    (kept,) = response.json()["spec"]["imported"]["files"]
    assert kept in ("evil.h5", "landscape")
    assert not list(server.home.parent.rglob("*evil*"))


def bomb() -> bytes:
    """A .npz whose grid claims far more values than are allowed."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**20, 2**20, 2)})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("grid.npy", header.getvalue() + bytes(10 * MEBIBYTE))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (b"", 422, "is empty"),
        (b"rubbish", 422, "neither a .npz nor an HDF5 file"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), 422, "evil"),
        (b"PK\x03\x04" + bytes(100), 422, "damaged .npz"),
        (bomb(), 422, "at most"),
        (bytes(5 * MEBIBYTE // 2), 413, "more than 2097152 bytes"),
    ],
)
def test_what_is_no_landscape_is_refused_and_nothing_is_left(
    server: Server, content: bytes, status: int, said: str
) -> None:
    before = server.client.get("/api/experiments").json()["items"]
    folders = set((server.home / "experiments").iterdir())
    response = send(server, ("evil.h5", content))
    assert response.status_code == status, response.text
    assert said in response.json()["detail"]
    assert str(server.home) not in response.text
    assert server.client.get("/api/experiments").json()["items"] == before
    assert set((server.home / "experiments").iterdir()) == folders
    assert left_behind(server) == []


def test_one_bad_file_among_several_refuses_all(server: Server, tmp_path: Path) -> None:
    before = server.client.get("/api/experiments").json()["items"]
    response = send(server, li_line(tmp_path / "line.h5"), ("bad.h5", b"bad"))
    assert response.status_code == 422
    assert response.json()["detail"].startswith("bad.h5: ")
    assert server.client.get("/api/experiments").json()["items"] == before
    many = send(server, *[("line.h5", b"x")] * (MOST_FILES + 1))
    assert (many.status_code, left_behind(server)) == (422, [])


@pytest.mark.drill  # a minute of computing, until the server gives up
def test_a_file_that_hangs_or_exhausts_its_reader_does_not_stop_the_server(server: Server, tmp_path: Path) -> None:
    content = bytearray(li_line(tmp_path / "line.h5").read_bytes())
    content[content.index(b"GCOL") + 24] = 0xFF
    response = send(server, ("hanging.h5", bytes(content)))
    assert response.status_code == 422
    assert server.client.get("/healthz").status_code == 200
    assert left_behind(server) == []


def test_a_verdict_that_is_none_of_ours_is_not_believed(server: Server, tmp_path: Path) -> None:
    landscape = cases.landscape(9)
    landscape.verdict = {"kind": "the flattest valley", "sentence": "nonsense"}
    landscape.save(tmp_path / "landscape.h5")
    row = sent(server, tmp_path / "landscape.h5")
    assert row["verdict_kind"] in tuple(VerdictKind)
    assert row["sentence"] != "nonsense"


def test_a_database_that_refuses_leaves_no_files(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        line = li_line(tmp_path / "line.h5")
        with sqlite3.connect(server.home / "valley.db") as database:
            database.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON valley_experiments BEGIN SELECT RAISE(FAIL, 'no'); END"
            )
        database.close()
        assert send(server, line).status_code >= 500
        assert list((server.home / "experiments").iterdir()) == []
        assert left_behind(server) == []


def test_valley_import_and_python_send_landscapes_to_a_server(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = GaripovPlane()
    files = [str(theirs.save(tmp_path)), str(theirs.save_curve(tmp_path))]
    assert main(["import", *files, "--server", server.url, "--name", "theirs"]) == 0
    address = capsys.readouterr().out.strip()
    row = server.client.get(f"/api{address.removeprefix(server.url)}").json()
    assert (row["name"], row["planes"]) == ("theirs", ["connection"])
    assert main(["import", *files, "--server", server.url, "--out", "x"]) == EXIT_BAD_INPUT

    address = cases.landscape(9).send(server.url)
    assert server.client.get(f"/api{address.removeprefix(server.url)}").json()["state"] == "done"
    with pytest.raises(ConnectionError, match="cannot be reached"):
        cases.landscape(9).send("http://127.0.0.1:9")
    with pytest.raises(ConnectionError, match="refused the landscape"):
        cases.landscape(301).send(server.url)


def test_a_server_with_a_key_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path / "home", environment={"VALLEY_API_KEY": "secret"}) as server:
        monkeypatch.delenv("VALLEY_API_KEY", raising=False)
        with pytest.raises(ConnectionError, match="X-API-Key"):
            cases.landscape(9).send(server.url)
        assert cases.landscape(9).send(server.url, key="secret").startswith(server.url)
        monkeypatch.setenv("VALLEY_API_KEY", "secret")
        assert cases.landscape(9).send(server.url).startswith(server.url)
        files = server.client.get("/api/experiments", headers={"X-API-Key": "secret"}).json()["items"]
        assert json.dumps(files).count('"imported"') == 2
