"""`valley doctor` looks at the database, the home and the data, and makes none of them."""

from __future__ import annotations

import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from rich.console import Console

from tests.app.databases import postgres_url
from tests.app.runs import valley
from tests.app.storage.test_full_disk import small_disk
from valleyscope.app.commands.doctor import examine
from valleyscope.app.settings import Settings
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.file_store import open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity
from valleyscope.app.storage.migrations import migrate, steps


def doctor(home: Path, **settings: Any) -> tuple[int, str]:
    said = StringIO()
    code = examine(Settings.load(home=home, **settings), Console(file=said, width=300))
    return code, said.getvalue()


def establish(url: str, home: Path) -> None:
    """What the first start of an API does."""
    database, storage = Database(url), Home(home)
    storage.prepare()
    with database.exclusive("start"):
        migrate(database)
        HomeIdentity(database, open_store(None, storage)).establish()
    database.close()


def test_a_machine_where_nothing_has_started_lacks_nothing_and_stays_so(tmp_path: Path) -> None:
    code, said = doctor(tmp_path / "deep" / "home")
    assert (code, "Nothing is missing." in said) == (0, True)
    assert "valley.db does not exist yet" in said
    assert "free disk of home" in said
    assert list(tmp_path.iterdir()) == []


def test_a_postgres_is_shown_with_its_version_tables_and_connections(tmp_path: Path) -> None:
    url, home = postgres_url(), tmp_path / "home"
    code, said = doctor(home, database=url, workers=2)
    assert (code, "none yet: `valley serve` creates them" in said) == (0, True)
    database = Database(url)
    with database.read() as connection:
        assert sa.inspect(connection).get_table_names() == []
        version = connection.execute(sa.text("SHOW server_version")).scalar()
        allowed = connection.execute(sa.text("SHOW max_connections")).scalar()
    database.close()
    establish(url, home)
    code, said = doctor(home, database=url, workers=2)
    assert code == 0, said
    assert f"Postgres {version}" in said
    assert f"version {max(steps())}, this program supports {max(steps())}" in said
    assert f"{allowed} allowed (max_connections), 58 needed for 2 workers" in said
    assert "belong together" in said
    code, said = doctor(home, database=url, workers=1000)
    assert (code, f"raise max_connections from {allowed} to 4050" in said) == (1, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"username": "stranger", "password": "sesame"}, "stranger"),
        ({"database": "nowhere"}, '"nowhere" does not exist'),
        ({"host": "127.0.0.1", "port": 1, "query": {}}, "onnection refused"),
    ],
)
def test_a_database_that_cannot_be_used_is_missing(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    url = sa.make_url(postgres_url()).set(**changes).render_as_string(hide_password=False)
    code, said = doctor(tmp_path / "home", database=url)
    assert code == 1
    [line] = [line for line in said.splitlines() if line.startswith("problem: the database")]
    assert words in line
    assert "sesame" not in said


def test_a_home_of_another_database_is_told(tmp_path: Path) -> None:
    home, right, wrong = tmp_path / "home", f"sqlite:///{tmp_path / 'right.db'}", f"sqlite:///{tmp_path / 'wrong.db'}"
    establish(right, home)
    assert doctor(home, database=right)[0] == 0
    establish(wrong, tmp_path / "other")
    code, said = doctor(home, database=wrong)
    assert (code, f"problem: home='{home}' belongs to another database" in said) == (1, True)
    code, said = doctor(home)  # VALLEY_DATABASE was forgotten
    assert (code, f"problem: home='{home}' has files of another database" in said) == (1, True)
    assert not (home / "valley.db").exists()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("dd if=/dev/zero of={home}/ballast bs=4k 2> /dev/null", "No space left on device"),
        ("mount -o remount,ro {home}", "Read-only file system"),
    ],
)
def test_a_home_that_cannot_be_written_is_missing(tmp_path: Path, damage: str, reason: str) -> None:
    home = tmp_path / "home"
    command = (*small_disk(home), "sh", "-c", f'{damage.format(home=home)}; exec "$@"', "sh")
    environment = ("env", f"VALLEY_HOME={home}", f"VALLEY_DATA={tmp_path}", "COLUMNS=300")
    done = subprocess.run(
        [*command, *environment, *valley("doctor")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stderr
    assert f"problem: home='{home}' cannot be written ({reason})" in done.stdout
    assert "Nothing is missing" not in done.stdout


def test_a_folder_that_cannot_be_made_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    code, said = doctor(tmp_path / "home", data=tmp_path / "file" / "data")
    assert (code, "problem: data=" in said) == (1, True)
