"""The gallery: landscapes that ship with the program, read as experiments and never changed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import valleyscope
from tests.app.runs import run
from tests.app.servers import Server
from valleyscope.app.experiments.gallery import FOLDER, GalleryEntry, gallery_entries
from valleyscope.landscape.importers import judged

ENTRIES = gallery_entries()
KINDS = {"level valley", "one basin, sloping", "joined by a curve only", "separate"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_has_the_verdict_that_the_index_states_and_its_spec_is_the_one_beside_it(entry: GalleryEntry) -> None:
    landscape = valleyscope.gallery(entry.name)
    assert landscape.verdict is not None
    assert landscape.verdict["kind"] == entry.verdict
    assert judged(landscape)["kind"] == entry.verdict, "and so do its stored paths"
    assert landscape.spec == entry.spec().to_json()
    assert all(plane.complete for plane in landscape.planes.values())


def test_the_files_are_small_and_every_kind_is_there() -> None:
    sizes = [path.stat().st_size for path in FOLDER.rglob("*.h5")]
    assert len(sizes) == len(ENTRIES)
    assert max(sizes) < 300_000
    assert sum(sizes) < 1_500_000
    assert {entry.verdict for entry in ENTRIES} >= KINDS


def test_a_name_that_is_not_in_the_gallery_is_answered_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="'demoo' is not in the gallery: use one of demo, sloping"):
        valleyscope.gallery("demoo")


def test_the_command_lists_it_and_importing_it_loads_no_torch() -> None:
    done = run("gallery")
    assert done.returncode == 0
    assert all(entry.id in done.stdout for entry in ENTRIES)
    code = "import sys, valleyscope; valleyscope.gallery('demo'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_list_has_the_gallery_apart_from_the_experiments(bare: Server) -> None:
    items = bare.client.get("/api/gallery").json()["items"]
    assert [item["id"] for item in items] == [entry.id for entry in ENTRIES]
    assert {item["origin"] for item in items} == {"gallery"}
    assert [item["verdict_kind"] for item in items] == [entry.verdict for entry in ENTRIES]
    assert items[0]["planes"][0] == "basins", "the plane of the claim comes first"
    listed = bare.client.get("/api/experiments", params={"limit": 200}).json()["items"]
    assert not {item["id"] for item in items} & {item["id"] for item in listed}


@pytest.mark.parametrize(
    "path",
    ["", "/contents", "/minima", "/surface", "/profile", "/verdict", "/figure", "/files", "/files/landscape.h5"],
)
def test_an_entry_is_read_as_an_experiment(bare: Server, path: str) -> None:
    answer = bare.client.get(f"/api/experiments/gallery-demo{path}")
    assert answer.status_code == 200, answer.text
    if path == "/surface":
        level = answer.json()["level"]
        assert level["value"] == level["end"] + level["tolerance"] < level["peak"]
    if path == "/files":
        assert {file["name"] for file in answer.json()["items"]} == {"landscape.h5", "surface.csv", "matrix.csv"}


def test_its_events_end_at_once(bare: Server) -> None:
    assert bare.client.get("/api/experiments/gallery-demo/events").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("POST", "/restore"),
        ("POST", "/share"),
        ("DELETE", ""),
        ("DELETE", "?permanent=true"),
        ("PATCH", ""),
    ],
)
def test_nothing_changes_an_entry(bare: Server, method: str, path: str) -> None:
    body = {"name": "mine"} if method == "PATCH" else {} if path == "/share" else None
    answer = bare.client.request(method, f"/api/experiments/gallery-demo{path}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong-state")
    assert "part of the gallery" in answer.json()["detail"]
    bulk = {"action": "delete", "ids": ["gallery-demo"]}
    assert bare.client.post("/api/experiments/bulk", json=bulk).json()["items"][0]["code"] == "wrong-state"


@pytest.mark.parametrize("id", ["gallery-none", "gallery-", "gallery-../demo", "demo"])
def test_what_is_not_in_the_gallery_is_unknown(bare: Server, id: str) -> None:
    for method, path in (("GET", ""), ("GET", "/surface"), ("DELETE", "")):
        assert bare.client.request(method, f"/api/experiments/{id}{path}").status_code == 404
