"""Blueprints on the disk: known after a restart, bounded in number, and worth nothing where they may be wrong."""

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
from valleyscope.app.experiments.spec import Model

OWN = Model(name="cnn", channels=[4, 8], hidden=16)
DRAWN: dict[str, Any] = {
    "parameters": 100,
    "multiply_adds": 1000,
    "tensors": [["conv.weight", [10, 1, 3, 3], "F32"]],
    "norms": [["filter", True, 0.25, 0.5]],
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The questions that a clerk was asked, which knows one answer."""
    questions: list[dict[str, Any]] = []

    def ask(_subprocess: JsonSubprocess, question: dict[str, Any], _patience: float) -> dict[str, Any]:
        questions.append(question)
        return DRAWN

    monkeypatch.setattr(JsonSubprocess, "request", ask)
    return questions


def restarted(folder: Path, largest: int = 10**6) -> ModelInfoCache:
    return ModelInfoCache(None, largest, DiskCache(folder))


def test_a_network_is_drawn_once_however_often_the_server_starts(tmp_path: Path, asked: list[Any]) -> None:
    for _ in range(3):
        assert restarted(tmp_path).draw(OWN, "digits") == ModelInfo.from_json(DRAWN)
    assert len(asked) == 1
    restarted(tmp_path).draw(Model(name="cnn", channels=[4, 9], hidden=16), "digits")
    restarted(tmp_path).draw(OWN, "mnist")
    assert len(asked) == 3


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\n{}", b"no digest\n{}"])
def test_a_damaged_entry_is_drawn_again(tmp_path: Path, asked: list[Any], content: bytes) -> None:
    restarted(tmp_path).draw(OWN, "digits")
    [entry] = tmp_path.iterdir()
    good = entry.read_bytes()
    for bad in (content, good[:-5], good.replace(b"1000", b"1001")):
        entry.write_bytes(bad)
        assert restarted(tmp_path).draw(OWN, "digits") == ModelInfo.from_json(DRAWN)
        assert entry.read_bytes() == good
    assert len(asked) == 4


def test_an_entry_of_another_version_is_drawn_again(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted(tmp_path).draw(OWN, "digits")
    monkeypatch.setattr(module, "_edition", lambda: "the next one")
    restarted(tmp_path).draw(OWN, "digits")
    assert len(asked) == 2


def test_what_is_larger_than_allowed_is_not_taken_from_the_disk(tmp_path: Path, asked: list[Any]) -> None:
    restarted(tmp_path).draw(OWN, "digits")
    restarted(tmp_path, largest=99).draw(OWN, "digits")
    assert len(asked) == 2


def test_networks_and_data_of_an_operator_are_not_kept(tmp_path: Path, asked: list[Any]) -> None:
    for _ in range(2):
        restarted(tmp_path).draw(Model(name="tests.app.plugins:choosy"), "digits")
        restarted(tmp_path).draw(OWN, "npz:/data/own.npz")
    assert len(asked) == 4
    assert list(tmp_path.iterdir()) == []


def test_the_entry_that_was_used_longest_ago_makes_room(tmp_path: Path) -> None:
    album = DiskCache(tmp_path, most=3)
    networks = [Model(name="mlp", hidden=[width]) for width in range(1, 6)]
    for moment, network in enumerate(networks[:3], start=1):
        album.add(network, "digits", DRAWN)
        for entry in tmp_path.iterdir():
            if entry.stat().st_mtime > 1000:
                os.utime(entry, (moment, moment))
    assert album.find(networks[0], "digits") == DRAWN
    album.add(networks[3], "digits", DRAWN)
    kept = [network for network in networks if album.find(network, "digits") is not None]
    assert kept == [networks[0], networks[2], networks[3]]


def test_a_disk_that_cannot_be_written_is_no_obstacle(tmp_path: Path, asked: list[Any]) -> None:
    (tmp_path / "file").write_text("in the way of the folder")
    assert restarted(tmp_path / "file").draw(OWN, "digits") == ModelInfo.from_json(DRAWN)
    assert len(asked) == 1


def test_a_known_network_does_not_wait_for_the_drawing_of_another(tmp_path: Path, asked: list[Any]) -> None:
    model_info_cache = restarted(tmp_path)
    restarted(tmp_path).draw(OWN, "digits")
    for _ in range(2):  # from the disk, then from memory
        with model_info_cache._drawing:
            asking = Thread(target=model_info_cache.draw, args=(OWN, "digits"), daemon=True)
            asking.start()
            asking.join(60)
            assert not asking.is_alive()
    assert len(asked) == 1


def test_a_server_keeps_blueprints_under_its_home(bare: Server) -> None:
    model = {"name": "cnn", "channels": [3, 5], "hidden": 7}
    before = set((bare.home / "model_info_cache").glob("*"))
    assert bare.client.post("/api/estimate", json={**TINY, "model": model}).status_code == 200
    assert len(set((bare.home / "model_info_cache").glob("*")) - before) == 1
    found = DiskCache(bare.home / "model_info_cache").find(Model.model_validate(model), "digits")
    assert found is not None
    assert found["parameters"] == 3 * 10 + 5 * 28 + 7 * (5 * 4 + 1) + 10 * 8
