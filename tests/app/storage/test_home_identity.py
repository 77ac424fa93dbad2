"""A database and a home that do not belong together are detected before either changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.cluster import TINY, Cluster
from tests.app.runs import valley
from tests.app.servers import serving
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.checkpoint_table import CheckpointTable
from valleyscope.app.storage.cleanup import ORPHAN_SECONDS, OrphanCleanup
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.file_store import FileStore, open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity, WrongHome
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.worker.health_file import Unhealthy, check_health_file

pytestmark = pytest.mark.long


@pytest.fixture
def home(tmp_path: Path) -> Home:
    storage = Home(tmp_path / "home")
    storage.prepare()
    return storage


@pytest.fixture(params=["home", "store"])
def store(request: pytest.FixtureRequest, tmp_path: Path, home: Home) -> FileStore:
    """The two places where files may be."""
    (tmp_path / "store").mkdir()
    return open_store(None if request.param == "home" else f"file://{tmp_path / 'store'}", home)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Database]:
    """A new database."""
    found = Database(f"sqlite:///{tmp_path / 'other.db'}")
    migrate(found)
    yield found
    found.close()


def add_upload(database: Database, home: Home, store: FileStore) -> str:
    source = home.path / "upload"
    source.write_bytes(b"weights")
    found = CheckpointTable(database, home, store).add(source, name="mine", model={}, dataset="digits", sha256="0" * 64)
    return found.id


def add_experiment(database: Database) -> str:
    with database.write() as connection:
        return ExperimentTable(database).add(connection, Spec.model_validate(TINY), key=None, priority=100).id


def test_a_new_service_gets_an_identity_on_both_sides(database: Database, store: FileStore) -> None:
    with pytest.raises(WrongHome, match="no identity yet"):
        HomeIdentity(database, store).check()
    HomeIdentity(database, store).establish()
    name = store.identity()
    assert name is not None
    HomeIdentity(database, store).establish()
    HomeIdentity(database, store).check()
    assert store.identity() == name


def test_a_service_from_before_identities_gets_one_with_its_files(
    database: Database, home: Home, store: FileStore
) -> None:
    add_experiment(database)
    add_upload(database, home, store)
    HomeIdentity(database, store).establish()
    HomeIdentity(database, store).check()


def test_an_empty_database_is_refused_if_there_are_files(
    database: Database, other: Database, home: Home, store: FileStore
) -> None:
    add_upload(database, home, store)
    with pytest.raises(WrongHome, match="this database is empty"):
        HomeIdentity(other, store).establish()
    HomeIdentity(database, store).establish()
    with pytest.raises(WrongHome, match=r"belongs to another database.*--adopt-home"):
        HomeIdentity(other, store).establish()
    with pytest.raises(WrongHome, match="no identity yet"):
        HomeIdentity(other, store).check()
    HomeIdentity(database, store).check()


def test_a_missing_identity_is_not_recreated(database: Database, store: FileStore, tmp_path: Path) -> None:
    HomeIdentity(database, store).establish()
    unmounted = tmp_path / "unmounted"
    unmounted.mkdir()
    elsewhere = open_store(f"file://{unmounted}" if store.remote else None, Home(unmounted))
    for action in (HomeIdentity(database, elsewhere).establish, HomeIdentity(database, elsewhere).check):
        with pytest.raises(WrongHome, match="does not belong to this database"):
            action()
    assert not list(unmounted.iterdir())


def test_adopted_files_belong_to_one_database(database: Database, other: Database, store: FileStore) -> None:
    owner = HomeIdentity(database, store)
    owner.establish()
    HomeIdentity(other, store).establish(adopt=True)
    HomeIdentity(other, store).check()
    with pytest.raises(WrongHome, match="belongs to another database"):
        HomeIdentity(database, store).establish()
    assert "belongs to another database" in (owner.problem() or "")


def test_an_interrupted_start_is_completed(
    database: Database, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_experiment(database)

    def refuse(_name: str) -> None:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store, "write_identity", refuse)
        with pytest.raises(StoreUnavailable, match="full"):
            HomeIdentity(database, store).establish()
    late = HomeIdentity(database, store)
    late.establish_if_missing()
    late.check()


def test_an_orphan_is_removed_after_hours_and_only_by_its_service(
    database: Database, home: Home, store: FileStore, caplog: pytest.LogCaptureFixture
) -> None:
    clock = iter([1.0, ORPHAN_SECONDS - 1.0, ORPHAN_SECONDS, ORPHAN_SECONDS + 1000.0, ORPHAN_SECONDS + 2000.0])
    identity = HomeIdentity(database, store)
    identity.establish()
    checkpoints = CheckpointTable(database, home, store)
    kept, orphan = add_upload(database, home, store), "0123456789abcdef"
    home.checkpoint(orphan).write_bytes(b"weights")
    os.utime(home.checkpoint(orphan), (0, 0))  # an old file is no older orphan
    orphans = OrphanCleanup(checkpoints, home, identity, clock=lambda: next(clock))
    for _ in range(3):
        orphans.run_if_due()
        assert home.stored_checkpoints() == {kept, orphan}
    assert f"removed in 6 h: {orphan}" in caplog.text
    name = store.identity()
    store.write_identity("another")
    with pytest.raises(WrongHome):
        orphans.run_if_due()
    assert home.stored_checkpoints() == {kept, orphan}
    assert name is not None
    store.write_identity(name)
    orphans.run_if_due()
    assert home.stored_checkpoints() == {kept}
    assert f"removing checkpoint {orphan}: it had no row for 7 h" in caplog.text


def test_only_interrupted_uploads_are_removed(database: Database, home: Home) -> None:
    store = open_store(None, home)
    parts = home.path / "uploads"
    parts.mkdir()
    for name, age in (("upload", 60.0), ("abandoned", ORPHAN_SECONDS + 60.0)):
        (parts / f"{name}.part").write_bytes(b"x")
        os.utime(parts / f"{name}.part", (time.time() - age,) * 2)
    OrphanCleanup(CheckpointTable(database, home, store), home, HomeIdentity(database, store)).run_if_due()
    assert [path.name for path in parts.iterdir()] == ["upload.part"]


def test_a_server_on_the_wrong_database_reports_it_and_changes_nothing(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "home")
    try:
        cluster.start_api()
        (tmp_path / "upload").write_bytes(b"weights")
        described = {"name": "mine", "model": {"name": "mlp"}, "dataset": "digits", "sha256": "0" * 64}
        upload = cluster.call("add_checkpoint", source=str(tmp_path / "upload"), **described)
        wrong = f"sqlite:///{tmp_path / 'typo.db'}"
        done = subprocess.run(
            valley("serve", "--home", cluster.home, "--port", 0, "--workers", 0, "--database", wrong),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"valley: home='{cluster.home}' belongs to another database: set VALLEY_DATABASE")
        assert len(done.stderr.splitlines()) == 1
        cluster.stop()
        with serving(cluster.home, "--database", wrong, "--adopt-home") as server:
            assert server.client.get("/readyz").status_code == 200
        with pytest.raises(AssertionError, match="belongs to another database"), serving(cluster.home):
            pass
        assert (cluster.home / "checkpoints" / f"{upload}.safetensors").read_bytes() == b"weights"
    finally:
        cluster.close()


def test_a_worker_waits_until_the_right_home_is_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home of the worker is a link, as a mount point that is mounted late."""
    beat = tmp_path / "beat"
    monkeypatch.setenv("VALLEY_HEARTBEAT", str(beat))
    url = f"sqlite:///{tmp_path / 'valley.db'}"
    cluster, away = Cluster(tmp_path / "home", url), Cluster(tmp_path / "mount", url, preamble=_LOGGED)
    (tmp_path / "mount").mkdir()
    monkeypatch.setenv("LOGGED", str(tmp_path / "worker.log"))
    try:
        cluster.start_api()
        experiment = cluster.submit(TINY)
        away.start_workers(1)
        cluster.until(lambda: _read(tmp_path / "worker.log").count("does not belong to this database") >= 2)
        assert cluster.living_workers() == []
        assert list((tmp_path / "mount").iterdir()) == [], "it made no identity, and nothing else"
        with pytest.raises(Unhealthy, match="waits for its home"):
            check_health_file(beat)
        (tmp_path / "mount").rmdir()
        (tmp_path / "mount").symlink_to(cluster.home)
        cluster.wait(experiment, "done")
        assert check_health_file(beat)
    finally:
        away.close()
        cluster.close()


_LOGGED = "import logging, os; logging.basicConfig(filename=os.environ['LOGGED'])"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def test_an_experiment_without_its_weights_fails(tmp_path: Path) -> None:
    """The worker's home is a copy of the API's, with the same identity, so that nothing else notices."""
    url = f"sqlite:///{tmp_path / 'valley.db'}"
    cluster, away = Cluster(tmp_path / "home", url), Cluster(tmp_path / "copy", url)
    try:
        cluster.start_api()
        shutil.copytree(cluster.home, away.home)
        away.start_workers(1)
        experiment = cluster.submit(TINY)
        row = cluster.wait(experiment, "failed")
        assert f"train:sgd: sgd.safetensors is not in home='{cluster.home}'" in str(row.error)
        away.stop()
        cluster.start_workers(1)
        cluster.call("retry", experiment=experiment)
        cluster.wait(experiment, "done")
        assert (cluster.directory(experiment) / "sgd.safetensors").is_file()
    finally:
        away.close()
        cluster.close()
