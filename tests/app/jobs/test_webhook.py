"""The webhook: told by a real server to a real receiver, signed, tried again, and never waited for."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest

from tests.app.servers import serving
from valleyscope.app.jobs.webhook import SIGNATURE, Webhook

SECRET = "between us"


class Receiver(ThreadingHTTPServer):
    """Refuses the first `refusals` requests, and keeps all of them."""

    def __init__(self, refusals: int = 0) -> None:
        self.received: Queue[tuple[bytes, str | None]] = Queue()
        self.refusals = refusals
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.refusals -= 1
        self.send_response(204 if self.server.refusals < 0 else 503)
        self.end_headers()
        self.server.received.put((body, self.headers[SIGNATURE]))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def test_the_end_of_an_experiment_is_posted_and_signed(receiver: Receiver, tmp_path: Path) -> None:
    environment = {"VALLEY_WEBHOOK": receiver.url, "VALLEY_WEBHOOK_SECRET": SECRET}
    with serving(tmp_path / "home", environment=environment) as server:
        id = server.still(name="told")
        body, signature = receiver.received.get(timeout=60)
        assert SECRET not in server.log
    message = json.loads(body)
    assert (message["event"], message["id"], message["name"], message["state"]) == (
        "experiment-ended",
        id,
        "told",
        "cancelled",
    )
    assert signature == f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}"


def test_a_refused_message_is_sent_again_a_few_times(receiver: Receiver) -> None:
    receiver.refusals = 2
    webhook = Webhook(receiver.url, pauses=(0.01, 0.01))
    webhook.send({"id": "a"})
    webhook.send({"id": "b"})
    sent = [json.loads(receiver.received.get(timeout=60)[0])["id"] for _ in range(4)]
    assert sent == ["a", "a", "a", "b"]
    webhook.stop()
