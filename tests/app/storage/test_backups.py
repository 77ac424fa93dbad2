"""`valley backup` while everything runs, then `valley restore` elsewhere: results are there, and runs continue."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.app.cluster import TINY, Cluster
from tests.app.databases import postgres_tool, postgres_url
from tests.app.runs import assert_same_results
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.settings import Settings
from valleyscope.app.storage.backups import BadBackup, back_up, read_manifest, restore
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.migrations import migrate

SLOW = TINY | {
    "name": "slow",
    "model": {"name": "tests.app.plugins:slow", "seconds": 0.02},
    "training": {"epochs": 8, "batch_size": 128},
    "minima": {"sgd": {}, "other": {"seed": 5}, "third": {"seed": 6}},
    "curves": {},
    "planes": {"valley": {"through": ["sgd", "other", "third"], "resolution": 3}},
}
"""An experiment that trains slowly and has little to do afterwards."""


def valley(*arguments: object) -> str:
    tools = postgres_tool("pg_dump").parent
    done = subprocess.run(
        [sys.executable, "-m", "valleyscope.app.cli", *map(str, arguments)],
        env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.drill)])
def test_a_restored_service_continues_from_the_backup(tmp_path: Path, kind: str) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    model = {"name": "tests.app.plugins:held", "marker": str(marker)}
    before = Cluster(tmp_path / "before", postgres_url() if kind == "postgres" else None)
    after = Cluster(tmp_path / "after", postgres_url() if kind == "postgres" else None)
    try:
        before.start(workers=1)
        experiment = before.submit(SLOW | {"model": model})
        before.until(lambda: any(event.kind == "epoch" for event in before.events(experiment)))
        valley("backup", tmp_path / "copy", "--home", before.home, "--database", before.url)
        assert before.get(experiment).state == "running"
        marker.unlink()  # so far it was in no hurry, however long the backup took
        before.wait(experiment, "done")
        before.stop()

        valley("restore", tmp_path / "copy", "--home", after.home, "--database", after.url)
        assert after.get(experiment).state == "running"
        after.start(workers=1)
        after.wait(experiment, "done")
        assert_same_results(before.directory(experiment), after.directory(experiment))
    finally:
        before.close()
        after.close()


def test_a_postgres_database_is_restored(tmp_path: Path) -> None:
    first, second = postgres_url(), postgres_url()
    database = Database(first)
    with database.exclusive("start"):
        migrate(database)
    spec = Spec.model_validate({"name": "kept", "minima": {"sgd": {}}})
    with database.write() as connection:
        experiment = ExperimentTable(database).add(connection, spec, key=None, priority=100).id
    database.close()
    valley("backup", tmp_path / "copy", "--home", tmp_path / "before", "--database", first)
    valley("restore", tmp_path / "copy", "--home", tmp_path / "after", "--database", second)
    restored = Database(second)
    assert ExperimentTable(restored).get(experiment).name == "kept"
    restored.close()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A service with one upload and no experiment."""
    home = tmp_path / "home"
    (home / "checkpoints").mkdir(parents=True)
    (home / "checkpoints" / "a.safetensors").write_bytes(b"weights")
    (home / "checkpoints" / ".a.safetensors.x.partial").write_bytes(b"unfinished")
    (home / "valley.toml").write_text("port = 1\n")
    (home / ".env").write_text("VALLEY_API_KEY=hush\n")
    found = Settings.load(home=home)
    cluster = Cluster(home)
    with cluster.database.exclusive("start"):
        migrate(cluster.database)
    cluster.close()
    return found


def test_a_backup_has_settings_and_uploads_but_neither_secrets_nor_unfinished_files(
    settings: Settings, tmp_path: Path
) -> None:
    back_up(settings, tmp_path / "copy")
    names = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert names == {"backup.json", "valley.db", "valley.toml", "checkpoints/a.safetensors"}
    assert read_manifest(tmp_path / "copy")["files"] == 3


def test_nothing_is_overwritten(settings: Settings, tmp_path: Path) -> None:
    back_up(settings, tmp_path / "copy")
    with pytest.raises(BadBackup, match="exists already"):
        back_up(settings, tmp_path / "copy")
    with pytest.raises(BadBackup, match="already has checkpoints"):
        restore(settings, tmp_path / "copy")
    used = Settings.load(home=tmp_path / "new", database=settings.database)
    with pytest.raises(BadBackup, match="empty database"):
        restore(used, tmp_path / "copy")


def test_a_folder_that_is_not_a_backup_is_refused_by_name(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(BadBackup, match=r"has no backup\.json"):
        restore(settings, tmp_path)
    back_up(settings, tmp_path / "copy")
    manifest = tmp_path / "copy" / "backup.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"database": "postgresql"}))
    with pytest.raises(BadBackup, match="has a postgresql database"):
        restore(Settings.load(home=tmp_path / "new"), tmp_path / "copy")
    manifest.write_text(json.dumps({"format": 99}))
    with pytest.raises(BadBackup, match="is not of format 1"):
        restore(Settings.load(home=tmp_path / "new"), tmp_path / "copy")


@pytest.mark.parametrize("address", ["valley:sesame@127.0.0.1:1/valley", "valley@127.0.0.1:1/valley?password=sesame"])
def test_a_missing_tool_and_a_wrong_password_are_named_without_the_password(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.load(home=tmp_path, database=f"postgresql://{address}")
    tool = tmp_path / "bin" / "pg_dump"
    tool.parent.mkdir()
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    tool.write_text('#!/bin/sh\necho "called with $@" >&2; test "$PGPASSWORD" = sesame && exit 7')
    tool.chmod(0o755)
    with pytest.raises(BadBackup, match="pg_dump failed: called with") as refused:
        back_up(settings, tmp_path / "copy")
    assert "sesame" not in str(refused.value)
    assert not (tmp_path / "copy").exists()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BadBackup, match="pg_dump is not installed"):
        back_up(settings, tmp_path / "copy")


def test_a_restore_that_fails_leaves_nothing_and_can_be_tried_again(settings: Settings, tmp_path: Path) -> None:
    """Neither an occupied database nor a damaged copy of one fills the home."""
    home = Home(settings.home)
    home.write_identity("mine")
    back_up(settings, tmp_path / "copy")
    empty = tmp_path / "new"
    with pytest.raises(BadBackup, match="empty database"):
        restore(Settings.load(home=empty, database=settings.database), tmp_path / "copy")
    assert not empty.exists()
    again = Settings.load(home=empty)
    (tmp_path / "copy" / "valley.db").rename(tmp_path / "aside")
    with pytest.raises(BadBackup, match=r"the restore failed: No such file or directory: .*valley\.db"):
        restore(again, tmp_path / "copy")
    assert not [path for path in empty.rglob("*") if path.is_file()]
    (tmp_path / "aside").rename(tmp_path / "copy" / "valley.db")
    restore(again, tmp_path / "copy")
    assert (empty / "checkpoints" / "a.safetensors").read_bytes() == b"weights"
    assert Home(empty).identity() == "mine"
    assert not list(empty.rglob("*.partial"))


def test_a_wrong_password_is_one_line_and_copies_nothing(settings: Settings, tmp_path: Path) -> None:
    back_up(settings, tmp_path / "copy")
    manifest = tmp_path / "copy" / "backup.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"database": "postgresql"}))
    address = sa.make_url(postgres_url()).set(username="stranger", password="sesame")
    new = Settings.load(home=tmp_path / "new", database=address.render_as_string(hide_password=False))
    with pytest.raises(BadBackup, match=r"the restore failed, database error: .*stranger") as refused:
        restore(new, tmp_path / "copy")
    assert "\n" not in str(refused.value)
    assert "sesame" not in str(refused.value)
    assert not new.home.exists()


def test_a_failed_backup_is_one_line_and_leaves_no_files(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy2", full)
        with pytest.raises(BadBackup, match="the backup failed: No space left on device: somewhere"):
            back_up(settings, tmp_path / "backups" / "copy")
    assert list((tmp_path / "backups").iterdir()) == []
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadBackup, match="the backup failed: Not a directory"):
        back_up(settings, tmp_path / "file" / "copy")


def test_an_existing_settings_file_stays(settings: Settings, tmp_path: Path) -> None:
    back_up(settings, tmp_path / "copy")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "valley.toml").write_text("port = 2\n")
    (tmp_path / "new" / "identity").write_text("of an earlier try\n")
    restore(Settings.load(home=tmp_path / "new"), tmp_path / "copy")
    assert (tmp_path / "new" / "valley.toml").read_text() == "port = 2\n"
    assert Home(tmp_path / "new").identity() is None
