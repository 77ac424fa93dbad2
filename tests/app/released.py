"""Write databases of this version as fixtures: run `python -m tests.app.released` once per release.

Each has a cancelled experiment and a queued one, with their DBOS jobs.
"""

from __future__ import annotations

import sqlite3
import subprocess
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import sqlalchemy as sa

from tests.app.cluster import TINY, Cluster
from tests.app.databases import postgres_tool, postgres_url

DATA = Path(__file__).parent / "data"


def fill(cluster: Cluster) -> None:
    cluster.start_api()
    ended = cluster.submit(TINY | {"name": "cancelled"})
    cluster.call("cancel", experiment=ended)
    cluster.wait(ended, "cancelled")
    cluster.submit(TINY | {"name": "waiting"})
    cluster.close()


def sqlite_script(folder: Path) -> str:
    fill(Cluster(folder))
    with closing(sqlite3.connect(folder / "valley.db")) as connection:
        return "\n".join(connection.iterdump()) + "\n"


def postgres_script(folder: Path) -> str:
    url = postgres_url()
    fill(Cluster(folder, url))
    options = ["--inserts", "--no-owner", "--no-privileges"]
    dump = [postgres_tool("pg_dump"), *options, "--dbname", plain(url)]
    return subprocess.run([*map(str, dump)], capture_output=True, text=True, check=True).stdout


def plain(url: str) -> str:
    """The URL for the Postgres programs, without a driver name."""
    return sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for kind, script in (("sqlite", sqlite_script), ("postgres", postgres_script)):
        target = DATA / f"released-{version('valleyscope')}.{kind}.sql"
        with tempfile.TemporaryDirectory() as folder:
            target.write_text(script(Path(folder)), encoding="utf-8")
        print(target, target.stat().st_size)


if __name__ == "__main__":
    main()
