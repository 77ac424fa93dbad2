"""The curves of forks over HTTP."""

from __future__ import annotations

from tests.app.servers import Server
from tests.landscape.fork_cases import forked
from valleyscope.landscape.analysis.fork_curves import fork_curves


def test_curves_and_figure_of_forks_are_served(bare: Server) -> None:
    landscape = forked()
    address = f"/api/experiments/{landscape.send(bare.url).rpartition('/')[2]}"
    body = bare.client.get(f"{address}/forks").json()
    curves = fork_curves(landscape)
    assert curves is not None
    assert body.pop("experiment")
    assert body == curves.to_json()
    figure = bare.client.get(f"{address}/figure", params={"kind": "forks"}).json()
    assert {trace["name"] for trace in figure["data"] if "name" in trace} == {"sgd", "altsdp"}


def test_wrong_forks_are_refused_at_their_field(bare: Server) -> None:
    minima = {"a": {}, "b": {"fork": {"from": "a", "epoch": 500}}}
    answer = bare.client.post("/api/experiments", json={"minima": minima, "training": {"epochs": 1000}})
    assert answer.status_code == 202
    answer = bare.client.post("/api/experiments", json={"minima": minima | {"b": {"fork": {"from": "c", "epoch": 1}}}})
    assert answer.status_code == 422
    assert any("'c' is not a minimum" in str(error) for error in answer.json()["errors"])
