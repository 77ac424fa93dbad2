"""Disk errors: the home of a server, with its database, is on a small disk that fills up or becomes read-only."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.cluster import TINY
from tests.app.runs import assert_same_results, valley
from tests.app.servers import Server, serving
from tests.waiting import until

_ALONE = ("unshare", "--map-root-user", "--mount")


def small_disk(home: Path) -> tuple[str, ...]:
    """A command that runs another one in a mount namespace of its own, with a small disk as the home."""
    if subprocess.run([*_ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs user namespaces, which this machine does not allow")
    home.mkdir()
    return (*_ALONE, "sh", "-c", f'mount -t tmpfs -o size=32m tmpfs {home} && exec "$@"', "sh")


@dataclass
class Disk:
    """The small disk of a running server."""

    server: Server

    def inside(self, command: str) -> None:
        """Run a command where the disk is mounted."""
        there = ("nsenter", f"--target={self.server.process.pid}", "--user", "--preserve-credentials", "--mount")
        subprocess.run([*there, "sh", "-c", command], check=True, capture_output=True)

    def fill(self) -> None:
        self.inside(f"dd if=/dev/zero of={self.server.home}/ballast bs=4k 2> /dev/null || true")

    def leave_room(self, megabytes: int) -> None:
        self.inside(f"truncate --size=-{megabytes}M {self.server.home}/ballast")

    def empty(self) -> None:
        self.inside(f"rm {self.server.home}/ballast")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    home = tmp_path / "home"
    with serving(home, workers=1, prefix=small_disk(home)) as server:
        until(lambda: workers(server))
        yield Disk(server)


def workers(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.client.get("/api/workers").json()["items"]
    return found


def retried(disk: Disk, id: str, undisturbed: Path, target: Path) -> None:
    """Run an experiment again: it ends as if nothing had happened."""
    server = disk.server
    assert server.client.post(f"/api/experiments/{id}/retry").status_code == 202
    row = server.wait(id)
    assert row["state"] == "done", row["error"]
    disk.inside(f"cp -r {server.directory(id)} {target}/")
    assert_same_results(undisturbed, target / id)


def test_disk_errors_are_reported_and_clear_once_the_cause_is_fixed(
    disk: Disk, undisturbed: Path, tmp_path: Path
) -> None:
    server = disk.server
    id = server.submit(TINY)
    disk.fill()

    for refused in (
        server.client.post("/api/experiments", json=TINY),
        server.client.post(f"/api/experiments/{id}/cancel"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (507, "disk-full")
        assert refused.headers["content-type"] == "application/problem+json"
    ready = server.client.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["home"]) == (503, "No space left on device")
    for path in ("/healthz", "/api/experiments", f"/api/experiments/{id}", "/metrics"):
        assert server.client.get(path).status_code == 200
    [before] = workers(server)
    os.kill(before["pid"], signal.SIGKILL)
    until(lambda: "a worker ended with code -9 and is restarted" in server.log)
    until(lambda: server.log.count('"valleyscope.app.storage.database", "message": "the database refuses') >= 1)

    disk.leave_room(4)  # the database can be written again, a report cannot
    row = server.wait(id)
    assert row["state"] == "failed"
    assert "No space left on device" in row["error"]
    assert "retry when the cause is gone" in row["error"]
    until(lambda: [after["pid"] for after in workers(server)] != [before["pid"]])

    disk.empty()
    assert server.client.get("/readyz").status_code == 200
    retried(disk, id, undisturbed, tmp_path)
    assert "Traceback" not in server.log

    disk.inside(f"mount --bind -o ro {server.home}/experiments {server.home}/experiments")
    spare = server.submit(TINY)
    assert "Read-only file system" in server.wait(spare)["error"]
    assert server.client.delete(f"/api/experiments/{id}").status_code == 204
    assert server.client.get(f"/api/experiments/{id}").status_code == 404
    disk.inside(f"umount {server.home}/experiments")
    retried(disk, spare, undisturbed, tmp_path)
    assert "Traceback" not in server.log


@pytest.mark.parametrize(
    "fault", ["dd if=/dev/zero of={home}/ballast bs=4k 2> /dev/null", "mount -o remount,ro {home}"]
)
def test_a_server_does_not_start_on_a_disk_that_it_cannot_write(tmp_path: Path, fault: str) -> None:
    home = tmp_path / "home"
    command = (*small_disk(home), "sh", "-c", f'{fault.format(home=home)}; exec "$@"', "sh")
    done = subprocess.run(
        [*command, *valley("serve", "--home", home, "--port", 0)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"valley: home='{home}' cannot be written (")
    assert "--home" in done.stderr
    assert "Traceback" not in done.stderr


def test_submissions_are_refused_while_only_the_database_can_be_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    elsewhere = f"sqlite:///{tmp_path / 'valley.db'}"  # as Postgres is
    with serving(home, "--database", elsewhere, prefix=small_disk(home)) as server:
        disk, id = Disk(server), server.still(TINY)
        again = f"/api/experiments/{id}/retry"
        disk.fill()
        _refused(server, again, 507, "disk-full", "No space left on device")
        disk.empty()
        disk.inside(f"mount -o remount,ro {home}")
        _refused(server, again, 503, "read-only", "Read-only file system")
        disk.inside(f"mount -o remount,rw {home} && mv {home}/identity {home}/aside")
        _refused(server, again, 503, "no-home", "is not linked to this database")
        assert f"home='{home}' does not belong to this database" in server.log
        disk.inside(f"mv {home}/aside {home}/identity")
        until(lambda: server.client.get("/readyz").status_code == 200)
        assert _ready(server) == {"database": 1.0, "home": 1.0}
        server.submit(TINY)
        assert server.client.post(again).status_code == 202


def _refused(server: Server, again: str, status: int, code: str, words: str) -> None:
    time.sleep(1.1)  # what was found a second ago is believed
    for answer in (server.client.post("/api/experiments", json=TINY), server.client.post(again)):
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    ready = server.client.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["home"]) == (503, words)
    assert _ready(server) == {"database": 1.0, "home": 0.0}
    assert server.client.get("/api/experiments").status_code == 200


def _ready(server: Server) -> dict[str, float]:
    families = text_string_to_metric_families(server.client.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    assert [sample for sample in samples if sample.name == "valley_home_free_bytes"]
    return {sample.labels["check"]: sample.value for sample in samples if sample.name == "valley_ready"}
