"""Results over HTTP: the numbers of the file, in every form, at once, and only when they are new."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterator
from http.client import HTTPConnection
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import h5py
import httpx
import numpy as np
import pytest

from tests.app.servers import Server
from tests.landscape import cases
from valleyscope.app.api.serializers import planes_of
from valleyscope.landscape.analysis.barriers import barrier
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid

BINARY = {"accept": "application/octet-stream"}


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    """The known landscape; half of the valley is not computed, one value overflowed."""
    found = cases.landscape(21)
    plane = found.planes["valley"]
    plane.done[::2, :] = False
    for grid in plane.splits.values():
        grid.loss[::2, :] = np.nan
        grid.error[::2, :] = np.nan
    plane.splits["train"].loss[1, 0] = np.inf
    return found


@pytest.fixture(scope="module")
def results(bare: Server, landscape: Landscape) -> Iterator[httpx.Client]:
    """A client whose paths are below the charted experiment."""
    id = bare.charted(landscape)
    with httpx.Client(base_url=f"{bare.url}/api/experiments/{id}/", timeout=60) as client:
        yield client


def decoded(array: dict[str, str]) -> Any:
    shape = tuple(int(size) for size in array["shape"].split(","))
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def strict(text: str) -> Any:
    """JSON as browsers read it: neither NaN nor infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("value", ["loss", "error"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_surface_has_the_numbers_of_the_file(
    results: httpx.Client, landscape: Landscape, split: str, value: str
) -> None:
    response = results.get("surface", params={"plane": "valley", "split": split, "value": value})
    surface = strict(response.text)
    plane = landscape.planes["valley"]
    np.testing.assert_array_equal(decoded(surface["x"]), plane.x)
    np.testing.assert_array_equal(decoded(surface["y"]), plane.y)
    np.testing.assert_array_equal(decoded(surface["z"]), plane.splits[split][value])
    np.testing.assert_array_equal(decoded(surface["done"]).astype(bool), plane.done)
    np.testing.assert_array_equal(decoded(surface["paths"]["valley"]), plane.paths["valley"])
    assert surface["points"]["altsdp"] == list(plane.points["altsdp"])
    assert surface["computed"] == int(plane.done.sum())
    assert not surface["complete"]


def test_a_plane_comes_with_all_its_values_at_once(results: httpx.Client, landscape: Landscape) -> None:
    plane = landscape.planes["valley"]
    whole = strict(results.get("planes/valley").text)
    assert set(whole["grids"]) == {f"{split} {value}" for split in plane.splits for value in ("loss", "error")}
    for key, values in whole["grids"].items():
        split, value = key.split()
        np.testing.assert_array_equal(decoded(values), plane.splits[split][value])
    surface = strict(results.get("surface", params={"plane": "valley"}).text)
    assert {**surface, "grids": whole["grids"]} == {
        **whole,
        **{key: surface[key] for key in ("split", "value", "z", "level")},
    }
    assert results.get("planes/nowhere").json()["code"] == "unknown-plane"


def test_a_surface_as_bytes_is_the_same(results: httpx.Client, landscape: Landscape) -> None:
    response = results.get("surface", params={"plane": "valley"}, headers=BINARY)
    assert response.headers["content-type"] == "application/octet-stream"
    body = response.content
    rows, columns = np.frombuffer(body, "<u4", 2)
    plane = landscape.planes["valley"]
    assert (rows, columns) == plane.shape
    numbers = np.frombuffer(body, "<f8", columns + rows + rows * columns, 8)
    np.testing.assert_array_equal(numbers[:columns], plane.x)
    np.testing.assert_array_equal(numbers[columns : columns + rows], plane.y)
    np.testing.assert_array_equal(numbers[columns + rows :].reshape(rows, columns), plane.splits["train"].loss)
    done = np.frombuffer(body, "u1", rows * columns, 8 + 8 * len(numbers))
    np.testing.assert_array_equal(done.reshape(rows, columns).astype(bool), plane.done)
    assert len(body) == 8 + 8 * len(numbers) + len(done)
    assert results.get("surface", headers={"accept": "image/png"}).status_code == 406


@pytest.mark.parametrize("form", [{}, BINARY])
@pytest.mark.parametrize(
    "path",
    [
        "surface?plane=basins",
        "planes/basins",
        "contents",
        "minima",
        "profile",
        "verdict",
        "figure?kind=contour",
        "figure?kind=profile",
    ],
)
def test_nothing_is_sent_twice_until_something_is_new(
    bare: Server, landscape: Landscape, path: str, form: dict[str, str]
) -> None:
    if form and not path.startswith("surface"):
        form = {}
    id = bare.charted(landscape)
    url = f"/api/experiments/{id}/{path}"
    first = bare.client.get(url, headers=form)
    tag = first.headers["etag"]
    again = bare.client.get(url, headers={**form, "if-none-match": tag})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["etag"] == tag
    assert bare.client.get(url, headers={**form, "if-none-match": '"other", ' + tag}).status_code == 304
    landscape.save(bare.directory(id) / "landscape.h5")
    new = bare.client.get(url, headers={**form, "if-none-match": tag})
    assert new.status_code == 200
    assert new.headers["etag"] != tag
    assert new.content == first.content


def test_forms_and_planes_do_not_share_a_tag(results: httpx.Client) -> None:
    tags = {
        results.get("surface", params=query, headers=headers).headers["etag"]
        for query in ({"plane": "valley"}, {"plane": "basins"}, {"plane": "valley", "split": "test"})
        for headers in ({}, BINARY)
    }
    assert len(tags) == 6


def test_minima_have_their_metrics_and_layers(results: httpx.Client, landscape: Landscape) -> None:
    found = strict(results.get("minima").text)["minima"]
    assert list(found) == list(landscape.minima)
    for name, minimum in landscape.minima.items():
        for column, values in minimum.epochs.items():
            expected = [None if math.isnan(value) else value for value in values.tolist()]
            assert found[name]["epochs"][column] == expected
        assert [layer["zero_groups"] for layer in found[name]["layers"]] == [la.zero_groups for la in minimum.layers]
        assert found[name]["final"]["train_loss"] == minimum.final["train_loss"]


def test_contents_name_what_is_there_and_what_it_depends_on(results: httpx.Client, landscape: Landscape) -> None:
    found = strict(results.get("contents").text)
    for kind in ("minima", "curves", "lines"):
        assert found[kind] == list(getattr(landscape, kind))
    for name, plane in landscape.planes.items():
        rows, columns = plane.shape
        computed = int(plane.done.sum())
        expected = {"rows": rows, "columns": columns, "computed": computed, "splits": ["train", "test"]}
        assert found["planes"][name] == expected
    assert found["provenance"] == landscape.provenance
    assert found["verdict"] is True


def test_contents_of_what_has_not_begun_are_empty(bare: Server) -> None:
    response = bare.client.get(f"/api/experiments/{bare.submit()}/contents")
    assert response.status_code == 200
    nothing = {"minima": [], "curves": [], "lines": [], "planes": {}, "verdict": False, "provenance": {}, "workers": []}
    assert nothing.items() <= response.json().items()
    assert response.json()["warnings"] == []


def test_contents_name_the_workers_that_took_part(lively: Server, done: str) -> None:
    url = f"/api/experiments/{done}/contents"
    response = lively.client.get(url)
    (hand,) = response.json()["workers"]
    assert hand["worker"].endswith(", cpu")
    assert hand["tasks"] >= len(response.json()["minima"])
    assert hand["seconds"] > 0
    assert lively.client.get(url, headers={"if-none-match": response.headers["etag"]}).status_code == 304


def test_a_profile_has_curves_lines_and_their_barriers(results: httpx.Client, landscape: Landscape) -> None:
    found = strict(results.get("profile").text)
    for kind, paths in (("curves", landscape.curves), ("lines", landscape.lines)):
        assert list(found[kind]) == list(paths)
        for name, path in paths.items():
            for split, values in path.splits.items():
                assert found[kind][name]["loss"][split] == values.loss.tolist()
                assert found[kind][name]["barrier"][split] == barrier(values.loss)


def test_the_verdict_is_that_of_the_file(results: httpx.Client, landscape: Landscape) -> None:
    assert strict(results.get("verdict").text) == landscape.verdict


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "contour", "plane": "valley"},
        {"kind": "contour", "plane": "basins", "split": "test", "value": "error", "theme": "dark"},
        {"kind": "contour", "plane": "basins", "log": "false", "clip": "2.5"},
        {"kind": "surface3d", "plane": "basins"},
        {"kind": "profile", "log": "true"},
        {"kind": "training", "quantity": "sparsity"},
        {"kind": "training", "quantity": "threshold", "theme": "dark"},
        {"kind": "sparsity"},
        {"kind": "paper"},
    ],
)
def test_figures_are_plotly_figures(results: httpx.Client, query: dict[str, str]) -> None:
    import plotly.graph_objects as go

    response = results.get("figure", params=query)
    assert response.status_code == 200, response.text
    figure = go.Figure(strict(response.text))  # raises where a property is unknown
    assert figure.data


def test_other_words_than_those_offered_are_refused(results: httpx.Client) -> None:
    for path in ("surface?split=valid", "surface?value=area", "figure?kind=pie", "figure?clip=-1", "figure?clip=nan"):
        response = results.get(path)
        assert response.status_code == 422, path
        assert response.json()["errors"][0]["path"] in path
    for path in ("surface?plane=nowhere", "figure?kind=contour&plane=nowhere"):
        response = results.get(path)
        assert response.status_code == 404
        assert "basins, valley" in response.json()["detail"]


def test_planes_of_a_spec_that_is_refused_today_are_still_found() -> None:
    planes = {"p": {"trajectory": "a"}, "q": {"around": "a"}}
    row: Any = SimpleNamespace(id="older", run=1, spec={"minima": {"a": {"epochs": 2}}, "planes": planes})
    assert planes_of(row) == ["p", "q"]


def test_results_that_are_not_there_yet_say_so(bare: Server) -> None:
    id = bare.submit()
    for path in ("minima", "surface", "profile", "verdict", "figure", "files/landscape.h5", "files/report.html"):
        response = bare.client.get(f"/api/experiments/{id}/{path}")
        assert (response.status_code, response.json()["code"]) == (404, "not-yet"), path
        assert response.json()["state"] == "queued"


def test_results_that_will_never_be_there_say_why(bare: Server, lively: Server) -> None:
    def answers(server: Server, id: str, *paths: str) -> set[str]:
        found = [server.client.get(f"/api/experiments/{id}/{path}") for path in paths]
        assert {(response.status_code, response.json()["code"]) for response in found} == {(404, "none")}
        return {response.json()["detail"].partition(": ")[2] for response in found}

    cancelled = bare.still()
    paths = ("minima", "surface", "profile", "verdict", "figure", "files/landscape.h5", "files/report.html")
    [reason] = answers(bare, cancelled, *paths)
    assert "was cancelled" in reason

    one: dict[str, Any] = {"training": {"epochs": 1}, "curves": {}, "planes": {}}
    done, failed = (lively.submit({**one, "minima": {"only": {"lr": lr}}}) for lr in (0.1, 1000.0))
    assert lively.wait(done)["state"] == "done"
    [reason] = answers(lively, done, "verdict", "figure?kind=profile", "files/verdict.json")
    assert "two minima" in reason
    assert lively.wait(failed)["state"] == "failed"
    [reason] = answers(lively, failed, "figure?kind=training", "files/only.safetensors")
    assert "failed" in reason
    assert "diverged" in reason


def test_a_damaged_landscape_is_named_and_harms_nobody_else(bare: Server) -> None:
    id = bare.charted()
    path = bare.directory(id) / "landscape.h5"
    path.write_bytes(path.read_bytes()[:5000])
    for name in ("surface", "minima", "verdict", "figure"):
        response = bare.client.get(f"/api/experiments/{id}/{name}")
        assert (response.status_code, response.json()["code"]) == (503, "damaged-landscape")
        assert str(bare.home) not in response.text
    cases.landscape(21).save(path)
    assert bare.client.get(f"/api/experiments/{id}/surface").status_code == 200


def test_large_answers_are_compressed_where_it_helps(results: httpx.Client) -> None:
    zipped = {"accept-encoding": "gzip"}
    assert results.get("minima", headers=zipped).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in results.get("minima", headers={"accept-encoding": "identity"}).headers
    assert "content-encoding" not in results.get("surface", headers={**BINARY, **zipped}).headers
    assert results.get("minima", headers=zipped).json() == results.get("minima").json()


def test_files_are_sent_whole_or_in_parts(results: httpx.Client, landscape: Landscape) -> None:
    whole = results.get("files/landscape.h5")
    assert whole.headers["content-type"] == "application/x-hdf5"
    with h5py.File(io.BytesIO(whole.content)) as file:
        np.testing.assert_array_equal(file["planes/valley/x"][()], landscape.planes["valley"].x)
    size = len(whole.content)
    asked_for = {"0-7": (0, 8), "100-": (100, size), "-50": (size - 50, size), f"8-{10 * size}": (8, size)}
    for asked, (start, end) in asked_for.items():
        part = results.get("files/landscape.h5", headers={"range": f"bytes={asked}"})
        assert part.status_code == 206
        assert part.content == whole.content[start:end]
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    beyond = results.get("files/landscape.h5", headers={"range": f"bytes={size}-"})
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{size}"
    for odd in ("bytes=7-3", "lines=1-2", "bytes=0-1,5-6", "bytes=-"):
        assert results.get("files/landscape.h5", headers={"range": odd}).content == whole.content
    tag = whole.headers["etag"]
    assert results.get("files/landscape.h5", headers={"if-none-match": tag}).status_code == 304
    stale = results.get("files/landscape.h5", headers={"range": "bytes=0-7", "if-range": '"old"'})
    assert stale.content == whole.content
    resumed = results.get("files/landscape.h5", headers={"range": "bytes=9-", "if-range": tag})
    assert resumed.content == whole.content[9:]


@pytest.mark.parametrize("name", ["report.html", "verdict.json", "landscape.h5"])
def test_a_download_that_is_resumed_never_joins_two_forms_of_a_file(bare: Server, name: str) -> None:
    """Compressed, the file would be another one under the same tag."""
    id = bare.charted()
    path, url = bare.directory(id) / name, f"/api/experiments/{id}/files/{name}"
    if name != "landscape.h5":
        path.write_bytes(b'{"a": "' + b"valley " * 1000 + b'"}')
    zipped = {"accept-encoding": "gzip"}
    whole = bare.client.get(url, headers=zipped)
    assert "content-encoding" not in whole.headers
    assert whole.content == path.read_bytes()
    assert whole.headers["content-length"] == str(path.stat().st_size)
    for encoding in (zipped, {"accept-encoding": "identity"}):
        resume = {"range": "bytes=100-", "if-range": whole.headers["etag"], **encoding}
        assert bare.client.get(url, headers=resume).content == whole.content[100:]


def test_the_surface_comes_as_a_table(results: httpx.Client, landscape: Landscape) -> None:
    lines = results.get("files/surface.csv").text.splitlines()
    assert lines[0].startswith("plane,x,y,done")
    assert len(lines) == 1 + sum(plane.done.size for plane in landscape.planes.values())
    zipped = results.get("files/surface.csv", headers={"accept-encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert "etag" not in zipped.headers


@pytest.mark.parametrize(
    "name",
    [
        "valley.db",
        "work",
        "..",
        "../../valley.db",
        "..%2f..%2fvalley.db",
        "%2e%2e%2fspec.json",
        "....//spec.json",
        "sgd.safetensors%00",
        "/etc/passwd",
        "nobody.safetensors",
        ".spec.json",
        "spec.json/",
    ],
)
def test_no_other_file_can_be_named(results: httpx.Client, name: str) -> None:
    connection = HTTPConnection(results.base_url.host, results.base_url.port, timeout=30)  # sends paths as they are
    connection.request("GET", f"{results.base_url.path}files/{name}")
    response = connection.getresponse()
    assert response.status == 404
    assert response.getheader("content-type") == "application/problem+json"
    connection.close()


def test_a_running_experiment_is_read_while_its_file_is_replaced(bare: Server) -> None:
    landscape = cases.landscape(41)
    id = bare.charted(landscape)
    stopping = Event()

    def write() -> None:
        while not stopping.is_set():
            noise = np.random.default_rng().random((2, *landscape.planes["valley"].shape))
            landscape.planes["valley"].splits["train"] = Grid(*noise)
            landscape.save(bare.directory(id) / "landscape.h5")

    writer = Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            with h5py.File(io.BytesIO(bare.client.get(f"/api/experiments/{id}/files/landscape.h5").content)) as file:
                assert file["planes/valley/x"].shape == (41,)
            assert bare.client.get(f"/api/experiments/{id}/surface").status_code == 200
    finally:
        stopping.set()
        writer.join()
