"""What guards a server: headers, host, origin, key, limits, and what it never writes down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.app.servers import TINY, Server, serving
from tests.waiting import until

KEY = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that other machines could reach, so it has a key."""
    environment = {"VALLEY_API_KEY": KEY, "VALLEY_KEY_FAILURES": "5", "VALLEY_DATABASE": ""}
    home = tmp_path_factory.mktemp("guarded") / "home"
    with serving(home, "--host", "0.0.0.0", environment=environment) as server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        server.client.base_url = httpx.URL(server.url)
        yield server


@pytest.mark.parametrize("path", ["/healthz", "/api/experiments", "/nothing", "/api/recipes", "/metrics"])
def test_every_answer_has_the_security_headers(bare: Server, path: str) -> None:
    headers = bare.client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["object-src"] == "'none'"
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert "unsafe-inline" not in policy["script-src"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[", "a b", ""])
def test_a_name_that_is_not_ours_is_refused(bare: Server, host: str) -> None:
    """A page that re-binds its own name to 127.0.0.1 makes the browser send that name."""
    response = bare.client.get("/api/experiments", headers={"host": host})
    assert response.status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:8360"])
def test_names_of_this_machine_are_ours(bare: Server, host: str) -> None:
    assert bare.client.get("/healthz", headers={"host": host}).status_code == 200


def test_a_page_of_another_site_cannot_change_anything(bare: Server) -> None:
    id = bare.submit()
    path = f"/api/experiments/{id}/cancel"
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        response = bare.client.post(path, headers=headers)
        assert (response.status_code, response.json()["code"]) == (403, "foreign-origin"), headers
    own = {"origin": bare.url, "sec-fetch-site": "same-origin"}
    assert bare.client.post(path, headers=own).status_code == 202
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in bare.client.options("/api/experiments", headers=preflight).headers


def test_beyond_loopback_a_key_is_required_at_the_start(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "valleyscope.app.cli", "serve", "--home", tmp_path, "--host", "0.0.0.0", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 2
    assert "VALLEY_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "valley.db").exists()


def test_the_key_opens_and_nothing_else_does(guarded: Server) -> None:
    assert guarded.client.get("/healthz").status_code == 200
    assert guarded.client.get("/readyz").status_code == 200
    for path in ("/api/experiments", "/api/openapi.json", "/api/nothing", "/metrics", "/api/checkpoints"):
        refused = guarded.client.get(path)
        assert (refused.status_code, refused.json()["code"]) == (401, "key-required")
        assert "www-authenticate" in refused.headers
        assert guarded.client.get(path, headers={"X-API-Key": KEY}).status_code in (200, 404)
    assert guarded.client.get("/api/experiments", params={"X-API-Key": KEY, "key": KEY}).status_code == 401
    assert guarded.client.post("/api/experiments", json=TINY).status_code == 401
    assert guarded.client.post("/api/experiments", json=TINY, headers={"X-API-Key": KEY}).status_code == 202


def test_the_key_is_written_down_nowhere(guarded: Server) -> None:
    guarded.client.get("/api/experiments", headers={"X-API-Key": KEY}, params={"search": KEY})
    guarded.client.get("/api/experiments", headers={"X-API-Key": f"{KEY}-almost"})
    assert KEY not in guarded.log
    for path in _files(guarded.home):
        with suppress(FileNotFoundError):  # gone since: an experiment waits here, and its files are replaced
            assert KEY.encode() not in path.read_bytes(), path


def _files(folder: Path) -> list[Path]:
    """All files under a folder; unlike `rglob` this does not mind that a folder goes meanwhile."""
    return [Path(place) / name for place, _, names in os.walk(folder) for name in names]


def test_guessing_has_to_wait(guarded: Server) -> None:
    """Last of the guarded ones: this address is locked out for a minute."""
    answers = [guarded.client.get("/api/queue", headers={"X-API-Key": f"guess {n}"}) for n in range(7)]
    assert {answer.status_code for answer in answers[:3]} == {401}
    locked = answers[-1]
    assert (locked.status_code, locked.json()["code"]) == (429, "too-many-keys")
    assert 0 < int(locked.headers["retry-after"]) <= 61
    assert guarded.client.get("/healthz").status_code == 200
    assert guarded.client.get("/api/queue").json()["code"] == "key-required"
    for _ in range(3):
        assert guarded.client.get("/api/queue", headers={"X-API-Key": KEY}).status_code == 200, "who has it is let in"
        again = guarded.client.get("/api/queue", headers={"X-API-Key": "guess"})
        assert (again.status_code, again.json()["code"]) == (429, "too-many-keys")


def test_an_unexpected_error_has_an_id_that_is_in_the_log_and_no_traceback(bare: Server) -> None:
    id = bare.charted()
    report = bare.directory(id) / "report.html"
    report.mkdir()  # a folder where a file belongs: an unexpected error
    response = bare.client.get(f"/api/experiments/{id}/files/report.html")
    problem = response.json()
    assert (response.status_code, problem["code"]) == (500, "unexpected")
    assert "Traceback" not in response.text
    assert "IsADirectory" not in response.text
    logged = [entry for entry in map(json.loads, bare.log.splitlines()) if entry.get("error") == problem["id"]]
    assert "IsADirectoryError" in logged[0]["traceback"]
    assert bare.client.get("/healthz").status_code == 200


def test_logs_are_json_with_the_ids_of_experiments_and_workers(lively: Server, done: str) -> None:
    entries = [json.loads(line) for line in lively.log.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(entries[0])
    assert any(entry.get("experiment") == done and entry.get("worker") for entry in entries)
    paths = [entry["path"] for entry in entries if entry["logger"] == "valleyscope.app.access"]
    assert f"/api/experiments/{done}" in paths


def test_metrics_tell_of_queue_workers_tasks_points_and_latency(lively: Server, done: str) -> None:
    lively.client.get(f"/api/experiments/{done}")

    def measured() -> dict[str, str]:
        lines = lively.client.get("/metrics").text.splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    # Points are counted as their events are read, which may be a moment after the end.
    until(lambda: float(measured()["valley_grid_points_total"]) >= 81)
    values = measured()
    assert float(values["valley_workers_alive"]) == 1
    assert float(values["valley_queue_tasks"]) >= 0
    assert float(values['valley_task_seconds_count{kind="train"}']) >= 2
    assert float(values['valley_experiments{state="done"}']) >= 1
    route = 'method="GET",route="/api/experiments/{id}",status="200"'
    assert float(values[f"valley_request_seconds_count{{{route}}}"]) >= 1


def test_readiness_fails_where_the_home_cannot_be_written(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        assert server.client.get("/readyz").json()["status"] == "ready"
        moved = server.home.rename(tmp_path / "elsewhere")
        response = server.client.get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "not-ready")
        assert server.client.get("/healthz").status_code == 200
        moved.rename(server.home)
        assert server.client.get("/readyz").status_code == 200
