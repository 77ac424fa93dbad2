"""Upgrades: old and new processes side by side, and databases of released versions."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.app.cluster import TINY, Cluster
from tests.app.databases import database, postgres_tool, postgres_url
from tests.app.released import DATA, plain
from tests.app.storage.test_backups import SLOW
from valleyscope.app.experiments.plan import Kind, plan
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.jobs.task_table import contributions_of
from valleyscope.app.storage import migrations
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.migrations import NewerDatabase, Step, migrate, steps

pytestmark = pytest.mark.long

__all__ = ["database"]

NEWER = "import valleyscope.app.jobs.queue as jobs; jobs.GENERATION += 1"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path / "home")
    yield found
    found.close()


def test_new_processes_take_over_work_from_old_ones(cluster: Cluster) -> None:
    cluster.start(workers=1)
    running = cluster.submit(SLOW)
    waiting = cluster.submit(TINY)
    cluster.until(lambda: any(event.kind == "epoch" for event in cluster.events(running)))

    cluster.preamble = NEWER
    (old_worker,) = cluster.workers
    assert cluster.api is not None
    cluster.api.terminate()
    cluster.api.wait(120)
    cluster.start(workers=1)
    cluster.until(lambda: len(cluster.living_workers()) == 2)
    old_worker.terminate()
    assert old_worker.wait(120) == 0

    cluster.wait(running, "done")
    cluster.wait(waiting, "done")
    found = [event.data for event in cluster.events(running) if event.kind == "epoch"]
    for minimum in ("sgd", "other", "third"):
        epochs = [data["epoch"] for data in found if data["minimum"] == minimum]
        assert epochs == sorted(epochs), "it went on from its last state"


def test_an_older_process_does_not_take_work_of_a_newer_one(cluster: Cluster) -> None:
    cluster.preamble = NEWER
    cluster.start_api()
    experiment = cluster.submit(TINY)
    cluster.until(lambda: cluster.task(experiment, "train:sgd").state == "queued")
    cluster.preamble = "pass"
    cluster.start_workers(1)
    cluster.until(lambda: len(cluster.living_workers()) == 1)
    with pytest.raises(AssertionError, match="did not happen"):
        cluster.until(lambda: cluster.task(experiment, "train:sgd").state != "queued", timeout=3)


def load(script: Path, home: Path) -> str | None:
    """Make a database of a script; returns its address where it is not the one under the home."""
    if script.stem.endswith(".sqlite"):
        with closing(sqlite3.connect(home / "valley.db")) as connection:
            connection.executescript(script.read_text(encoding="utf-8"))
            connection.commit()
        return None
    url = postgres_url()
    command = [postgres_tool("psql"), "--quiet", "--set=ON_ERROR_STOP=1", "--file", script, plain(url)]
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
    return url


def link_home(cluster: Cluster) -> None:
    """Give the home the id that the database has for it, if it has one."""
    with cluster.database.read() as connection:
        if sa.inspect(connection).has_table("valley_identity"):
            id = connection.execute(sa.text("SELECT id FROM valley_identity")).scalar_one()
            (cluster.home / "identity").write_text(f"{id}\n", encoding="utf-8")


def old_databases() -> Iterator[Any]:
    """The release on both databases in every run of the tests; the steps before and between in the drills."""
    for script in sorted(DATA.glob("*.sql")):
        yield pytest.param(script, id=script.stem, marks=[] if "released" in script.stem else pytest.mark.drill)


@pytest.mark.parametrize("script", old_databases())
def test_a_database_of_an_earlier_version_is_upgraded(script: Path, tmp_path: Path) -> None:
    """Of releases, and of the first step. Each has an experiment that was cancelled, and one that waits and is run."""
    home = tmp_path / "home"
    home.mkdir()
    cluster = Cluster(home, load(script, home))
    try:
        with cluster.database.read() as connection:
            found = connection.execute(sa.text("SELECT name, id FROM valley_experiments")).all()
        names = {str(row.name): str(row.id) for row in found}
        assert names.keys() - {"done"} == {"cancelled", "waiting"}
        link_home(cluster)
        cluster.start(workers=1)
        assert cluster.wait(names["waiting"], "done").verdict_kind
        assert cluster.get(names["cancelled"]).state == "cancelled"
        by_network = cluster.experiment_table.list(sort="model").items
        assert {row.id for row in by_network} == set(names.values())
        with cluster.database.read() as connection:
            networks = connection.execute(sa.text("SELECT model FROM valley_experiments")).scalars()
            assert set(networks) == {"mlp hidden=[8]"}
        if "done" in names:
            with cluster.database.read() as connection:
                [contribution] = contributions_of(connection, names["done"])
            # Versions before wrote no compact networks.
            known = [task for task in plan(Spec.model_validate(TINY)) if task.kind is not Kind.COMPACT]
            assert contribution.tasks == len(known)
        with cluster.database.read() as connection:
            versions = connection.execute(sa.text("SELECT max(version) FROM valley_version")).scalar()
        assert versions == max(steps())
    finally:
        cluster.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_there_is_a_fixture_of_the_current_release(kind: str) -> None:
    from importlib.metadata import version

    assert (DATA / f"released-{version('valleyscope')}.{kind}.sql").is_file(), "make it by python -m tests.app.released"


@pytest.mark.parametrize("script", sorted(DATA.glob("*.sql")), ids=lambda path: path.stem)
def test_every_step_applies_to_a_database_of_an_earlier_version(script: Path, tmp_path: Path) -> None:
    address = load(script, tmp_path)
    found = Database(address or f"sqlite:///{tmp_path / 'valley.db'}")
    assert migrate(found) == max(steps())
    with found.read() as connection:
        rows = connection.execute(sa.text("SELECT name, model FROM valley_experiments")).all()
    found.close()
    assert {row.name for row in rows} - {"done"} == {"cancelled", "waiting"}
    assert {row.model for row in rows} == {"mlp hidden=[8]"}


def newer(monkeypatch: pytest.MonkeyPatch, suits: int) -> int:
    """A program with one step more, which adds a column."""
    number = max(steps()) + 1

    def apply(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE valley_processes ADD COLUMN colour VARCHAR(10)"))

    monkeypatch.setattr(migrations, "steps", lambda: {**steps(), number: Step(apply, suits)})
    return number


def test_an_older_version_works_after_a_compatible_migration(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = max(steps())
    with monkeypatch.context() as newer_program:
        number = newer(newer_program, suits=known)
        assert migrate(database) == number
    assert migrate(database) == number
    with database.read() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM valley_version")).scalar() == number


def test_an_older_version_is_refused_after_an_incompatible_migration(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer_program:
        newer(newer_program, suits=max(steps()) + 1)
        migrate(database)
    with pytest.raises(NewerDatabase, match="upgrade valleyscope"):
        migrate(database)


def test_the_first_version_table_gets_its_column(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "valley.db")) as connection:
        connection.execute("CREATE TABLE valley_version (version INTEGER NOT NULL)")
    found = Database(f"sqlite:///{tmp_path / 'valley.db'}")
    assert migrate(found) == max(steps())
    found.close()
