"""Tell another service that an experiment ended: one POST of a small JSON, signed if there is a secret."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import queue
import threading
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.request import Request, urlopen

log = logging.getLogger(__name__)

SIGNATURE: Final = "X-Valley-Signature"
_TIMEOUT_SECONDS = 5.0
_PAUSES = (1.0, 5.0)
_MOST_WAITING = 1000


class Webhook:
    """Sends messages in a thread of its own, so that nothing waits for the receiver. A message may get lost."""

    def __init__(self, url: str, secret: str | None = None, *, pauses: tuple[float, ...] = _PAUSES) -> None:
        self._url = url
        self._secret = secret
        self._pauses = pauses
        self._waiting: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        self._stopping = threading.Event()
        threading.Thread(target=self._run, name="webhook", daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Return at once; the message follows."""
        try:
            self._waiting.put_nowait(json.dumps(message, allow_nan=False).encode())
        except queue.Full:
            log.warning("the webhook does not answer: a message is dropped", extra={"experiment": message.get("id")})

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                body = self._waiting.get(timeout=1.0)
            except queue.Empty:
                continue
            self._deliver(body)

    def _deliver(self, body: bytes) -> None:
        for pause in (*self._pauses, None):
            try:
                with urlopen(self._request(body), timeout=_TIMEOUT_SECONDS):
                    return
            except (OSError, HTTPException, ValueError) as error:
                if pause is None:
                    log.warning("the webhook did not accept a message: %s", error)
                    return
            if self._stopping.wait(pause):
                return

    def _request(self, body: bytes) -> Request:
        headers = {"Content-Type": "application/json", "User-Agent": "valleyscope"}
        if self._secret is not None:
            headers[SIGNATURE] = f"sha256={hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()}"
        return Request(self._url, data=body, headers=headers, method="POST")
