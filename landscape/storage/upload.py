"""Send a landscape to a Valleyscope server over HTTP."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

PATH = "/api/landscapes"
_TIMEOUT = 180.0  # the server checks and draws the landscape before it answers


class NotSent(ConnectionError):
    """The server refused the landscape, or does not answer; the message says why."""


def send_landscape(content: bytes, server: str, key: str | None = None) -> str:
    """Upload the bytes of a landscape.h5; returns the address of its page."""
    server = server.rstrip("/")
    if urlsplit(server).scheme not in ("http", "https"):
        raise ValueError(f"server {server!r} must be an address such as http://127.0.0.1:8360")
    headers = {"Content-Type": "application/octet-stream"}
    request = Request(f"{server}{PATH}?filename=landscape.h5", content, headers, method="POST")
    key = key or os.environ.get("VALLEY_API_KEY")
    if key:
        request.add_unredirected_header("X-API-Key", key)
    try:
        with opener_for(server).open(request, timeout=_TIMEOUT) as response:
            made: Mapping[str, Any] = json.load(response)
    except HTTPError as error:
        with error:
            raise NotSent(f"{server} refused the landscape: {_detail(error)}") from None
    except (URLError, TimeoutError, ConnectionError) as error:
        raise NotSent(f"{server} cannot be reached ({getattr(error, 'reason', error)})") from error
    return f"{server}/experiments/{made['id']}"


def opener_for(server: str, *, direct: bool = False) -> OpenerDirector:
    """Opens addresses of a server; those of this machine, or `direct` ones, without the proxy of the environment."""
    proxies = [ProxyHandler({})] if direct or is_local(server) else []
    return build_opener(_HTTPHandler, _HTTPSHandler, *proxies)


class _HTTPConnection(HTTPConnection):
    """Goes on to the answer where a server refuses a body, such as a large one, before it was sent."""

    def send(self, data: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            super().send(data)


class _HTTPSConnection(_HTTPConnection, HTTPSConnection):
    pass


class _HTTPHandler(HTTPHandler):
    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_HTTPConnection, request)


class _HTTPSHandler(HTTPSHandler):
    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_HTTPSConnection, request)


def is_local(server: str) -> bool:
    """Whether an address is a loopback address."""
    name = urlsplit(server).hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def form_of(files: Sequence[tuple[str, bytes]], fields: Mapping[str, str]) -> tuple[str, bytes]:
    """The content type and the body of a form with these files, by name and content, and fields."""
    boundary = secrets.token_hex(16)
    parts = [(f'name="{name}"', value.encode()) for name, value in fields.items()]
    parts += [(f'name="file"; filename="{_quoted(name)}"', content) for name, content in files]
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: form-data; {what}\r\n\r\n".encode() + content + b"\r\n"
        for what, content in parts
    )
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()


def _quoted(name: str) -> str:
    """A file name as browsers write it into a form."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _detail(error: HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, LookupError, TypeError):
        return f"{error.code} {error.reason}"
