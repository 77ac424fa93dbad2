"""Downloads from a real server on this machine, from none, and from one that never answers."""

from __future__ import annotations

import gzip
import hashlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from valleyscope.training import _download
from valleyscope.training._download import DownloadFailed, fetch
from valleyscope.training.datasets import MissingData, load_dataset


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address under which its files are served."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a listener; it stays bound, so no other process takes it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_a_file_arrives_whole_with_its_progress(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    content = bytes(range(256)) * 4096
    (folder / "file").write_bytes(content)
    reports: list[tuple[str, int, int]] = []
    target = tmp_path / "new" / "folder" / "file"
    fetch([address + "file"], target, md5(content), lambda *report: reports.append(report))
    assert target.read_bytes() == content
    assert [entry.name for entry in target.parent.iterdir()] == ["file"]
    assert reports[-1] == ("file", len(content), len(content))
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)


def test_without_a_callback_a_bar_is_drawn(
    served: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, address = served
    (folder / "file").write_bytes(b"content")
    fetch([address + "file"], tmp_path / "file", md5(b"content"))
    captured = capsys.readouterr()
    assert "file" in captured.err
    assert "7/7 bytes" in captured.err
    assert not captured.out


def test_the_next_mirror_is_tried_when_one_fails(served: tuple[Path, str], tmp_path: Path, closed_port: int) -> None:
    folder, address = served
    (folder / "file").write_bytes(b"content")
    urls = [f"http://127.0.0.1:{closed_port}/file", address + "absent", address + "file"]
    fetch(urls, tmp_path / "file", md5(b"content"), lambda *_: None)
    assert (tmp_path / "file").read_bytes() == b"content"


def test_other_bytes_than_published_are_refused_and_leave_nothing(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    (folder / "file").write_bytes(b"<html>please log in</html>")
    target = tmp_path / "target" / "file"
    with pytest.raises(DownloadFailed, match=r"received 26 bytes with MD5 sum .*, expected"):
        fetch([address + "file"], target, md5(b"content"), lambda *_: None)
    assert list(target.parent.iterdir()) == []


def test_a_server_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = _download.TIMEOUT
    monkeypatch.setattr(_download, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(DownloadFailed, match=r"no answer in 0\.2 seconds|timed out"):
            fetch([f"http://127.0.0.1:{silent.getsockname()[1]}/file"], tmp_path / "file", md5(b""), lambda *_: None)
        assert time.monotonic() - start < usual


def test_mnist_is_downloaded_once(served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, address = served
    from torchvision.datasets import MNIST as mnist  # noqa: N811

    resources = []
    for file, _ in mnist.resources:
        shape = (10, 28, 28) if "images" in file else (10,)
        elements = bytes(range(10)) * (784 if "images" in file else 1)
        content = gzip.compress(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + elements)
        (folder / file).write_bytes(content)
        resources.append((file, md5(content)))
    monkeypatch.setattr(mnist, "mirrors", [address])
    monkeypatch.setattr(mnist, "resources", resources)
    fetched: list[str] = []
    root = tmp_path / "root"
    first = load_dataset("mnist", root, progress=lambda file, *_: fetched.append(file))
    assert sorted(set(fetched)) == sorted(file for file, _ in resources)
    assert first.y_train.tolist() == list(range(10))
    fetched.clear()
    assert load_dataset("mnist", root, progress=lambda file, *_: fetched.append(file)).fingerprint == first.fingerprint
    assert fetched == []


def test_no_file_and_no_network_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    from torchvision import datasets

    monkeypatch.setattr(_download, "TIMEOUT", 600.0)  # a refused connection fails at once
    monkeypatch.setattr(datasets.FashionMNIST, "mirrors", [f"http://127.0.0.1:{closed_port}/"])
    monkeypatch.setattr(datasets.CIFAR10, "url", f"http://127.0.0.1:{closed_port}/cifar-10-python.tar.gz")
    start = time.monotonic()
    with pytest.raises(MissingData, match=r"missing train-images-idx3-ubyte\.gz.*download failed.*refused") as caught:
        load_dataset("fashion-mnist", tmp_path / "root")
    assert str(tmp_path / "root" / "FashionMNIST" / "raw") in str(caught.value)
    with pytest.raises(
        MissingData, match=f"missing cifar-10-python.tar.gz in {tmp_path / 'root'} .the download failed"
    ):
        load_dataset("cifar10", tmp_path / "root")
    assert time.monotonic() - start < 60
    assert not (tmp_path / "root").exists()
