"""The matrix of minima and the verdict on any pair, over HTTP."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import httpx
import pytest

from tests.app.servers import Server
from tests.landscape.many_minima import many_minima
from valleyscope.landscape import pair_matrix, pair_verdict
from valleyscope.landscape.analysis.minima_map import minima_map
from valleyscope.landscape.storage.landscape_file import Landscape


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    return many_minima(5)


@pytest.fixture(scope="module")
def results(bare: Server, landscape: Landscape) -> Iterator[httpx.Client]:
    id = landscape.send(bare.url).rpartition("/")[2]
    with httpx.Client(base_url=f"{bare.url}/api/experiments/{id}/", timeout=60) as client:
        yield client


def test_the_matrix_is_that_of_the_landscape(results: httpx.Client, landscape: Landscape) -> None:
    found = results.get("matrix")
    assert found.status_code == 200
    body = found.json()
    assert body.pop("experiment")
    assert body == pair_matrix(landscape).to_json()
    assert results.get("matrix", headers={"if-none-match": found.headers["etag"]}).status_code == 304


def test_the_map_is_that_of_the_landscape(results: httpx.Client, landscape: Landscape) -> None:
    body = results.get("map").json()
    assert body.pop("experiment")
    found = minima_map(landscape)
    assert found is not None
    assert body == found.to_json()


def test_any_pair_can_be_judged(results: httpx.Client, landscape: Landscape) -> None:
    for pair in (("m1", "m3"), ("m3", "m1"), ("m0", "m3")):
        found = results.get("verdict", params={"between": ",".join(pair)}).json()
        assert found == pair_verdict(landscape, *pair)
    assert results.get("verdict", params={"between": "m0,m2"}).json() == results.get("verdict").json()


@pytest.mark.parametrize(
    ("between", "message"),
    [
        ("m0,nobody", "'nobody' is not a minimum of this experiment: use two of m0, m1, m2, m3, m4, as m0,m1"),
        ("m1,m1", "'m1,m1' names one minimum twice"),
        ("m1", "'m1' does not name two minima"),
        ("m0,m1,m2", "'m0,m1,m2' does not name two minima"),
        ("", "'' does not name two minima"),
    ],
)
def test_names_that_are_no_pair_are_refused_with_field_and_value(
    results: httpx.Client, between: str, message: str
) -> None:
    answer = results.get("verdict", params={"between": between})
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["path"], error["location"], error["value"]) == ("between", "query", between)
    assert message in error["message"]


def test_a_pair_without_its_line_is_not_available(bare: Server) -> None:
    landscape = many_minima(4)
    del landscape.lines["m1-m2"]
    id = landscape.send(bare.url).rpartition("/")[2]
    url = f"/api/experiments/{id}"
    answer = bare.client.get(f"{url}/verdict?between=m2,m1")
    assert answer.status_code == 404
    assert "there is no line from m2 to m1" in answer.json()["detail"]
    assert bare.client.get(f"{url}/matrix").json()["rise"]["value"][1][2] is None


def test_matrix_csv_is_among_the_files_of_three_minima_and_more(results: httpx.Client, landscape: Landscape) -> None:
    names = {file["name"]: file["size"] for file in results.get("files").json()["items"]}
    assert names["matrix.csv"] is None
    answer = results.get("files/matrix.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 5 * 4
    assert {row["from"] for row in rows} == set(landscape.minima)
