"""Servers that drills share: one Postgres for a test process, with a database for each, and one S3 for a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.postgres import Postgres
from tests.cluster.s3 import S3, serving_s3


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    found = Postgres()
    yield found
    found.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """With its credentials in the environment."""
    with serving_s3() as found, pytest.MonkeyPatch.context() as patch:
        for name, value in found.environment.items():
            patch.setenv(name, value)
        yield found
