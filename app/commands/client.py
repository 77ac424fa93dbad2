"""A client of the REST API for commands and scripts, and the option that names its server."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request

from valleyscope.app.secret_files import read_setting_file
from valleyscope.app.settings import BadSettings, Settings
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.upload import form_of, is_local, opener_for

FINAL = ("done", "failed", "cancelled")
_CHUNK = 2**20
_TIMEOUT = 30.0
_IMPORT_TIMEOUT = 180.0  # the server reads the files before it answers
_RECONNECT_SECONDS = 1.0
_RECONNECTS = 60


class Refused(ValueError):
    """The server refused the request; the message is that of the server."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        lines = [str(problem.get("detail", problem.get("title", f"status {status}")))]
        lines += [f"  {error['path']}: {error['message']}" for error in problem.get("errors") or ()]
        super().__init__("\n".join(lines) if len(lines) > 2 else lines[0])
        self.status = status
        self.problem = problem


class Unreachable(ValueError):
    """The server does not answer."""


@dataclass(frozen=True)
class Event:
    id: int
    kind: str
    data: dict[str, Any]


class Client:
    """A client of one server. The default key is that of the environment."""

    def __init__(
        self, server: str, key: str | None = None, *, direct: bool = False, reconnects: int = _RECONNECTS
    ) -> None:
        """`direct` bypasses the proxy of the environment; loopback addresses always do."""
        self._reconnects = reconnects
        self.server = server.rstrip("/")
        if urlsplit(self.server).scheme not in ("http", "https"):
            raise ValueError(f"server {self.server!r} must be an address such as http://127.0.0.1:8360")
        self._key = key or _key_of_environment()
        self._opener = opener_for(self.server, direct=direct)

    def get(self, path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._json("GET", path + (f"?{urlencode(given)}" if given else ""))

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        return self._json("POST", path, body, headers)

    def delete(self, path: str) -> None:
        self._json("DELETE", path)

    def submit(self, submission: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Submit a spec or a recipe; the same key returns the same experiment."""
        headers = {} if key is None else {"Idempotency-Key": key}
        found: dict[str, Any] = self.post("/api/experiments", submission, headers)
        return found

    def experiment(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/experiments/{quote(id, safe='')}")
        return found

    def experiments(self, **query: Any) -> Iterator[dict[str, Any]]:
        """All experiments, newest first, page by page."""
        cursor = None
        while True:
            page = self.get("/api/experiments", cursor=cursor, **query)
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def events(self, id: str, after: int = 0) -> Iterator[Event]:
        """All events of an experiment until it ends; reconnects when the connection is lost."""
        failures = 0
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
            try:
                with self._open("GET", f"/api/experiments/{quote(id, safe='')}/events", headers=headers) as response:
                    if response.status == 204:
                        return
                    for event in _parse_events(response):
                        after, failures = event.id, 0
                        yield event
                if self.experiment(id)["state"] in FINAL:
                    return
            except (Unreachable, HTTPException, OSError) as error:
                failures += 1
                if failures > self._reconnects:
                    raise Unreachable(f"{self.server} does not answer any more: {error}") from error
            time.sleep(_RECONNECT_SECONDS)

    def send_landscapes(self, files: Sequence[Path], *, name: str | None = None) -> dict[str, Any]:
        """Upload files of landscapes; returns the experiment of the first, and in `items` those of all."""
        kind, body = form_of([(file.name, file.read_bytes()) for file in files], {} if name is None else {"name": name})
        try:
            with self._open("POST", "/api/landscapes", body, {"Content-Type": kind}, timeout=_IMPORT_TIMEOUT) as answer:
                found: dict[str, Any] = json.loads(answer.read())
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{self.server} does not answer: {error}") from error
        return found

    def download(self, id: str, name: str, target: Path) -> None:
        """Download a file of an experiment atomically."""
        path = f"/api/experiments/{quote(id, safe='')}/files/{quote(name, safe='')}"
        with self._open("GET", path) as response, write_atomically(target) as file:
            while chunk := self._read(response):
                file.write(chunk)
            if response.length:
                raise Unreachable(f"{self.server} stopped {response.length} bytes before the end of {name}")

    def _read(self, response: HTTPResponse) -> bytes:
        try:
            return response.read(_CHUNK)
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{self.server} does not answer: {error}") from error

    def _json(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        sent = dict(headers or {}) | ({} if data is None else {"Content-Type": "application/json"})
        try:
            with self._open(method, path, data, sent) as response:
                content = response.read()
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{self.server} does not answer: {error}") from error
        return json.loads(content) if content else None

    def _open(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = _TIMEOUT,
    ) -> HTTPResponse:
        request = Request(self.server + path, data=data, method=method, headers=dict(headers or {}))
        if self._key is not None:
            request.add_unredirected_header("X-API-Key", self._key)
        try:
            response: HTTPResponse = self._opener.open(request, timeout=timeout)
        except HTTPError as error:
            with error:
                raise Refused(error.code, _problem(error)) from None
        except (URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(f"{self.server} cannot be reached ({reason}): start it with `valley serve`") from error
        return response


def _parse_events(response: HTTPResponse) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            if "id" in fields and "data" in fields:
                yield Event(int(fields["id"]), fields.get("event", "message"), json.loads(fields["data"]))
            fields.clear()


def _problem(error: HTTPError) -> dict[str, Any]:
    try:
        found = json.loads(error.read())
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"detail": f"{error.url}: {error.code} {error.reason}"}


def _key_of_environment() -> str | None:
    """The API key from VALLEY_API_KEY or from its secret file."""
    return os.environ.get("VALLEY_API_KEY") or read_setting_file("api_key")


def add_server(parser: argparse.ArgumentParser) -> None:
    text = "address of the server (default: VALLEY_SERVER, or the one in the settings)"
    parser.add_argument("--server", metavar="URL", help=text)


def connect(server: str | None) -> Client:
    """A client of the server in --server, VALLEY_SERVER or the settings.

    A key from a settings file is sent only to the server of these settings or this machine; a key from the environment
    goes to any server.
    """
    named = server or os.environ.get("VALLEY_SERVER")
    if named and _key_of_environment() is not None:
        return Client(named)
    settings = Settings.load()
    if not named and settings.port == 0:
        raise BadSettings("the port of the server is unknown (VALLEY_PORT=0): pass --server")
    address = named or settings.address
    own = is_local(address) or urlsplit(address).netloc.lower() == urlsplit(settings.address).netloc.lower()
    key = settings.api_key.get_secret_value() if own and settings.api_key is not None else None
    return Client(address, key, direct=own)
