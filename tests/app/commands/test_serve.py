"""`valley serve` and the commands against it: a real server, real workers, ended cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.app.runs import valley
from tests.app.servers import TINY, Server, serving
from tests.waiting import until
from valleyscope.app.commands.client import Client, Refused, Unreachable
from valleyscope.app.commands.serve import listen
from valleyscope.app.settings import Settings

HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"


def read_until(terminal: int, mark: bytes | None = None) -> bytes:
    """What is written to a terminal up to a mark, or to the end."""
    written = b""
    while mark is None or mark not in written:
        try:
            written += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
    return written


def has_ended(process: psutil.Process) -> bool:
    """Also a zombie that its parent has not reaped yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def environment_of(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.NoSuchProcess:  # it has ended
        return {}


def call(server: Server, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command of `valley` against the server."""
    environment = {**os.environ, "VALLEY_SERVER": server.url, "COLUMNS": "200"}
    return subprocess.run(valley(*arguments), capture_output=True, text=True, env=environment, timeout=200, check=False)


def test_small_answers_leave_at_once_on_connections_that_are_kept(tmp_path: Path) -> None:
    """Without TCP_NODELAY the second and every further answer on a connection takes 40 ms."""

    async def delays() -> bool:
        accepted: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        with listen(Settings.load(home=str(tmp_path), port=0)) as door:
            server = await asyncio.start_server(
                lambda _, writer: accepted.set_result(writer.get_extra_info("socket")), sock=door
            )
            async with server:
                _, writer = await asyncio.open_connection(*door.getsockname())
                immediate = (await accepted).getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                writer.close()
        return not immediate

    assert not asyncio.run(delays())


def test_a_local_worker_ends_with_its_server() -> None:
    program = (
        "import signal; from valleyscope.app.worker.supervisor import watch_parent; watch_parent(); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(120) == -signal.SIGTERM


def test_the_api_process_has_no_torch_and_starts_within_two_seconds(tmp_path: Path) -> None:
    """In seconds of a core, and the best of three, since other tests may keep the machine busy."""
    program = (
        "import sys, time, asyncio\n"
        "from valleyscope.app.settings import Settings\n"
        "from valleyscope.app.api.app import create_app\n"
        "app = create_app(Settings.load(home=sys.argv[1]))\n"
        "async def live():\n"
        "    async with app.router.lifespan_context(app):\n"
        "        print(time.process_time(), 'torch' in sys.modules, 'plotly.graph_objects' in sys.modules)\n"
        "asyncio.run(live())\n"
    )
    best = 99.0
    for _ in range(3):
        command = [sys.executable, "-c", program, tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        seconds, torch, plotly = done.stdout.split()
        assert (torch, plotly) == ("False", "False")
        best = min(best, float(seconds))
        if best < 2.0:
            break
    assert best < 2.0


def test_commands_submit_watch_list_and_fetch(lively: Server, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**TINY, "name": "by command"}))
    submitted = call(lively, "submit", spec, "--watch", "--key", "command-1")
    assert submitted.returncode == 0, submitted.stdout + submitted.stderr
    id = submitted.stdout.split()[0]
    assert lively.client.get(f"/api/experiments/{id}").json()["state"] == "done"
    assert "done" in submitted.stdout
    again = call(lively, "submit", spec, "--key", "command-1")
    assert again.stdout.split() == [id]
    assert id in call(lively, "jobs", "--state", "done", "--search", "by command").stdout
    watched = call(lively, "watch", id)
    assert watched.returncode == 0
    assert lively.client.get(f"/api/experiments/{id}").json()["verdict_kind"].capitalize() in watched.stdout
    fetched = call(lively, "fetch", id, "--out", tmp_path / "out")
    assert fetched.returncode == 0, fetched.stderr
    names = {"landscape.h5", "report.html", "surface.csv", "spec.json", "verdict.json"}
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert names | {"sgd.safetensors", "altsdp.safetensors"} == {name for name in found if ".compact." not in name}
    assert "altsdp.compact.safetensors" in found
    kept = lively.directory(id) / "landscape.h5"
    assert (tmp_path / "out" / "landscape.h5").read_bytes() == kept.read_bytes()


def test_commands_cancel_and_retry(bare: Server) -> None:
    id = bare.submit()
    assert call(bare, "cancel", id).returncode == 0
    bare.wait(id)
    assert "run 2" in call(bare, "retry", id).stdout
    refused = call(bare, "retry", id)
    assert refused.returncode == 2
    assert "queued" in refused.stderr
    assert "Traceback" not in refused.stderr
    bare.client.post(f"/api/experiments/{id}/cancel")


def test_a_refusal_is_shown_with_its_fields(bare: Server, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("dataset: npz:/etc/passwd\ntraining: {epochs: 99999}\nminima: {a: {}, b: {}}\n")
    refused = call(bare, "submit", spec)
    assert refused.returncode == 2
    assert "dataset: data set 'npz:/etc/passwd' is not available here" in refused.stderr
    assert "training.epochs" in refused.stderr


def test_a_server_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as bound:  # bound but not listening: a released port may be reused at once
        bound.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        done = subprocess.run(
            valley("jobs", "--server", address), capture_output=True, text=True, timeout=180, check=False, cwd=tmp_path
        )
        assert done.returncode == 2
        assert "valley serve" in done.stderr
        with pytest.raises(Unreachable):
            Client(address).get("/healthz")
    with pytest.raises(ValueError, match="must be an address"):
        Client("127.0.0.1:8360")


def test_a_port_in_use_is_one_clear_line(bare: Server, tmp_path: Path) -> None:
    port = bare.url.rpartition(":")[2]
    done = subprocess.run(
        valley("serve", "--home", tmp_path, "--port", port), capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr


def test_the_client_gives_the_servers_reasons(bare: Server) -> None:
    with pytest.raises(Refused, match=r"minima\.a\.lr") as refused:
        Client(bare.url).submit({"minima": {"a": {"lr": -1}}})
    assert refused.value.status == 422


def test_a_server_ends_cleanly_at_ctrl_c_and_takes_its_workers_with_it(tmp_path: Path) -> None:
    with serving(tmp_path / "home", workers=1) as server:
        family = psutil.Process(server.process.pid).children(recursive=True)
        assert family
        assert server.stop(signal.SIGINT) == 0
        until(lambda: all(map(has_ended, family)))


def test_a_dead_worker_is_replaced_and_a_killed_server_leaves_none(tmp_path: Path) -> None:
    """The server has a key, of which its workers know nothing."""
    key = "sesame-open-sesame"
    with serving(tmp_path / "home", workers=1, environment={"VALLEY_API_KEY": key}) as server:
        parent = psutil.Process(server.process.pid)
        server.client.headers["X-API-Key"] = key

        def workers() -> list[int]:
            return [row["pid"] for row in server.client.get("/api/workers").json()["items"]]

        [first] = until(workers, complaint=lambda: server.log)
        psutil.Process(first).kill()
        [pid] = until(lambda: [] if first in (found := workers()) else found, complaint=lambda: server.log)
        second = psutil.Process(pid)
        assert second.nice() > parent.nice()
        family = parent.children(recursive=True)
        assert all(key not in str(environment_of(process)) for process in family)
        environment = {**os.environ, "VALLEY_SERVER": server.url, "VALLEY_API_KEY": key}
        listed = subprocess.run(valley("jobs"), capture_output=True, text=True, env=environment, check=False)
        assert listed.returncode == 0, listed.stderr
        server.process.kill()
        server.process.wait()
        until(lambda: all(map(has_ended, family)))


@pytest.mark.drill
def test_the_demo_serves_runs_and_ends(tmp_path: Path) -> None:
    once = subprocess.run(
        valley("demo", "--once"), capture_output=True, text=True, cwd=tmp_path, timeout=900, check=False
    )
    assert once.returncode == 0, once.stderr
    assert "Serving at http://127.0.0.1:" in once.stdout
    report = tmp_path / next(line for line in once.stdout.splitlines() if line.startswith("Report: ")).split()[1]
    assert report.stat().st_size > 1_000_000


def test_a_demo_that_is_interrupted_says_so_and_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(valley("demo"), stdout=theirs, stderr=theirs, cwd=tmp_path) as show:
        os.close(theirs)
        written = read_until(ours, HIDE_CURSOR)
        family = psutil.Process(show.pid).children(recursive=True)
        show.send_signal(signal.SIGINT)
        written += read_until(ours)
        assert show.wait(120) not in (0, None)
        until(lambda: all(map(has_ended, family)))
    os.close(ours)
    assert b"Stopped." in written
    assert b"Traceback" not in written
    assert written.count(HIDE_CURSOR) >= 1
    assert written.rindex(SHOW_CURSOR) > written.rindex(HIDE_CURSOR)
