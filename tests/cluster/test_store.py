"""Several hosts with a database and a store in common, and no folder: real processes, and a real S3 server."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from safetensors.numpy import load_file

from tests.app.cluster import LONG
from tests.app.databases import postgres_url
from tests.app.runs import assert_same_results, run_alone
from tests.app.servers import serving
from tests.cluster.hosts import Hosts
from tests.cluster.s3 import BUCKET, S3, SECRET
from tests.waiting import until
from valleyscope.app.storage.ids import new_id
from valleyscope.app.storage.object_store import ObjectStore, StoreUnavailable

pytestmark = pytest.mark.long

SPEC: dict[str, Any] = LONG | {
    "name": "apart",
    "minima": {"sgd": {"epochs": 60}, "altsdp": {"optimizer": "altsdp", "target": 0.3, "epochs": 10}},
}
STATE = "work/sgd/training-state.pt"


@pytest.fixture(scope="module")
def hosts(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with closing(Hosts(tmp_path_factory.mktemp("hosts"), f"s3://{BUCKET}/some/prefix", s3.environment)) as found:
        found.start_api()
        found.hire()
        found.hire()
        yield found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_alone(tmp_path_factory.mktemp("undisturbed"), SPEC)


@pytest.fixture(scope="module")
def survived(hosts: Hosts, s3: S3) -> str:
    """An experiment during whose training a host was lost with all that was on it, and then the store for a while."""
    experiment = hosts.submit(SPEC)
    state = f"experiments/{experiment}/{STATE}"
    hosts.until(lambda: hosts.objects.find(state) and len(epochs(hosts, experiment)) > 2)
    known = hosts.objects.find(state)
    hosts.until(lambda: hosts.objects.find(state) != known)  # so it is of a later epoch than those that were told of
    hosts.dismiss(hosts.worker(str(hosts.task(experiment, "train:sgd").worker)))
    hosts.hire()
    hosts.until(lambda: hosts.task(experiment, "train:sgd").attempts == 2)
    with s3.gate.shut():
        hosts.until(lambda: "cannot be reached" in hosts.logs)
        assert hosts.get(experiment).state == "running"
    assert hosts.wait(experiment, "done").error is None
    return experiment


@pytest.fixture(scope="module")
def upload(hosts: Hosts, survived: str) -> str:
    """A checkpoint that somebody uploaded to the API."""
    weights = hosts.copy(survived) / "sgd.safetensors"
    arriving = shutil.copy(weights, hosts.base / "arriving")
    described = {"name": "mine", "model": SPEC["model"], "dataset": "digits"}
    digest = sha256(weights.read_bytes()).hexdigest()
    return str(hosts.call("add_checkpoint", source=str(arriving), sha256=digest, **described))


@pytest.fixture(scope="module")
def adopted(hosts: Hosts, upload: str) -> str:
    """An experiment about the uploaded checkpoint."""
    experiment = hosts.submit(SPEC | {"minima": {"mine": {"checkpoint": upload}}, "curves": {}, "planes": {}})
    hosts.wait(experiment, "done")
    return experiment


def epochs(hosts: Hosts, experiment: str) -> list[int]:
    """The epochs of training that were told of, in the order in which they were."""
    told = [event.data for event in hosts.events(experiment) if event.kind == "epoch"]
    return [data["epoch"] for data in told if data["minimum"] == "sgd"]


def everything(hosts: Hosts, identifier: str) -> list[str]:
    return [
        name for folder in ("experiments", "checkpoints") for name in hosts.objects.list(folder) if identifier in name
    ]


def test_a_run_over_hosts_equals_a_plain_one_though_one_was_lost(
    hosts: Hosts, survived: str, undisturbed: Path
) -> None:
    assert_same_results(undisturbed, hosts.copy(survived))


def test_another_host_goes_on_from_the_state_in_the_store(hosts: Hosts, survived: str) -> None:
    assert epochs(hosts, survived).count(1) == 1, "it began again from the start"
    assert epochs(hosts, survived)[-1] == SPEC["minima"]["sgd"]["epochs"]


def test_only_what_somebody_needs_travels(hosts: Hosts, survived: str) -> None:
    stored = hosts.objects.list(f"experiments/{survived}")
    assert {"landscape.h5", "report.html", "verdict.json", "spec.json", "sgd.safetensors"} <= stored.keys()
    assert not [name for name in stored if name.endswith("-state.pt") or "lock" in name]
    assert not list((hosts.home / "experiments" / survived).glob("*.safetensors")), "the API needs no weights"


def test_an_api_that_lost_its_disk_serves_from_the_store(hosts: Hosts, s3: S3, survived: str, tmp_path: Path) -> None:
    options = ("--database", hosts.url, "--store", hosts.store)
    with serving(tmp_path / "empty", *options, environment=s3.environment) as server:
        path = f"/api/experiments/{survived}"
        names = {file["name"] for file in server.client.get(f"{path}/files").json()["items"]}
        assert {"landscape.h5", "report.html", "sgd.safetensors", "surface.csv"} <= names
        for name in ("landscape.h5", "report.html", "sgd.safetensors"):
            assert server.client.get(f"{path}/files/{name}").content == (hosts.copy(survived) / name).read_bytes()
        assert server.client.get(f"{path}/surface?plane=valley").status_code == 200
        until(lambda: server.client.get("/readyz").json()["checks"]["store"] == "ok")
        with s3.gate.shut():
            until(lambda: _lost_the_store(server.client))
            assert server.client.get(f"{path}/files/landscape.h5").status_code == 200, "what is here can be had"
            missing = server.client.get(f"{path}/files/altsdp.safetensors")
            assert (missing.status_code, missing.json()["code"]) == (503, "no-store")
        assert server.client.get(f"{path}/files/altsdp.safetensors").status_code == 200
        assert SECRET not in server.log


def _lost_the_store(client: httpx.Client) -> bool:
    """Until there is an answer of the store, or none for a while, the one of before counts."""
    answer = client.get("/readyz")
    assert answer.status_code in (200, 503)
    return answer.status_code == 503 and "cannot be reached" in answer.json()["checks"]["store"]


def test_an_upload_is_used_by_a_worker_on_another_host(hosts: Hosts, survived: str, adopted: str) -> None:
    before, after = (hosts.copy(survived) / "sgd.safetensors", hosts.copy(adopted) / "mine.safetensors")
    found = load_file(after)
    assert all((found[name] == value).all() for name, value in load_file(before).items())


def test_what_is_deleted_leaves_no_object(hosts: Hosts, s3: S3, upload: str, adopted: str) -> None:
    assert everything(hosts, adopted)
    with s3.gate.shut():
        hosts.call("delete", experiment=adopted, permanent=True)
        assert [key for key in s3.stored() if adopted in key], "the store was not there"
    hosts.until(lambda: not everything(hosts, adopted))
    hosts.call("remove_checkpoint", identifier=upload)
    assert not everything(hosts, upload)


def test_no_log_has_a_secret_in_it(hosts: Hosts, survived: str) -> None:
    assert "cannot be reached" in hosts.logs, survived
    assert SECRET not in hosts.logs


def test_trouble_is_told_with_its_remedy_and_without_secrets(s3: S3) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist: create its bucket"):
        ObjectStore("s3://no-such-bucket/x").probe()
    s3.demand_credentials(True)
    try:
        with pytest.raises(StoreUnavailable, match=r"does not allow these credentials .*AWS_ACCESS_KEY_ID") as refused:
            ObjectStore(f"s3://{BUCKET}/x").probe()
    finally:
        s3.demand_credentials(False)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    with s3.gate.shut(), pytest.raises(StoreUnavailable, match="cannot be reached"):
        ObjectStore(f"s3://{BUCKET}/x").find(new_id())
    ObjectStore(f"s3://{BUCKET}/x").probe()


@pytest.mark.drill
def test_hosts_and_disks_are_lost_and_the_store_goes_away_at_random_moments(
    s3: S3, undisturbed: Path, tmp_path: Path
) -> None:
    seed = int(os.environ.get("DRILL_SEED", random.randrange(10**6)))
    print(f"DRILL_SEED={seed}")
    chance = random.Random(seed)
    hosts = Hosts(tmp_path, f"s3://{BUCKET}/drill", s3.environment, postgres_url())
    try:
        hosts.start_api()
        for _ in range(3):
            hosts.hire()
        for _ in range(int(os.environ.get("DRILL_ROUNDS", 4))):
            _endure(hosts, s3, chance, undisturbed)
    finally:
        hosts.close()
    assert SECRET not in hosts.logs


def _endure(hosts: Hosts, s3: S3, chance: random.Random, undisturbed: Path) -> None:
    """Run an experiment through three faults, and compare what the store has of it in the end."""
    experiment = hosts.submit(SPEC)
    for fault in chance.choices(("worker", "api", "store"), k=3):
        more = len(hosts.events(experiment)) + chance.randrange(1, 25)
        hosts.until(lambda more=more: len(hosts.events(experiment)) >= more or _has_ended(hosts, experiment))
        if fault == "worker":
            hosts.dismiss(chance.choice(hosts.workers))
            hosts.hire()
        elif fault == "api":
            hosts.kill_api()
            shutil.rmtree(hosts.home)
            hosts.start_api()
        else:
            with s3.gate.shut():
                told = hosts.logs.count("cannot be reached")
                hosts.until(
                    lambda told=told: hosts.logs.count("cannot be reached") > told or _has_ended(hosts, experiment)
                )
    assert hosts.wait(experiment, "done").error is None
    assert_same_results(undisturbed, hosts.copy(experiment))


def _has_ended(hosts: Hosts, experiment: str) -> bool:
    return hosts.get(experiment).state not in ("queued", "running")
