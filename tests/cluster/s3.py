"""A real server that speaks S3 (moto, by HTTP), behind a gate that can be shut as if the server were gone."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.ports import free_port
from tests.waiting import until

BUCKET = "valleys"
SECRET = "a-secret-that-nobody-may-see"


class Gate:
    """Passes connections on to a port of this machine; while shut it drops them, while mute it keeps them."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._shut = False
        self._speaking = threading.Event()
        self._speaking.set()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Nobody gets through inside the block."""
        self._shut = True
        for connection in list(self._open):
            _close(connection)
        try:
            yield
        finally:
            self._shut = False

    @contextmanager
    def mute(self) -> Iterator[None]:
        """Inside the block everyone is let in, and nobody hears anything, as from a server that is stuck."""
        self._speaking.clear()
        try:
            yield
        finally:
            self._speaking.set()

    def close(self) -> None:
        _close(self._listener)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                if self._shut:
                    caller.close()
                    continue
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    caller.close()
                    continue
                self._open |= {caller, server}
                for source, sink in ((caller, server), (server, caller)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(2**16):
                self._speaking.wait()
                sink.sendall(data)
        for connection in (source, sink):
            self._open.discard(connection)
            _close(connection)


class S3:
    """The server, its gate, and the environment of a process that uses it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.gate = Gate(port)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.gate.port}",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def stored(self) -> list[str]:
        """The names of all objects, as the server itself tells them: also while the gate is shut."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{BUCKET}?list-type=2", timeout=30) as answer:
            return re.findall(r"<Key>(.*?)</Key>", answer.read().decode())

    def demand_credentials(self, wanted: bool) -> None:
        """From now on only known keys are let in, and there are none; or everyone is."""
        self._call("/moto-api/reset-auth", "POST", b"0" if wanted else b"1000000000")

    def _call(self, path: str, method: str, data: bytes | None = None) -> None:
        address, plain = f"http://127.0.0.1:{self.port}{path}", {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(address, data=data, method=method, headers=plain)
        urllib.request.urlopen(request, timeout=30).close()


@contextmanager
def serving_s3() -> Iterator[S3]:
    """A server with an empty bucket."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
    )
    try:
        until(lambda: _answers(process, port), complaint=lambda: "the S3 server does not answer")
        found = S3(port)
        found._call(f"/{BUCKET}", "PUT")
        yield found
        found.gate.close()
    finally:
        process.terminate()
        process.wait()


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "the S3 server did not start"
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=30).close()
    except OSError:
        return False
    return True


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
