"""Experiments over HTTP: submit, list, read, cancel, retry, delete, and every way to be refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.servers import TINY, Server, serving
from tests.waiting import until
from valleyscope.app.experiments.spec import Spec


def test_a_spec_is_accepted_with_its_place(bare: Server) -> None:
    response = bare.client.post("/api/experiments", json=TINY)
    assert response.status_code == 202
    row = response.json()
    assert response.headers["location"] == f"/api/experiments/{row['id']}"
    assert row["state"] == "queued"
    assert Spec.model_validate(row["spec"]) == Spec.model_validate(TINY)
    assert bare.client.get(response.headers["location"]).json()["spec"] == row["spec"]
    assert row["minima"] == ["sgd", "altsdp"]


@pytest.mark.parametrize(
    "body",
    [
        {"recipe": "digits", "overrides": {"seed": 7, "planes": {"valley": {"resolution": 21}}}},
        {"recipe": "digits", "seed": 7, "planes": {"valley": {"resolution": 21}}},
    ],
)
def test_a_recipe_takes_overrides_under_their_name_or_beside_it(bare: Server, body: dict[str, Any]) -> None:
    row = bare.client.post("/api/experiments", json=body).json()
    spec = Spec.model_validate(row["spec"])
    assert spec.seed == 7
    assert spec.all_planes["valley"].resolution == 21
    assert spec.all_planes["basins"].resolution == 41
    assert spec.minimum("altsdp").sparsity == 0.6


def test_an_override_of_another_model_leaves_none_of_the_old_options(bare: Server) -> None:
    overrides: dict[str, Any] = {
        "model": {"name": "mlp", "hidden": [300, 100]},
        "minima": {"control": None},
        "curves": {"contrast": None},
        "planes": {"basins": None},
    }
    row = bare.client.post("/api/experiments", json={"recipe": "digits", "overrides": overrides}).json()
    assert row["spec"]["model"] == {"name": "mlp", "hidden": [300, 100]}
    assert row["minima"] == ["sgd", "altsdp"]


def test_a_network_is_accepted_as_a_plain_name_and_a_spec_is_shown_with_its_defaults(bare: Server) -> None:
    row = bare.client.post("/api/experiments", json=TINY | {"model": "mlp"}).json()
    assert row["spec"]["model"] == {"name": "mlp"}
    assert row["resolved"] == Spec.model_validate(TINY | {"model": {"name": "mlp"}}).resolved()
    assert row["active_seconds"] is None
    wrong = bare.client.post("/api/experiments", json=TINY | {"model": ["cnn"]}).json()
    assert (wrong["errors"][0]["path"], wrong["errors"][0]["value"]) == ("model", ["cnn"])
    assert "use a name such as 'cnn'" in wrong["errors"][0]["message"]


def test_an_estimate_is_for_the_workers_of_this_service(bare: Server) -> None:
    found = bare.client.post("/api/estimate", json={"recipe": "digits"}).json()["service"]
    assert found == {"workers": 0, "devices": {}, "hours": None}


def test_the_same_key_and_spec_give_the_same_experiment(bare: Server) -> None:
    first = bare.client.post("/api/experiments", json=TINY, headers={"Idempotency-Key": "k-1"})
    again = bare.client.post("/api/experiments", json=TINY, headers={"Idempotency-Key": "k-1"})
    assert first.status_code == again.status_code == 202
    assert first.json()["id"] == again.json()["id"]
    other = bare.client.post("/api/experiments", json={**TINY, "seed": 9}, headers={"Idempotency-Key": "k-1"})
    assert other.status_code == 422
    assert other.json()["errors"][0]["path"] == "Idempotency-Key"


def test_pages_follow_each_other_without_gap_or_repetition(bare: Server) -> None:
    made = [bare.submit(name=f"page {number}") for number in range(7)]
    seen, cursor = [], None
    while True:
        query = {"search": "page ", "limit": 3, **({"cursor": cursor} if cursor else {})}
        response = bare.client.get("/api/experiments", params=query)
        page = response.json()
        seen += [row["id"] for row in page["items"]]
        cursor = page["next"]
        assert ('rel="next"' in response.headers.get("link", "")) == (cursor is not None)
        if cursor is None:
            break
    assert seen == made[::-1]


@pytest.mark.parametrize("word", ["state", "status"])
def test_the_link_to_the_next_page_has_the_filters_of_this_one(bare: Server, word: str) -> None:
    name = f'linked "by {word}" > & more'
    bare.still(name=name)
    made = [bare.submit(name=name) for _ in range(3)]
    response = bare.client.get("/api/experiments", params={word: "queued", "search": name.upper(), "limit": 1})
    seen = [row["id"] for row in response.json()["items"]]
    while "next" in response.links:
        response = bare.client.get(response.links["next"]["url"])
        seen += [row["id"] for row in response.json()["items"]]
    assert seen == made[::-1]


@pytest.mark.parametrize("cursor", ["x", "__________8", "AAAAAAAAAAA", "-", "\x00", "a" * 101])
def test_a_cursor_of_nobody_is_refused_or_harmless(bare: Server, cursor: str) -> None:
    response = bare.client.get("/api/experiments", params={"cursor": cursor})
    assert response.status_code in (200, 422), response.text


def test_lists_are_filtered_by_state_and_name(bare: Server) -> None:
    id = bare.still(name="needle in a haystack")
    found = bare.client.get("/api/experiments", params={"state": "cancelled", "search": "NEEDLE"}).json()["items"]
    assert [row["id"] for row in found] == [id]
    assert bare.client.get("/api/experiments", params={"state": "done", "search": "needle"}).json()["items"] == []
    assert bare.client.get("/api/experiments", params={"search": "100%_\\"}).json()["items"] == []


def test_status_is_another_name_of_state(bare: Server) -> None:
    id = bare.still(name="a synonym")

    def found(**query: str) -> list[str]:
        response = bare.client.get("/api/experiments", params={"search": "a synonym", **query})
        return [row["id"] for row in response.json()["items"]]

    assert found(status="cancelled") == found(status="cancelled", state="cancelled") == [id]
    assert found(status="done") == []
    for query in ({"status": "over"}, {"status": "done", "state": "cancelled"}):
        refused = bare.client.get("/api/experiments", params=query)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["path"] == "status"


def test_a_life_from_queue_to_deletion(bare: Server) -> None:
    id = bare.submit()
    path = f"/api/experiments/{id}"
    assert bare.client.delete(path).status_code == 409
    assert bare.client.post(f"{path}/retry").status_code == 409
    assert bare.client.post(f"{path}/cancel").status_code == 202
    assert bare.wait(id)["state"] == "cancelled"
    assert bare.client.post(f"{path}/cancel").json()["code"] == "wrong-state"
    assert bare.client.post(f"{path}/retry").json()["run"] == 2
    bare.client.post(f"{path}/cancel")
    bare.wait(id)
    bare.directory(id).mkdir(exist_ok=True)
    (bare.directory(id) / "sgd.safetensors").write_bytes(b"weights")
    assert bare.client.delete(path).status_code == 204
    assert bare.client.get(path).json()["code"] == "unknown"
    assert bare.client.delete(path).status_code == 404
    assert bare.client.post(f"{path}/restore").json()["state"] == "cancelled"
    assert (bare.directory(id) / "sgd.safetensors").read_bytes() == b"weights"
    assert bare.client.delete(path).status_code == 204
    assert bare.client.delete(path, params={"permanent": True}).status_code == 204
    assert not bare.directory(id).exists()
    assert bare.client.post(f"{path}/restore").json()["code"] == "unknown"
    assert bare.client.get(path).json()["code"] == "unknown"


@pytest.mark.parametrize("id", ["0000000000000000", "nobody", "..%2f..%2fetc", "%00", "x" * 65])
def test_unknown_experiments_are_not_found(bare: Server, id: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/surface"), ("GET", "/events")):
        response = bare.client.request(method, f"/api/experiments/{id}{path}")
        assert response.status_code in (404, 422), response.text
        assert response.headers["content-type"] == "application/problem+json"


COMPARED: dict[str, Any] = {"minima": None, "curves": {}, "planes": {}}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"minima": {"a": {"lr": -1}}}, "minima.a.lr"),
        ({"minima": {"a": {"schedule": {"kind": "halving", "every": 0}}}}, "minima.a.schedule.every"),
        ({"minima": {"a": {"schedule": {"kind": "cosine"}}}}, "minima.a.schedule"),
        ({"minima": {}}, "minima"),
        ({"minima": None}, "minima"),
        ({"minima": {"a/b": {}}}, "minima.a/b"),
        ({"colour": 1}, "colour"),
        ({"training": {"colour": 1}}, "training.colour"),
        ({"curves": {"v": {"from": "sgd", "to": "x"}}}, "curves.v.to"),
        ({"planes": {"p": {"through": ["sgd", "altsdp", "v.bend"]}}}, "planes.p.through.2"),
        ({"planes": {"p": {"around": "sgd", "resolution": 402}}}, "planes.p.resolution"),
        ({"planes": {"p": {"trajectory": "sgd"}}}, "planes.p.trajectory"),
        ({"verdict": {"control": "nobody"}}, "verdict.control"),
        ({"model": {"name": "alexnet"}}, "model.name"),
        ({"model": {"name": "cnn", "width": 3}}, "model.width"),
        ({"model": {"name": "cnn", "hidden": "wide"}}, "model.hidden"),
        ({"model": {"name": "cnn", "hidden": 10**9}}, "model.hidden"),
        ({"model": {"name": "vgg16"}}, "model.name"),
        ({"model": {"name": "os:system"}}, "model.name"),
        ({"dataset": "npz:/etc/passwd"}, "dataset"),
        ({"dataset": "os:listdir"}, "dataset"),
        ({"dataset": "imagenet"}, "dataset"),
        ({**COMPARED, "methods": ["ns"], "sparsities": [0.5]}, "minima.ns_50.method"),
        ({**COMPARED, "methods": ["hesso"], "macs": [0.001]}, "minima.hesso_0.macs"),
        ({**COMPARED, "methods": ["AMC"], "sparsities": [0.5]}, "methods.0"),
        ({"training": {"epochs": 2001}}, "training.epochs"),
        ({"minima": {"a": {"checkpoint": "../../etc/passwd"}}, "curves": {}, "planes": {}}, "minima.a.checkpoint"),
        ({"name": "a\u0000b"}, "name"),
        (
            {
                "model": {"name": "cnn", "channels": [4, 8], "hidden": 16},
                "minima": {"a": {"method": "one-shot", "sparsity": 0.92}},
                "curves": {},
                "planes": {},
            },
            "minima.a.sparsity",
        ),
        ({"force": "perhaps"}, "force"),
        ({"priority": -1}, "priority"),
    ],
)
def test_a_bad_spec_is_refused_at_its_field(bare: Server, change: dict[str, Any], path: str) -> None:
    response = bare.client.post("/api/experiments", json={**TINY, **change})
    problem = response.json()
    assert response.status_code == 422, problem
    assert problem["code"] == "invalid"
    assert path in [error["path"] for error in problem["errors"]], problem["errors"]
    assert all(error["message"] for error in problem["errors"])


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"priority": -5}, "priority"),
        ({"priority": "soon"}, "priority"),
        ({"force": "maybe"}, "force"),
        ({"overrides": []}, "overrides"),
        ({"recipe": 5}, "recipe"),
        ({"recipe": "cake"}, "recipe"),
        ({"colour": 1}, "colour"),
        ({"query": 1}, "query"),
        ({"[recipe]": 1}, "[recipe]"),
        ({"seed": -1}, "seed"),
        ({"overrides": {"minima": {"sgd": {"lr": -1}}}}, "minima.sgd.lr"),
        ({"minima": {"sgd": {"schedule": {"kind": "halving", "every": 0}}}}, "minima.sgd.schedule.every"),
    ],
)
def test_a_bad_recipe_is_refused_at_its_field(bare: Server, change: dict[str, Any], path: str) -> None:
    for route in ("/api/experiments", "/api/estimate"):
        response = bare.client.post(route, json={"recipe": "digits", **change})
        assert response.status_code == 422, response.text
        places = [(error["location"], error["path"]) for error in response.json()["errors"]]
        assert places == [("body", path)]


@pytest.mark.parametrize("body", ["[]", "3", '"recipe"', '["recipe"]'])
def test_a_body_that_is_no_object_is_refused_as_a_whole(bare: Server, body: str) -> None:
    response = bare.client.post("/api/experiments", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422
    assert [error["path"] for error in response.json()["errors"]] == ["body"]


def test_a_network_that_cannot_be_built_is_refused(bare: Server) -> None:
    response = bare.client.post("/api/experiments", json={**TINY, "model": {"name": "cnn", "kernel": 4}})
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "model"
    assert "odd" in response.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {"content-type": "application/json"}, 400, "bad-json"),
        (b"[" * 20_000, {"content-type": "application/json"}, 400, "bad-request"),
        (b"\xff\xff", {"content-type": "application/json"}, 400, "bad-request"),
        (b"[]", {"content-type": "application/json"}, 422, "invalid"),
        (b"", {"content-type": "application/json"}, 422, "invalid"),
        (b"name=tiny", {"content-type": "application/x-www-form-urlencoded"}, 415, "not-json"),
        (b'{"recipe": "digits"}', {}, 415, "not-json"),
        (b'{"recipe": "' + b"x" * 2**20 + b'"}', {"content-type": "application/json"}, 413, "too-large"),
        (b'{"name": "\\ud800", "minima": {"a": {}}}', {"content-type": "application/json"}, 422, "invalid"),
        (b'{"seed": NaN, "minima": {"a": {"lr": Infinity}}}', {"content-type": "application/json"}, 422, "invalid"),
        (b'{"seed": 1e999, "minima": {"a": {}}}', {"content-type": "application/json"}, 422, "invalid"),
        (b'{"seed": ' + b"9" * 5000 + b"}", {"content-type": "application/json"}, 400, "bad-request"),
    ],
)
def test_what_is_no_spec_at_all_is_refused_in_the_same_form(
    bare: Server, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    response = bare.client.post("/api/experiments", content=body, headers=headers)
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_a_body_without_announced_length_is_cut_off(bare: Server) -> None:
    response = bare.client.post(
        "/api/experiments",
        content=(b"x" * 65536 for _ in range(40)),
        headers={"content-type": "application/json"},
    )
    assert response.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/api", 404), ("PUT", "/api/experiments", 405), ("POST", "/healthz", 405)],
)
def test_wrong_paths_and_methods_are_problems(bare: Server, method: str, path: str, status: int) -> None:
    response = bare.client.request(method, path)
    assert response.status_code == status
    assert response.json()["instance"] == path
    assert (status == 405) == ("allow" in response.headers)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/experiments", "GET, HEAD, POST"),
        ("/api/experiments/0000000000000000", "DELETE, GET, HEAD, PATCH"),
        ("/api/experiments/0000000000000000/retry", "POST"),
        ("/api/checkpoints", "GET, HEAD, POST"),
        ("/healthz", "GET, HEAD"),
        ("/", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_all_right_ones(bare: Server, path: str, allowed: str) -> None:
    response = bare.client.put(path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_head_is_get_without_a_body(bare: Server, encoding: str) -> None:
    id = bare.charted()
    own = f"/api/experiments/{id}"
    results = ("", "/surface", "/minima", "/files/landscape.h5", "/files/surface.csv", "/files/nothing", "/events")
    paths = ["/", "/healthz", "/api/openapi.json", "/api/experiments?limit=2", "/api/experiments?limit=x", "/nothing"]
    for path in (*paths, *(own + result for result in results)):
        headers = {"accept-encoding": encoding}
        whole, head = (bare.client.request(method, path, headers=headers) for method in ("GET", "HEAD"))
        assert head.content == b"", path
        assert head.status_code == whole.status_code, path
        assert _lasting(head) == _lasting(whole), path
    assert bare.client.head("/api/estimate").status_code == 405


def test_head_of_a_stream_without_end_is_answered_at_once(bare: Server) -> None:
    id = bare.submit()
    before = _open_streams(bare)
    head = bare.client.head(f"/api/experiments/{id}/events", timeout=60)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")
    until(lambda: _open_streams(bare) <= before)
    noted = 'method="HEAD",route="/api/experiments/{id}/events",status="200"'
    assert noted in bare.client.get("/metrics").text


def _open_streams(server: Server) -> float:
    lines = [line.split() for line in server.client.get("/metrics").text.splitlines()]
    names = ("valley_event_streams", "valley_watchers")
    [streams, by_old_name] = [float(line[1]) for line in lines if line[0] in names]
    assert streams == by_old_name
    return streams


def _lasting(response: httpx.Response) -> dict[str, str]:
    """Headers that say what is there; how the bytes would come is of no interest where there are none."""
    passing = ("date", "connection", "transfer-encoding")
    return {name: value for name, value in response.headers.items() if name not in passing}


def test_what_costs_too_much_must_be_forced(bare: Server) -> None:
    refused = bare.client.post("/api/experiments", json={"recipe": "wrn28x10-cifar10"})
    assert refused.status_code == 422
    assert refused.json()["code"] == "too-expensive"
    assert refused.json()["estimate"]["gpu_hours"] > 24
    forced = bare.client.post("/api/experiments", json={"recipe": "wrn28x10-cifar10", "force": True})
    assert forced.status_code == 202
    bare.client.post(f"/api/experiments/{forced.json()['id']}/cancel")


def test_an_estimate_names_cost_and_reach(bare: Server) -> None:
    target = {"minima": {"altsdp": {"target": 1.6}}}
    found = bare.client.post("/api/estimate", json={"recipe": "digits", "overrides": target}).json()
    assert found["allowed"]
    assert found["parameters"] == 22_602
    assert found["gpu_hours"] == pytest.approx(sum(stage["gpu_hours"] for stage in found["stages"].values()))
    reach = found["minima"]["altsdp"]
    assert reach["reach"] == pytest.approx(1.6, rel=0.05)
    assert reach["prunes"]
    assert reach["smallest_norm"] < reach["median_norm"] < reach["reach"]
    chosen_on_the_way = bare.client.post("/api/estimate", json={"recipe": "digits"}).json()
    assert chosen_on_the_way["minima"] == {}


def test_a_full_queue_says_when_to_come_back(tmp_path: Path) -> None:
    with serving(tmp_path / "home", environment={"VALLEY_MAX_QUEUE": "2"}) as server:
        key = {"Idempotency-Key": "once"}
        first = server.client.post("/api/experiments", json=TINY, headers=key).json()["id"]
        second = server.submit()
        full = server.client.post("/api/experiments", json=TINY)
        assert (full.status_code, full.json()["code"]) == (429, "queue-full")
        assert int(full.headers["retry-after"]) > 0
        assert server.client.post("/api/experiments", json=TINY, headers=key).json()["id"] == first
        server.client.post(f"/api/experiments/{second}/cancel")
        server.wait(second)
        assert server.submit()
        again = server.client.post(f"/api/experiments/{second}/retry")
        assert (again.status_code, again.json()["code"]) == (429, "queue-full")
        assert int(again.headers["retry-after"]) > 0
        assert server.client.get(f"/api/experiments/{second}").json()["state"] == "cancelled"
        assert server.client.post(f"/api/experiments/{first}/retry").status_code == 409
