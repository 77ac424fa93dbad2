"""Settings: options before environment before files; errors name the setting and show no secret."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from valleyscope.app.cli import main
from valleyscope.app.settings import BadSettings, Settings, default_home


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"VALLEY_{name.upper()}", raising=False)


def test_options_come_before_the_environment_before_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("port = 1", "workers = 1", "max_epochs = 11", 'hosts = ["toml"]', 'log_level = "ERROR"')
    (tmp_path / "valley.toml").write_text("\n".join(lines))
    (tmp_path / ".env").write_text("VALLEY_PORT=2\nVALLEY_WORKERS=2\nVALLEY_MAX_EPOCHS=12\nUNRELATED=1\n")
    monkeypatch.setenv("VALLEY_PORT", "3")
    monkeypatch.setenv("VALLEY_WORKERS", "3")
    found = Settings.load(home=tmp_path, port=4, host=None)
    assert (found.port, found.workers, found.max_epochs, found.hosts) == (4, 3, 12, ("toml",))
    assert found.log_level == "ERROR"
    assert found.host == "127.0.0.1"


def test_the_home_of_the_environment_has_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "valley.toml").write_text("port = 1234\n")
    monkeypatch.setenv("VALLEY_HOME", str(tmp_path))
    assert Settings.load().port == 1234
    assert Settings.load().database == f"sqlite:///{tmp_path}/valley.db"


def test_the_default_home_is_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings.load().home == default_home() == tmp_path / "valleyscope"


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VALLEY_ALLOWED_DATASETS", "npz:/data/a.npz, mine.data:load")
    assert Settings.load(home=tmp_path).allowed_datasets == ("npz:/data/a.npz", "mine.data:load")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("port = 99999", ["port", "99999", "65535"]),
        ("prot = 1", ["'prot' is unknown", "port"]),
        ("port = = 1", ["valley.toml", "TOML"]),
        ("workers = -1", ["workers", "-1"]),
        ('log_format = "xml"', ["log_format", "xml", "json"]),
        ("max_gpu_hours = 0", ["max_gpu_hours"]),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, file: str, words: list[str]) -> None:
    (tmp_path / "valley.toml").write_text(file)
    with pytest.raises(BadSettings) as refused:
        Settings.load(home=tmp_path)
    assert all(word in str(refused.value) for word in words), str(refused.value)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.1.2", "valley.example")),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(tmp_path: Path, host: str, loopback: bool) -> None:
    found = Settings.load(home=tmp_path, host=host)
    assert found.loopback == loopback
    if loopback:
        found.check_exposure()
    else:
        with pytest.raises(BadSettings, match="VALLEY_API_KEY"):
            found.check_exposure()
        Settings.load(home=tmp_path, host=host, api_key="k").check_exposure()


def test_a_refused_key_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(BadSettings) as refused:
        Settings.load(home=tmp_path, api_key="secret \n key")
    assert "secret" not in str(refused.value)


def doctor(home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {f"VALLEY_{name.upper()}": value for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-m", "valleyscope.app.cli", "doctor"],
        capture_output=True,
        text=True,
        env={"PATH": "", "COLUMNS": "200", "VALLEY_HOME": str(home), **settings},
        check=False,
    )


def test_the_doctor_shows_settings_and_no_secret(tmp_path: Path) -> None:
    address = "postgresql+psycopg://valley:sesame@db/valley?password=sesame2&sslpassword=sesame3&sslmode=require"
    done = doctor(tmp_path, api_key="hush-hush", database=address, workers="0")
    assert str(tmp_path) in done.stdout, done.stderr
    assert "valley:***@db" in done.stdout
    assert "sslmode=require" in done.stdout
    assert "hush-hush" not in done.stdout
    assert "sesame" not in done.stdout
    assert re.findall(r"workers\W+(\d+)", done.stdout) == ["0", "0"]


BAD_ADDRESSES = [
    "foo",
    "sqlite:valley.db",
    "mysql://valley:sesame@db/valley",
    "postgresql://valley:sesame@db:port/valley",
]


@pytest.mark.parametrize("address", BAD_ADDRESSES)
@pytest.mark.parametrize("password", [None, "sesame"])
def test_an_invalid_database_url_is_refused_and_not_repeated(
    tmp_path: Path, address: str, password: str | None
) -> None:
    with pytest.raises(BadSettings, match=r"VALLEY_DATABASE.*sqlite:///FILE.*postgresql://") as refused:
        Settings.load(home=tmp_path, database=address, database_password=password)
    assert "same" not in str(refused.value)


def test_an_invalid_database_url_is_one_line(tmp_path: Path) -> None:
    done = doctor(tmp_path, database="foo")
    assert done.returncode == 2
    assert done.stderr.startswith("valley: setting database (VALLEY_DATABASE)")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("address", ["postgresql://db/valley", "postgres://u@db/v", "sqlite:////srv/a?b", "sqlite://"])
def test_a_valid_database_url_is_unchanged(tmp_path: Path, address: str) -> None:
    assert Settings.load(home=tmp_path, database=address).database == address


def test_valley_run_has_workers_even_if_the_server_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "valley.toml").write_text("workers = 0\n")
    monkeypatch.setenv("VALLEY_HOME", str(tmp_path))
    given = []
    monkeypatch.setattr("valleyscope.app.cli.run_in_terminal", lambda *_, workers, **__: given.append(workers) or 0)
    assert main(["run", "digits", "--out", str(tmp_path / "out")]) == 0
    assert given == [None]
