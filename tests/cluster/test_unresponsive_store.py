"""A store that is there and never answers holds nobody up: it is told of, waited for, and left behind in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.app.cluster import _HOUSE, LONG
from tests.app.servers import serving
from tests.cluster.s3 import BUCKET, S3
from tests.waiting import until
from valleyscope.app.commands.health import check_health
from valleyscope.app.settings import Settings
from valleyscope.app.shutdown import SHUTDOWN_SECONDS
from valleyscope.app.storage import s3_timeouts
from valleyscope.app.storage.file_store import ObjectStoreReplica
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.object_store import ObjectStore, StoreUnavailable
from valleyscope.app.worker.health_file import Unhealthy

pytestmark = pytest.mark.long

STORE = f"s3://{BUCKET}/silence"
SPEC = LONG | {"minima": {"sgd": {"epochs": 600}}, "curves": {}, "planes": {}}


def test_every_call_ends_and_says_that_the_store_cannot_be_reached(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    (tmp_path / "large").write_bytes(bytes(17 * 2**20))
    objects = ObjectStore(STORE)
    objects.probe()
    calls = {
        "list": lambda: objects.list("experiments"),
        "find": lambda: objects.find("experiments/one"),
        "check": objects.check,
        "probe": objects.probe,
        "put": lambda: objects.put("experiments/one", tmp_path / "file"),
        "get": lambda: objects.get("experiments/one", tmp_path / "copy"),
        "remove": lambda: objects.remove("experiments/one"),
    }
    with s3.gate.mute(), monkeypatch.context() as hasty:
        hasty.setattr(s3_timeouts, "REQUEST_SECONDS", 0.3)  # only where no answer comes: others may take longer
        for name, call in calls.items():
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                call()
            assert time.monotonic() - began < 60, name
    objects.put("experiments/one", tmp_path / "large")
    assert objects.list("experiments")["one"].size == 17 * 2**20


def test_trouble_is_known_within_seconds_and_gone_with_its_cause(s3: S3, tmp_path: Path) -> None:
    replica = ObjectStoreReplica(ObjectStore(STORE), Home(tmp_path))
    until(lambda: replica.problem() is None)  # a busy machine may have no answer in the seconds that are waited for it
    with s3.gate.mute():
        replica._check_started = None
        for _ in range(2):
            began = time.monotonic()
            assert "does not answer" in str(replica.problem())
            assert time.monotonic() - began < s3_timeouts.REQUEST_SECONDS, "as long as a single request may take"
    until(lambda: replica.problem() is None)


def test_a_service_tells_of_a_silent_store_and_leaves_it_behind(s3: S3, tmp_path: Path) -> None:
    store = f"{STORE}-of-a-service"  # nobody else's: a new database refuses a store that has experiments
    environment = {**s3.environment, "VALLEY_STORE": store, "VALLEY_ALLOWED_MODELS": str(SPEC["model"]["name"])}
    home = tmp_path / "home"
    with serving(home, environment=environment) as server:
        database = f"sqlite:///{home / 'valley.db'}"
        command = [
            sys.executable,
            "-m",
            "valleyscope.app.cli",
            "worker",
            "--home",
            str(tmp_path / "far"),
            "--database",
            database,
        ]
        with (tmp_path / "worker.log").open("w", encoding="utf-8") as log:
            worker = subprocess.Popen(command, cwd=_HOUSE, env=os.environ | environment, stderr=log)
        id = server.submit(SPEC)
        server.wait(id, "running")
        objects, state = ObjectStore(store), f"experiments/{id}/work/sgd/training-state.pt"
        until(lambda: objects.find(state), complaint=lambda: (tmp_path / "worker.log").read_text(encoding="utf-8"))
        host, port = server.url.removeprefix("http://").split(":")
        settings = Settings.load(home=home, host=host, port=int(port))
        until(lambda: _ready(settings), complaint=lambda: server.log)
        with s3.gate.mute():
            time.sleep(5.5)  # until the last answer is too old to be given again
            ready = server.client.get("/readyz", timeout=s3_timeouts.REQUEST_SECONDS)
            assert ready.status_code == 503
            assert "does not answer" in ready.json()["checks"]["store"]
            with pytest.raises(Unhealthy, match=r"the store .* does not answer"):
                check_health(settings, "api")
            began = time.monotonic()
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(SHUTDOWN_SECONDS + 60) == 0
            assert time.monotonic() - began < SHUTDOWN_SECONDS
            assert server.client.get(f"/api/experiments/{id}").json()["state"] == "running"
            assert server.stop() == 0
            assert "Traceback" not in server.log


def _ready(settings: Settings) -> bool:
    try:
        return "is ready" in check_health(settings, "api")
    except Unhealthy:
        return False
