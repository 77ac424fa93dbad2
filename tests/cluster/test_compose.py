"""docker-compose.yml: valid, closed but for one port, and rehearsed as it stands there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.cluster import LONG
from tests.app.servers import TINY
from tests.cluster.compose_file import COMPOSE_FILE, HOUSE, read_choices, read_compose, read_document, variables
from tests.cluster.compose_run import Rehearsal, make_secrets, rehearsing
from tests.cluster.sandbox import PREFIX, can_confine, confinement
from tests.waiting import until
from valleyscope.app.cli import _parser
from valleyscope.app.settings import Settings

SLOW = {**LONG, "name": "slow"}


def test_the_file_fits_the_schema_of_compose() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE_FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_only_the_port_of_the_api_is_published_and_on_loopback_by_default(profile: str) -> None:
    services = read_compose(profile, {})
    assert {name for name, service in services.items() if service.published} == {"api"}
    assert services["api"].published == [("127.0.0.1", 8360, 8360)]


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_every_service_is_looked_after_and_limited(profile: str) -> None:
    services = read_compose(profile, {})
    assert len(services) == 3
    for name, service in services.items():
        definition = service.definition
        assert definition["restart"] == "unless-stopped", name
        assert definition["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}, name
        assert definition["logging"]["options"]["max-size"], name
        assert service.healthcheck, name
        if service.image is not None:
            assert definition["read_only"] is True, name
            assert definition["cap_drop"] == ["ALL"], name
            assert service.image.user not in (None, "root", "0"), name


def test_the_grace_period_is_longer_than_a_worker_needs_to_hand_its_task_back() -> None:
    from valleyscope.app.jobs.orchestrator_pool import _STOP_SECONDS
    from valleyscope.app.shutdown import SHUTDOWN_SECONDS as EXIT_SECONDS
    from valleyscope.app.worker.task_executor import SHUTDOWN_SECONDS

    for profile, worker in (("cpu", "worker"), ("gpu", "worker-gpu")):
        services = read_compose(profile, {})
        assert services[worker].grace >= 2 * SHUTDOWN_SECONDS + 10
        assert services["api"].grace >= 2 * _STOP_SECONDS + 10
        assert min(services[worker].grace, services["api"].grace) >= EXIT_SECONDS + 10


def test_a_gpu_worker_is_a_worker_with_a_device() -> None:
    plain, gpu = read_compose("cpu", {})["worker"], read_compose("gpu", {})["worker-gpu"]
    (device,) = gpu.definition["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert gpu.command == ["valley", "worker", "--device", "gpu"]
    own = {"image", "build", "command", "deploy", "profiles"}
    assert {k: v for k, v in gpu.definition.items() if k not in own} == {
        k: v for k, v in plain.definition.items() if k not in own
    }
    assert gpu.image is not None
    assert gpu.image.environment["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"


def test_no_secret_is_in_the_environment_of_a_service() -> None:
    document = read_document({})
    for service in document["services"].values():
        for name, value in service.get("environment", {}).items():
            secret = any(word in name for word in ("KEY", "PASSWORD", "SECRET", "TOKEN"))
            assert not secret or name.endswith("_FILE"), name
            if name.endswith("_FILE"):
                assert value.removeprefix("/run/secrets/") in service["secrets"]
    assert all(set(secret) == {"file"} for secret in document["secrets"].values())


def test_every_setting_in_the_file_is_one_of_the_program() -> None:
    known = {f"VALLEY_{name.upper()}" for name in Settings.model_fields}
    for profile in ("cpu", "gpu"):
        for service in read_compose(profile, {}).values():
            given = {name.removesuffix("_FILE") for name in service.environment if name.startswith("VALLEY_")}
            assert given <= known


def test_the_example_has_every_choice_with_its_default() -> None:
    choices = read_choices()
    assert choices.keys() == variables()
    assert read_document(choices) == read_document({})


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_a_store_and_a_postgres_elsewhere_reach_every_program(profile: str, tmp_path: Path) -> None:
    elsewhere = "postgresql://valley@db.example.org:5432/valley"
    file = tmp_path / "store.env"
    file.write_text("VALLEY_STORE=s3://bucket/prefix\nAWS_ACCESS_KEY_ID=one\nVALLEY_LOG_LEVEL=DEBUG\n")
    services = read_compose(profile, {"VALLEY_DATABASE": elsewhere, "VALLEY_STORE_FILE": str(file)})
    programs = [service for service in services.values() if service.image is not None]
    assert len(programs) == 2
    for service in programs:
        assert service.environment["VALLEY_DATABASE"] == elsewhere
        assert service.environment["VALLEY_STORE"] == "s3://bucket/prefix"
        assert service.environment["AWS_ACCESS_KEY_ID"] == "one"
        assert service.environment["VALLEY_LOG_LEVEL"] == "INFO", "what the file says itself comes first"
    assert "VALLEY_STORE" not in services["postgres"].environment
    assert "VALLEY_STORE" not in read_compose(profile, {})["api"].environment, "the file need not be there"


def test_secrets_are_made_once_and_closed_to_others(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    found = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert found.keys() == read_document({})["secrets"].keys()
    assert all(len(text) == 48 and text.isalnum() for text in found.values())
    assert len(set(found.values())) == 2
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o777 == 0o444 for path in (tmp_path / "secrets").iterdir())
    make_secrets(tmp_path / "secrets")
    assert found == {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}


def test_a_confined_process_is_nobody_and_writes_only_where_it_may(tmp_path: Path) -> None:
    """Says nothing where the tests do not run as root: then the rehearsal is without these two limits."""
    if not can_confine():
        return
    with tempfile.TemporaryDirectory(prefix="valley-confined-") as base:
        Path(base).chmod(0o755)
        allowed = Path(base) / "allowed"
        allowed.mkdir()
        allowed.chmod(0o777)
        script = f"import os, app, subprocess, sys; open({str(allowed / 'file')!r}, 'w'); print(os.getuid())\n"
        script += "subprocess.run([sys.executable, '-c', 'import torch'], check=True)\n"
        script += f"open({str(tmp_path / 'file')!r}, 'w')"
        tmp_path.chmod(0o777)
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(allowed)}  # which libraries of torch look for
        environment |= confinement(Path(base) / "spare", HOUSE, [allowed])
        done = subprocess.run(
            [*PREFIX, sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
    assert done.stdout == "65534\n", done.stderr
    assert "Read-only file system" in done.stderr or "Permission denied" in done.stderr


@pytest.fixture(scope="module")
def stack() -> Iterator[Rehearsal]:
    """`make secrets; cp .env.example .env; docker compose --profile cpu up --scale worker=2`."""
    with tempfile.TemporaryDirectory(prefix="valley-compose-") as folder:  # pytest's are closed to other users
        Path(folder).chmod(0o755)
        yield from _rehearsed(Path(folder))


def _rehearsed(base: Path) -> Iterator[Rehearsal]:
    make_secrets(base / "made")
    choices = read_choices() | {
        "VALLEY_SECRETS": str(base / "made"),
        "VALLEY_ALLOWED_MODELS": "tests.app.plugins:slow",
    }
    extra = {"PYTHONPATH": str(HOUSE)}
    with rehearsing(base, "cpu", choices, {"worker": 2}, extra=extra) as found:
        found.up()
        for container in found.containers.values():
            container.wait_until_healthy()
        yield found


@pytest.fixture(scope="module")
def client(stack: Rehearsal) -> Iterator[httpx.Client]:
    (host, outer, _), *_ = stack.services["api"].published
    assert host == "127.0.0.1"
    key = (stack.containers["api-1"].folders["/tmp"].parents[1] / "made" / "api_key").read_text()
    with httpx.Client(base_url=stack.address("api", outer), headers={"X-API-Key": key}, timeout=150) as found:
        yield found


class TestRehearsal:
    """One installation, in the order in which an operator meets it."""

    def test_without_the_key_nothing_is_answered(self, client: httpx.Client) -> None:
        assert httpx.get(f"{client.base_url}/api/experiments").status_code == 401
        assert client.get("/api/experiments").status_code == 200

    def test_both_workers_are_there_and_an_experiment_is_done(self, stack: Rehearsal, client: httpx.Client) -> None:
        until(lambda: len(client.get("/api/workers").json()["items"]) == 2)
        made = client.post("/api/experiments", json=TINY)
        assert made.status_code == 202, made.text
        id = made.json()["id"]
        row = until(lambda: _ended(client, id))
        assert row["state"] == "done", row["error"]
        home = stack.containers["api-1"].folders["/var/lib/valleyscope"]
        assert (home / "experiments" / id / "landscape.h5").is_file()
        if can_confine():
            assert (home / "experiments" / id).stat().st_uid != 0

    def test_a_command_in_the_container_of_the_api_has_the_key(self, stack: Rehearsal) -> None:
        api = stack.containers["api-1"]
        command = [str(Path(sys.executable).with_name("valley")), "jobs"]
        server = {"VALLEY_SERVER": stack.address("api", 8360)}
        done = subprocess.run(
            [*api.prefix, *command], env=api.environment | server, capture_output=True, text=True, cwd="/", check=False
        )
        assert done.returncode == 0, done.stderr
        assert "tiny" in done.stdout

    def test_a_killed_service_is_unhealthy_and_healthy_again_after_its_restart(self, stack: Rehearsal) -> None:
        killed = [stack.containers["worker-2"], stack.containers["api-1"]]
        for container in killed:
            container.wait_until_healthy()
        for container in killed:
            container.kill()
        assert [container.check() for container in killed] == [1, 1]
        for container in killed:
            container.start()
        for container in killed:
            container.wait_until_healthy()

    def test_everything_stops_in_time_and_a_running_task_goes_back_into_the_queue(
        self, stack: Rehearsal, client: httpx.Client
    ) -> None:
        made = client.post("/api/experiments", json=SLOW)
        assert made.status_code == 202, made.text
        id = made.json()["id"]
        until(lambda: any(row["experiment"] == id for row in client.get("/api/workers").json()["items"]))
        assert stack.stop("worker") == [0, 0]
        until(lambda: client.get("/api/workers").json()["items"] == [])
        queue = client.get("/api/queue").json()["items"]
        assert {row["experiment"] for row in queue} == {id}
        assert all(worker.check() == 1 for worker in stack.replicas("worker"))
        (api,), (postgres,) = stack.replicas("api"), stack.replicas("postgres")
        assert stack.stop("api") == [0], api.text
        assert api.check() == 1
        assert stack.stop("postgres") == [0], postgres.text
        assert postgres.check() != 0

    def test_no_secret_is_in_a_log(self, stack: Rehearsal) -> None:
        base = stack.containers["api-1"].log.parent
        logs = list(base.glob("*.log"))
        assert len(logs) == 4
        for secret in (base / "made").iterdir():
            assert all(secret.read_text() not in log.read_text(errors="replace") for log in logs), secret.name


def _ended(client: httpx.Client, id: str) -> dict[str, Any] | None:
    row: dict[str, Any] = client.get(f"/api/experiments/{id}").json()
    return row if row["state"] in ("done", "failed", "cancelled") else None


def test_the_five_commands_of_the_readme_are_about_what_is_there() -> None:
    text = (HOUSE / "README.md").read_text(encoding="utf-8")
    section = text.split("Three GPU workers, with Docker")[1].split("\n## ")[0]
    commands = [line.partition("#")[0].split() for line in section.splitlines() if line.startswith("    ")]
    assert len(commands) == 5
    makefile = (HOUSE / "Makefile").read_text(encoding="utf-8")
    services = read_compose("gpu", {})
    for words in commands:
        match words:
            case ["make", target]:
                assert f"\n{target}:" in makefile
            case ["docker", "compose", "exec", service, "valley", *arguments]:
                assert service in services
                _parser().parse_args(arguments)
            case ["docker", "compose", "--profile", "gpu", "build"]:
                pass
            case ["docker", "compose", "--profile", "gpu", "up", "--detach", "--wait", "--scale", scale]:
                assert scale == "worker-gpu=3"
                assert "worker-gpu" in services
            case _:
                raise AssertionError(f"unknown: {words}")
