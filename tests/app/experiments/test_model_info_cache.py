"""Model info on disk survives a restart, is bounded in number, and is ignored where it may be wrong."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.app.servers import TINY, Server
from valleyscope.app.experiments import model_info_cache as module
from valleyscope.app.experiments.json_subprocess import JsonSubprocess
from valleyscope.app.experiments.model_info import ModelInfo, ModelInfoCache
from valleyscope.app.experiments.model_info_cache import DiskCache
from valleyscope.app.experiments.spec_parts import Model

MODEL = Model(name="cnn", channels=[4, 8], hidden=16)
STORED: dict[str, Any] = {
    "parameters": 100,
    "multiply_adds": 1000,
    "tensors": [["conv.weight", [10, 1, 3, 3], "F32"]],
    "norms": [["filter", True, 0.25, 0.5]],
}


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The requests to the subprocess, which has one answer."""
    received: list[dict[str, Any]] = []

    def answer(_subprocess: JsonSubprocess, request: dict[str, Any], _timeout: float) -> dict[str, Any]:
        received.append(request)
        return STORED

    monkeypatch.setattr(JsonSubprocess, "request", answer)
    return received


def restarted(folder: Path, max_parameters: int = 10**6) -> ModelInfoCache:
    return ModelInfoCache(None, max_parameters, DiskCache(folder))


def test_a_network_is_inspected_once_across_restarts(tmp_path: Path, requests: list[Any]) -> None:
    for _ in range(3):
        assert restarted(tmp_path).inspect(MODEL, "digits") == ModelInfo.from_json(STORED)
    assert len(requests) == 1
    restarted(tmp_path).inspect(Model(name="cnn", channels=[4, 9], hidden=16), "digits")
    restarted(tmp_path).inspect(MODEL, "mnist")
    assert len(requests) == 3


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\n{}", b"no digest\n{}"])
def test_a_damaged_entry_is_made_again(tmp_path: Path, requests: list[Any], content: bytes) -> None:
    restarted(tmp_path).inspect(MODEL, "digits")
    [entry] = tmp_path.iterdir()
    good = entry.read_bytes()
    for bad in (content, good[:-5], good.replace(b"1000", b"1001")):
        entry.write_bytes(bad)
        assert restarted(tmp_path).inspect(MODEL, "digits") == ModelInfo.from_json(STORED)
        assert entry.read_bytes() == good
    assert len(requests) == 4


def test_an_entry_of_another_version_is_made_again(
    tmp_path: Path, requests: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted(tmp_path).inspect(MODEL, "digits")
    monkeypatch.setattr(module, "_code_digest", lambda: "the next one")
    restarted(tmp_path).inspect(MODEL, "digits")
    assert len(requests) == 2


def test_an_entry_beyond_the_limit_is_not_used(tmp_path: Path, requests: list[Any]) -> None:
    restarted(tmp_path).inspect(MODEL, "digits")
    restarted(tmp_path, max_parameters=99).inspect(MODEL, "digits")
    assert len(requests) == 2


def test_custom_networks_and_data_are_not_stored(tmp_path: Path, requests: list[Any]) -> None:
    for _ in range(2):
        restarted(tmp_path).inspect(Model(name="tests.app.plugins:choosy"), "digits")
        restarted(tmp_path).inspect(MODEL, "npz:/data/own.npz")
    assert len(requests) == 4
    assert list(tmp_path.iterdir()) == []


def test_the_least_recently_used_entry_is_evicted(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_entries=3)
    networks = [Model(name="mlp", hidden=[width]) for width in range(1, 6)]
    for moment, network in enumerate(networks[:3], start=1):
        cache.put(network, "digits", STORED)
        for entry in tmp_path.iterdir():
            if entry.stat().st_mtime > 1000:
                os.utime(entry, (moment, moment))
    assert cache.get(networks[0], "digits") == STORED
    cache.put(networks[3], "digits", STORED)
    kept = [network for network in networks if cache.get(network, "digits") is not None]
    assert kept == [networks[0], networks[2], networks[3]]


def test_a_disk_that_cannot_be_written_is_ignored(tmp_path: Path, requests: list[Any]) -> None:
    (tmp_path / "file").write_text("in the way of the folder")
    assert restarted(tmp_path / "file").inspect(MODEL, "digits") == ModelInfo.from_json(STORED)
    assert len(requests) == 1


def test_a_cached_network_does_not_wait_for_the_inspection_of_another(tmp_path: Path, requests: list[Any]) -> None:
    model_info_cache = restarted(tmp_path)
    restarted(tmp_path).inspect(MODEL, "digits")
    for _ in range(2):  # from the disk, then from memory
        with model_info_cache._inspect_lock:
            thread = Thread(target=model_info_cache.inspect, args=(MODEL, "digits"), daemon=True)
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
    assert len(requests) == 1


def test_a_server_stores_model_info_under_its_home(bare: Server) -> None:
    model = {"name": "cnn", "channels": [3, 5], "hidden": 7}
    before = set((bare.home / "model_info_cache").glob("*"))
    assert bare.client.post("/api/estimate", json={**TINY, "model": model}).status_code == 200
    assert len(set((bare.home / "model_info_cache").glob("*")) - before) == 1
    found = DiskCache(bare.home / "model_info_cache").get(Model.model_validate(model), "digits")
    assert found is not None
    assert found["parameters"] == 3 * 10 + 5 * 28 + 7 * (5 * 4 + 1) + 10 * 8
