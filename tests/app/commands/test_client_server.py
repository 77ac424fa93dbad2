"""Which server a command talks to, and that a key from a settings file never leaves this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.request import ProxyHandler

import pytest

from tests.app.runs import valley
from tests.app.servers import Server
from valleyscope.app.commands.client import Client, connect
from valleyscope.app.settings import BadSettings, Settings

ELSEWHERE = "http://valley.example:8360"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose settings file has a port and a key, and no setting of the machine besides."""
    for name in (*Settings.model_fields, "server"):
        monkeypatch.delenv(f"VALLEY_{name.upper()}", raising=False)
        monkeypatch.delenv(f"VALLEY_{name.upper()}_FILE", raising=False)
    monkeypatch.setenv("VALLEY_HOME", str(tmp_path))
    (tmp_path / "valley.toml").write_text('port = 1234\napi_key = "key of the file"\n')
    return tmp_path


def test_options_come_before_the_environment_before_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connect(None).server == "http://127.0.0.1:1234"
    monkeypatch.setenv("VALLEY_PORT", "4321")
    assert connect(None).server == "http://127.0.0.1:4321"
    monkeypatch.setenv("VALLEY_SERVER", "http://127.0.0.1:1")
    assert connect(None).server == "http://127.0.0.1:1"
    assert connect("http://127.0.0.1:2").server == "http://127.0.0.1:2"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:1234"),
        ("::", "http://[::1]:1234"),
        ("[::]", "http://[::1]:1234"),
        ("::1", "http://[::1]:1234"),
        ("192.168.1.2", "http://192.168.1.2:1234"),
    ],
)
def test_a_server_that_listens_everywhere_is_called_on_loopback(
    monkeypatch: pytest.MonkeyPatch, host: str, address: str
) -> None:
    monkeypatch.setenv("VALLEY_HOST", host)
    client = connect(None)
    assert (client.server, client._key) == (address, "key of the file")


@pytest.mark.parametrize("file", ["valley.toml", ".env"])
def test_a_key_of_a_settings_file_stays_on_this_machine(home: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    if file == ".env":
        (home / "valley.toml").unlink()
        (home / ".env").write_text("VALLEY_API_KEY=key of the file\n")
    monkeypatch.setenv("VALLEY_HOST", "192.168.1.2")
    monkeypatch.setenv("VALLEY_PORT", "1234")
    for own in (None, "http://127.0.0.1:9", "http://localhost", "http://[::1]:9", "http://192.168.1.2:1234/"):
        assert connect(own)._key == "key of the file"
    foreign = (ELSEWHERE, "http://192.168.1.2:9", "http://192.168.1.3:1234", "http://127.0.0.1:1234@valley.example")
    for other in (*foreign, "http://localhost.example:1234", "http://192.168.1.2:port"):
        assert connect(other)._key is None
    monkeypatch.setenv("VALLEY_SERVER", ELSEWHERE)
    assert connect(None)._key is None


def test_a_key_of_the_environment_goes_where_one_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALLEY_API_KEY", "key of mine")
    for server in (None, ELSEWHERE):
        assert connect(server)._key == "key of mine"
    monkeypatch.delenv("VALLEY_API_KEY")
    (home / "key").write_text("key of mine too\n")
    monkeypatch.setenv("VALLEY_API_KEY_FILE", str(home / "key"))
    for server in (None, ELSEWHERE):
        assert connect(server)._key == "key of mine too"


def test_a_key_of_a_settings_file_passes_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("VALLEY_HOST", "192.168.1.2")

    def proxies(client: Client) -> dict[str, str]:
        handlers = [handler for handler in client._opener.handlers if isinstance(handler, ProxyHandler)]
        return {scheme: address for handler in handlers for scheme, address in handler.proxies.items()}

    assert proxies(connect(None)) == {}
    assert proxies(connect(ELSEWHERE))["http"] == "http://proxy.example:3128"


def test_any_free_port_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALLEY_PORT", "0")
    with pytest.raises(BadSettings, match="--server"):
        connect(None)
    assert connect("http://127.0.0.1:5")._key == "key of the file"


def test_commands_find_the_server_of_the_settings(bare: Server, home: Path) -> None:
    id = bare.submit(name="by the settings")
    (home / "valley.toml").write_text(f"port = {bare.url.rpartition(':')[2]}\n")
    listed = subprocess.run(
        valley("jobs", "--search", "by the settings"),
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert id in listed.stdout
