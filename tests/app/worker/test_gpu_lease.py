"""Workers on GPUs: each takes one that no other has. The driver's nvidia-smi is played by a script."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.app.cluster import Cluster
from tests.app.databases import database, postgres_url
from tests.waiting import until
from valleyscope.app.jobs import leases
from valleyscope.app.settings import BadSettings
from valleyscope.app.storage.database import Database, lock_key
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.worker.gpu_lease import lease_gpu

__all__ = ["database"]

GPUS = [f"{number}, GPU-{letter * 4}, Card, 10, 100" for number, letter in enumerate("abc")]
ANY = "import valleyscope.app.worker.worker as w; w.run_worker.__kwdefaults__['device'] = 'gpu'"


@pytest.fixture(autouse=True)
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """Puts a program before all others that answers as nvidia-smi does."""

    def answer(lines: list[str]) -> None:
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text("\n".join(["#!/bin/sh", "cat <<END", *lines, "END", ""]))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    answer(GPUS)
    return answer


def test_each_claim_is_of_another_gpu_until_none_is_left(database: Database) -> None:
    claims = [lease_gpu(database) for _ in range(3)]
    assert [claim.shown for claim in claims] == ["cuda:0", "cuda:1", "cuda:2"]
    assert claims[2].pinned == "cuda:GPU-cccc"
    with pytest.raises(BadSettings, match="all 3 here have a worker"):
        lease_gpu(database)
    claims[1].lease.release()
    again = lease_gpu(database)
    assert again.gpu.uuid == "GPU-bbbb"
    for claim in (claims[0], again, claims[2]):
        claim.lease.release()


def test_a_worker_learns_that_its_gpu_was_taken_while_its_lease_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of Postgres may end while its worker lives; who waited for the lease has it first."""
    monkeypatch.setattr(leases, "_RIVAL_SECONDS", 0.5)
    found = Database(postgres_url())
    with found.exclusive("start"):
        migrate(found)
    notified = threading.Event()
    claim = lease_gpu(found, on_taken=notified.set)
    key = lock_key("gpu-GPU-aaaa")
    halves = {"high": (key >> 32) & (2**32 - 1), "low": key & (2**32 - 1)}
    rival = found.engine.connect()
    waiting = threading.Thread(
        target=rival.execute, args=(sa.text("SELECT pg_advisory_lock(:key)"), {"key": key}), daemon=True
    )
    waiting.start()
    held = "FROM pg_locks WHERE classid = :high AND objid = :low"
    with found.write() as connection:
        until(lambda: connection.execute(sa.text(f"SELECT count(*) {held}"), halves).scalar() == 2)
        connection.execute(sa.text(f"SELECT pg_terminate_backend(pid) {held} AND granted"), halves)
    assert notified.wait(120)
    waiting.join(120)
    claim.lease.release()
    rival.invalidate()
    rival.close()
    found.close()


def test_without_a_gpu_the_remedy_is_named(tmp_path: Path, driver: Callable[[list[str]], None]) -> None:
    driver([])
    found = Database(f"sqlite:///{tmp_path / 'valley.db'}")
    with pytest.raises(BadSettings, match="--device cpu"):
        lease_gpu(found)
    found.close()


def test_real_workers_take_a_gpu_each_and_give_it_back_when_killed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "home", preamble=ANY)
    try:
        cluster.start(2)
        cluster.until(lambda: len(cluster.living_workers()) == 2)
        assert sorted(row.device for row in cluster.living_workers()) == ["cuda:0", "cuda:1"]
        cluster.kill_worker()
        cluster.until(lambda: len(cluster.living_workers()) == 1)
        cluster.start_workers(2)
        cluster.until(lambda: len(cluster.living_workers()) == 3)
        assert sorted(row.device for row in cluster.living_workers()) == ["cuda:0", "cuda:1", "cuda:2"]
    finally:
        cluster.close()
