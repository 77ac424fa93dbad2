"""Settings from files: VALLEY_*_FILE is read, errors name it, and its content is never shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from valleyscope.app.commands.client import Client
from valleyscope.app.secret_files import without_settings
from valleyscope.app.settings import BadSettings, Settings


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"VALLEY_{name.upper()}", raising=False)
        monkeypatch.delenv(f"VALLEY_{name.upper()}_FILE", raising=False)


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "api_key"
    path.write_text("hush-hush\n")
    monkeypatch.setenv("VALLEY_API_KEY_FILE", str(path))
    return path


@pytest.mark.usefixtures("key")
def test_a_key_is_read_from_its_file_without_the_end_of_the_line(tmp_path: Path) -> None:
    found = Settings.load(home=tmp_path)
    assert found.api_key is not None
    assert found.api_key.get_secret_value() == "hush-hush"
    assert all("hush" not in value for _, value in found.shown())


def test_any_setting_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "port").write_text("1234")
    (tmp_path / "home").write_text(str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "valley.toml").write_text("max_epochs = 7\nport = 5\n")
    monkeypatch.setenv("VALLEY_PORT_FILE", str(tmp_path / "port"))
    monkeypatch.setenv("VALLEY_HOME_FILE", str(tmp_path / "home"))
    found = Settings.load()
    assert (found.port, found.max_epochs, found.home) == (1234, 7, tmp_path / "elsewhere")
    assert Settings.load(port=2).port == 2


@pytest.mark.usefixtures("key")
def test_both_forms_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALLEY_API_KEY", "other")
    with pytest.raises(BadSettings, match="both VALLEY_API_KEY and VALLEY_API_KEY_FILE"):
        Settings.load(home=tmp_path)


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "is empty"), (b"\n", "is empty"), (b"\xff\xfe", "UTF-8"), (b"k" * 70_000, "bytes")]
)
def test_a_file_without_a_value_is_refused_by_name(tmp_path: Path, key: Path, content: bytes, words: str) -> None:
    key.write_bytes(content)
    with pytest.raises(BadSettings, match=words) as refused:
        Settings.load(home=tmp_path)
    assert "VALLEY_API_KEY_FILE" in str(refused.value)
    assert "kkk" not in str(refused.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path, key: Path) -> None:
    key.unlink()
    with pytest.raises(BadSettings, match=r"VALLEY_API_KEY_FILE=.*No such file"):
        Settings.load(home=tmp_path)


def test_the_password_of_the_database_comes_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("se@same/:?\n")
    monkeypatch.setenv("VALLEY_DATABASE_PASSWORD_FILE", str(tmp_path / "password"))
    monkeypatch.setenv("VALLEY_DATABASE", "postgresql://valley@db:5432/valley")
    found = Settings.load(home=tmp_path)
    assert found.database == "postgresql://valley:se%40same%2F%3A%3F@db:5432/valley"
    assert all("same" not in value for _, value in found.shown())
    for address in ("postgresql://valley:other@db:5432/valley", "postgresql://valley@db/valley?password=other"):
        monkeypatch.setenv("VALLEY_DATABASE", address)
        with pytest.raises(BadSettings, match="already has a password") as refused:
            Settings.load(home=tmp_path)
        assert "other" not in str(refused.value)


def test_sqlite_needs_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALLEY_DATABASE_PASSWORD", "sesame")
    assert Settings.load(home=tmp_path, database="sqlite:///x.db").database == "sqlite:///x.db"


@pytest.mark.usefixtures("key")
def test_the_client_sends_the_key_of_the_file() -> None:
    assert Client("http://127.0.0.1:1")._key == "hush-hush"


def test_workers_of_a_server_get_neither_form_of_a_secret() -> None:
    given = {"VALLEY_API_KEY": "a", "VALLEY_API_KEY_FILE": "b", "VALLEY_PORT": "1", "PATH": "p"}
    assert without_settings(given, ["api_key"]) == {"VALLEY_PORT": "1", "PATH": "p"}


def test_an_error_of_the_command_line_does_not_repeat_the_secret(tmp_path: Path, key: Path) -> None:
    key.write_text("hush\x07hush")
    done = subprocess.run(
        [sys.executable, "-m", "valleyscope.app.cli", "health"],
        capture_output=True,
        text=True,
        env={**os.environ, "VALLEY_HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 2
    assert "VALLEY_API_KEY" in done.stderr
    assert "hush" not in done.stdout + done.stderr
