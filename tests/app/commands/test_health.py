"""`valley health`: says what is wrong by its exit code and in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.app.cluster import Cluster
from tests.app.servers import Server
from valleyscope.app.commands.health import check_health
from valleyscope.app.settings import BadSettings, Settings
from valleyscope.app.worker.health_file import HealthFile, Unhealthy, check_health_file


def test_a_running_server_is_well_and_a_stopped_one_is_not(bare: Server) -> None:
    host, port = bare.url.removeprefix("http://").split(":")
    settings = Settings.load(home=bare.home, host=host, port=int(port))
    assert "is ready" in check_health(settings, "api")
    with pytest.raises(Unhealthy, match="does not answer"):
        check_health(Settings.load(home=bare.home, port=1), "api")


def test_a_server_that_listens_everywhere_is_asked_on_loopback(bare: Server) -> None:
    port = int(bare.url.rsplit(":", 1)[1])
    assert "127.0.0.1" in check_health(Settings.load(home=bare.home, host="0.0.0.0", port=port), "api")


def test_a_heartbeat_is_well_while_its_worker_lives_and_is_fresh(tmp_path: Path) -> None:
    path = tmp_path / "beat"
    with pytest.raises(Unhealthy, match="no worker has started"):
        check_health_file(path)
    heartbeat = HealthFile(path, "worker-1")
    assert check_health_file(path) == "worker-1"
    with pytest.raises(ValueError, match="another worker"):
        HealthFile(path, "worker-2")
    os.truncate(path, 0)
    with pytest.raises(Unhealthy, match="has not written its state yet"):
        check_health_file(path)
    path.write_text("worker-1\n")
    os.utime(path, (time.time() - 100, time.time() - 100))
    with pytest.raises(Unhealthy, match=r"worker-1 was last well 1\d\d s ago"):
        check_health_file(path)
    heartbeat.beat()
    assert check_health_file(path) == "worker-1"
    heartbeat.end()
    with pytest.raises(Unhealthy, match="it has ended"):
        check_health_file(path)


def test_the_check_of_a_worker_needs_the_file(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="VALLEY_HEARTBEAT"):
        check_health(Settings.load(home=tmp_path), "worker")


def test_a_real_worker_beats_and_its_death_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beat = tmp_path / "beat"
    monkeypatch.setenv("VALLEY_HEARTBEAT", str(beat))
    cluster = Cluster(tmp_path / "home")
    try:
        cluster.start(workers=1)
        cluster.until(lambda: _well(beat))
        first = beat.stat().st_mtime
        cluster.until(lambda: beat.stat().st_mtime > first)
        command = [sys.executable, "-m", "valleyscope.app.cli", "health", "worker"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        cluster.kill_worker()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "is dead" in done.stderr
    finally:
        cluster.close()


def _well(path: Path) -> bool:
    try:
        check_health_file(path)
    except Unhealthy:
        return False
    return True
