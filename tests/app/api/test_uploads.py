"""Uploads over HTTP: good checkpoints are taken, bad ones refused with bounded memory and nothing left on the disk."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import socket
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from tests.app.servers import TINY, Server, serving
from tests.waiting import until
from valleyscope.app.storage.safetensors_check import BadUpload, Entry, parse_header

MODEL = {"name": "cnn", "channels": [4, 8], "hidden": 16}
QUERY = {"model": json.dumps(MODEL), "dataset": "digits"}
SHAPES = {
    "conv1.weight": (4, 1, 3, 3),
    "conv1.bias": (4,),
    "conv2.weight": (8, 4, 3, 3),
    "conv2.bias": (8,),
    "linear1.weight": (16, 32),
    "linear1.bias": (16,),
    "linear2.weight": (10, 16),
    "linear2.bias": (10,),
}
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that takes uploads of 8 MiB at most."""
    home = tmp_path_factory.mktemp("uploads") / "home"
    with serving(home, environment={"VALLEY_MAX_UPLOAD": str(8 * MEBIBYTE)}) as server:
        yield server


def weights(seed: int = 0, **changes: Any) -> dict[str, Any]:
    numbers = np.random.default_rng(seed)
    tensors = {name: numbers.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    return {name: tensor for name, tensor in (tensors | changes).items() if tensor is not None}


def file_of(header: dict[str, Any] | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with the given header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def left_behind(home: Path) -> list[Path]:
    return [path for folder in ("uploads", "checkpoints") for path in (home / folder).glob("*")]


def send(server: Server, body: bytes | Iterator[bytes], **query: str) -> httpx.Response:
    return server.client.post(
        "/api/checkpoints", params=query or QUERY, content=body, headers={"content-type": "application/octet-stream"}
    )


def test_a_checkpoint_is_taken_listed_used_and_deleted(server: Server) -> None:
    body = save(weights())
    response = send(server, body, **QUERY, name="mine")
    assert response.status_code == 201, response.text
    row = response.json()
    assert response.headers["location"] == f"/api/checkpoints/{row['id']}"
    assert (row["name"], row["model"], row["dataset"], row["size"]) == ("mine", MODEL, "digits", len(body))
    assert row in server.client.get("/api/checkpoints").json()["items"]
    assert (server.home / "checkpoints" / f"{row['id']}.safetensors").read_bytes() == body

    other = send(server, save(weights(1))).json()["id"]
    spec = {
        "model": MODEL,
        "minima": {"theirs": {"checkpoint": row["id"]}, "mine": {"checkpoint": other}},
        "curves": {},
        "planes": {"around": {"around": "theirs", "resolution": 5}},
    }
    id = server.submit(spec)
    assert server.client.delete(f"/api/checkpoints/{other}").status_code == 409
    wrong = server.client.post("/api/experiments", json={**spec, "model": {"name": "cnn"}})
    assert {error["path"] for error in wrong.json()["errors"]} == {"minima.theirs.checkpoint", "minima.mine.checkpoint"}
    server.client.post(f"/api/experiments/{id}/cancel")
    server.wait(id)
    for identifier in (row["id"], other):
        assert server.client.delete(f"/api/checkpoints/{identifier}").status_code == 204
        assert server.client.get(f"/api/checkpoints/{identifier}").status_code == 404
    assert left_behind(server.home) == []


def test_an_upload_on_its_way_survives_the_start_of_another_server_on_the_same_home(
    server: Server, tmp_path: Path
) -> None:
    body = save(weights(2))
    (tmp_path / "home").symlink_to(server.home)

    def slowly() -> Iterator[bytes]:
        yield body[:2000]
        with serving(tmp_path / "home"):
            yield body[2000:]

    response = send(server, slowly())
    assert response.status_code == 201, response.text
    id = response.json()["id"]
    assert (server.home / "checkpoints" / f"{id}.safetensors").read_bytes() == body
    assert server.client.delete(f"/api/checkpoints/{id}").status_code == 204


def test_a_form_may_have_its_fields_in_any_order(server: Server) -> None:
    body = save(weights(2))
    for fields in ({"file": body, "model": QUERY["model"]}, {"model": QUERY["model"], "file": body}):
        parts: list[tuple[str, Any]] = [
            (name, ("weights.safetensors", value) if isinstance(value, bytes) else (None, value))
            for name, value in {**fields, "dataset": "digits"}.items()
        ]
        response = server.client.post("/api/checkpoints", files=parts)
        assert response.status_code == 201, response.text
        assert server.client.delete(response.headers["location"]).status_code == 204


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_precisions_are_taken(server: Server, dtype: type) -> None:
    body = save({name: tensor.astype(dtype) for name, tensor in weights().items()})
    response = send(server, body)
    assert response.status_code == 201
    server.client.delete(response.headers["location"])


def test_an_uploaded_pair_is_compared_without_training(lively: Server) -> None:
    tensors = [weights(seed) for seed in (1, 2)]
    ids = [send(lively, save(tensor)).json()["id"] for tensor in tensors]
    spec = {
        **TINY,
        "name": "uploads",
        "model": MODEL,
        "minima": {"a": {"checkpoint": ids[0]}, "b": {"checkpoint": ids[1]}},
        "curves": {},
        "planes": {"around": {"around": "a", "resolution": 5}},
    }
    id = lively.submit(spec)
    row = lively.wait(id)
    assert row["state"] == "done", row["error"]
    for name, tensor in zip("ab", tensors, strict=True):
        kept = load(lively.client.get(f"/api/experiments/{id}/files/{name}.safetensors").content)
        assert all(np.array_equal(kept[key], tensor[key]) for key in tensor)


def test_uploaded_regressions_are_measured_in_their_own_loss(lively: Server) -> None:
    numbers = np.random.default_rng(0)
    x = numbers.normal(size=(60, 4)).astype(np.float32)
    y = (x[:, :2] - x[:, 2:]).astype(np.float32)
    path = lively.home.parent / "numbers.npz"
    np.savez(path, x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    shapes = {"linear1.weight": (5, 4), "linear1.bias": (5,), "linear2.weight": (2, 5), "linear2.bias": (2,)}
    networks = [
        {name: numbers.normal(size=shape).astype(np.float32) for name, shape in shapes.items()} for _ in range(2)
    ]
    source = {"model": json.dumps({"name": "mlp", "hidden": [5]}), "dataset": f"npz:{path}"}
    refused = send(lively, save(networks[0]), **source)
    assert "one label for each sample" in refused.json()["errors"][0]["message"]
    unknown = send(lively, save(networks[0]), **source, loss="hinge")
    assert unknown.json()["errors"][0]["path"] == "loss"
    rows = [send(lively, save(network), **source, loss="mse").json() for network in networks]
    assert [row["loss"] for row in rows] == ["mse", "mse"]
    spec = {
        "name": "numbers",
        "model": json.loads(source["model"]),
        "dataset": source["dataset"],
        "loss": "mse",
        "minima": {"a": {"checkpoint": rows[0]["id"]}, "b": {"checkpoint": rows[1]["id"]}},
        "curves": {},
        "planes": {},
        "points": 3,
        "verdict": {"resamples": 100},
    }
    wrong = lively.client.post("/api/experiments", json={**spec, "loss": "l1"})
    assert "with loss mse, the spec is for" in wrong.json()["errors"][0]["message"]
    id = lively.submit(spec)
    row = lively.wait(id)
    assert row["state"] == "done", row["error"]
    final = lively.client.get(f"/api/experiments/{id}/minima").json()["minima"]["a"]["final"]
    normal = (x[40:] - x[:40].mean(0)) / x[:40].std(0)
    hidden = np.maximum(normal @ networks[0]["linear1.weight"].T + networks[0]["linear1.bias"], 0)
    output = hidden @ networks[0]["linear2.weight"].T + networks[0]["linear2.bias"]
    assert final["test_loss"] == pytest.approx(((output - y[40:]) ** 2).mean(), rel=1e-5)


def zip_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.pkl", b"\0" * 6 * MEBIBYTE)
    return buffer.getvalue()


def claim(shape: list[int], size: int) -> dict[str, Any]:
    return {"conv1.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}


GOOD = save(weights())
HEADER = json.loads(GOOD[8 : 8 + int.from_bytes(GOOD[:8], "little")])
NAN = weights(**{"linear2.bias": np.array([0.0] * 9 + [np.nan], np.float32)})
OVERFLOW = weights(**{"conv1.bias": np.array([np.inf, 0, 0, 0], np.float32)})
BAD = {
    "empty": (b"", "header"),
    "truncated in the length": (GOOD[:5], "header"),
    "truncated in the header": (GOOD[:60], "header"),
    "truncated in the tensors": (GOOD[:-1], "truncated"),
    "with bytes after its end": (GOOD + b"x", "last tensor"),
    "with a missing tensor": (save(weights(**{"conv2.bias": None})), "conv2.bias is missing"),
    "with another tensor": (save(weights(extra=np.zeros(3, np.float32))), "extra is not part"),
    "with a wrong shape": (save(weights(**{"conv1.bias": np.zeros(5, np.float32)})), "conv1.bias has shape [5]"),
    "with whole numbers": (save(weights(**{"conv1.bias": np.zeros(4, np.int64)})), "conv1.bias has type I64"),
    "with NaN": (save(NAN), "linear2.bias"),
    "with infinity": (save(OVERFLOW), "conv1.bias"),
    "a renamed pickle": (pickle.dumps({name: tensor.tolist() for name, tensor in weights().items()}), "pickle"),
    "a zip bomb": (zip_bomb(), "zip archive"),
    "a gzip bomb": (gzip.compress(b"\0" * 6 * MEBIBYTE), "gzip"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 100, "safetensors"),
    "a header of 8 exabytes": (file_of(b"{}", length=2**63), "safetensors"),
    "a header of 1 GiB": (file_of(b"{}", length=2**30), "safetensors"),
    "a header that is not JSON": (file_of(b"{" + b" " * 100), "not JSON"),
    "a header that is a list": (file_of(b"[]      "), "is not a JSON object"),
    "a deep header": (file_of(b"[" * 100_000), "not JSON"),
    "a name twice": (file_of(b'{"a": 1, "a": 2}'), "not JSON"),
    "metadata that is not text": (file_of({"__metadata__": {"a": [1]}}), "__metadata__"),
    "a shape that overflows": (file_of(claim([2**40, 2**40], 0)), "conv1.weight"),
    "a negative shape": (file_of(claim([-4], 16)), "shape"),
    "an overlap": (
        file_of(
            {
                "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
                "b": {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]},
            },
            b"\0" * 24,
        ),
        "begins at byte 8",
    ),
    "a gap": (file_of(claim([4], 16) | {"b": {"dtype": "F32", "shape": [1], "data_offsets": [20, 24]}}), "begins"),
    "a strange type": (file_of({"a": {"dtype": "PICKLE", "shape": [1], "data_offsets": [0, 1]}}), "PICKLE"),
    "a type in a list": (file_of({"a": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}}), "not a string"),
    "a type that is an object": (file_of({"a": {"dtype": {}, "shape": [1], "data_offsets": [0, 4]}}), "not a string"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("form", [False, True])
def test_a_bad_file_is_refused_and_leaves_nothing(server: Server, kind: str, form: bool) -> None:
    body, words = BAD[kind]
    if form:
        response = server.client.post("/api/checkpoints", data=QUERY, files={"file": ("weights.safetensors", body)})
    else:
        response = send(server, body)
    assert response.status_code == 422, response.text
    problem = response.json()
    assert problem["code"] == "bad-checkpoint"
    assert words in problem["detail"], problem["detail"]
    assert problem["errors"][0]["path"] == "file"
    assert left_behind(server.home) == []


def test_an_oversized_file_is_cut_off_and_memory_is_bounded(server: Server) -> None:
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    shape = [64 * MEBIBYTE]
    start = file_of(claim(shape, 4 * shape[0]))

    def endless() -> Iterator[bytes]:
        yield start
        for _ in range(256):
            yield b"\0" * MEBIBYTE

    try:
        status = send(server, endless()).status_code
    except (httpx.NetworkError, httpx.RemoteProtocolError):
        status = 413  # the server has closed the connection while we were still sending
    assert status == 413
    assert send(server, file_of(claim([2**60], 2**62))).status_code == 413
    with sent(server, "Content-Length: 1099511627776\r\n", b"x") as connection:
        assert b"413" in connection.recv(100)
    assert process.memory_info().rss - before < 64 * MEBIBYTE
    assert left_behind(server.home) == []


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"dataset": "digits"}, "model"),
        ({"model": "cnn"}, "dataset"),
        ({"model": "alexnet", "dataset": "digits"}, "model.name"),
        ({"model": "os:system", "dataset": "digits"}, "model.name"),
        ({"model": '{"name": "cnn", "hidden": -1}', "dataset": "digits"}, "model.hidden"),
        ({"model": '{"name": ', "dataset": "digits"}, "model"),
        ({"model": "cnn", "dataset": "npz:/etc/passwd"}, "dataset"),
        ({"model": "lenet", "dataset": "digits"}, "model.name"),
        ({"model": "cnn", "dataset": "digits", "name": "a\nb"}, "name"),
    ],
)
def test_a_bad_description_is_refused_at_its_field(server: Server, query: dict[str, str], path: str) -> None:
    response = send(server, GOOD, **query)
    assert response.status_code == 422
    assert path in [error["path"] for error in response.json()["errors"]], response.text
    assert left_behind(server.home) == []


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "application/json"}, b"{}", 415),
        ({"content-type": "application/octet-stream", "content-encoding": "gzip"}, gzip.compress(GOOD), 415),
        ({"content-type": "multipart/form-data"}, b"x", 400),
        ({"content-type": "multipart/form-data; boundary=b"}, b"no boundary", 400),
        ({"content-type": "multipart/form-data; boundary=b"}, b"--b\r\n" + b"x" * 10_000, 400),
        ({"content-type": f"multipart/form-data; boundary={'b' * 500}"}, b"x", 400),
        ({"content-type": "multipart/form-data; boundary=b"}, b"--b--\r\n", 422),
    ],
)
def test_what_is_no_file_is_refused(server: Server, headers: dict[str, str], body: bytes, status: int) -> None:
    response = server.client.post("/api/checkpoints", params=QUERY, content=body, headers=headers)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert left_behind(server.home) == []


@contextmanager
def sent(server: Server, headers: str, body: bytes) -> Iterator[socket.socket]:
    """A request as no proper client would make it, on a connection that stands while the block is open."""
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST /api/checkpoints?model=cnn&dataset=digits HTTP/1.1\r\nHost: {host}\r\n{headers}"
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + body)
        yield connection


def test_a_client_that_goes_away_leaves_nothing(server: Server) -> None:
    with sent(server, "Content-Length: 100000\r\n", GOOD[:500]):
        until(lambda: len(left_behind(server.home)) == 1)
    until(lambda: left_behind(server.home) == [])
    assert server.client.get("/healthz").status_code == 200


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes_as_a_header_are_parsed_or_refused(text: bytes) -> None:
    try:
        entries = parse_header(text)
    except BadUpload:
        return
    assert all(isinstance(entry, Entry) for entry in entries.values())


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
headers = st.dictionaries(
    st.sampled_from([*SHAPES, "__metadata__"]),
    anything
    | st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "F64", "I64", "BF16", "F8"]) | anything,
            "shape": st.lists(st.integers(-2, 2**64) | st.integers(0, 4) | anything, max_size=9) | anything,
            "data_offsets": st.lists(st.integers(-1, 2**65) | st.integers(0, 64) | anything, max_size=3) | anything,
        }
    ),
    max_size=4,
)


@given(headers)
@example({"a": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}})
@example({"a": {"dtype": {}, "shape": [1], "data_offsets": [0, 4]}})
@example({"a": {"dtype": "U8", "shape": [True], "data_offsets": [False, True]}})
@example({"a": {"dtype": "U8", "shape": [[1]], "data_offsets": {"0": 1}}})
@example({"a": {"dtype": "F64", "shape": [2**62] * 8, "data_offsets": [0, 2**62]}})
@settings(max_examples=150, deadline=None)
def test_a_header_that_passes_describes_contiguous_tensors(header: dict[str, Any]) -> None:
    try:
        entries = parse_header(json.dumps(header).encode())
    except BadUpload:
        return
    place = 0
    for entry in entries.values():
        assert entry.begin == place
        assert entry.end >= entry.begin
        place = entry.end
