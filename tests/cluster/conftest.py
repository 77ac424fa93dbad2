"""One Postgres server for all drills of a test process; each has a database of its own on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    found = Postgres()
    yield found
    found.close()
