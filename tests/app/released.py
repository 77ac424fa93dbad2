"""Writes the database of this version as a fixture: `python -m tests.app.released`, once for each release, never again.

It has an experiment that was cancelled and one that waits in the queue, with the jobs of DBOS that belong to them.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from tests.app.cluster import TINY, Cluster


def main() -> None:
    target = Path(__file__).parent / "data" / f"released-{version('valleyscope')}.sql"
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        cluster.start_api()
        ended = cluster.submit(TINY | {"name": "cancelled"})
        cluster.call("cancel", experiment=ended)
        cluster.wait(ended, "cancelled")
        cluster.submit(TINY | {"name": "waiting"})
        cluster.close()
        with closing(sqlite3.connect(Path(folder) / "valley.db")) as connection:
            target.write_text("\n".join(connection.iterdump()) + "\n", encoding="utf-8")
    print(target, target.stat().st_size)


if __name__ == "__main__":
    main()
