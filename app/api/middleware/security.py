"""What stands between a client and the routes: Host and Origin, the API key, the size of a body, and headers.

All of it is plain ASGI middleware, so that it also guards what is no route: static files and unknown paths.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from valleyscope.app.api.problems import Problem
from valleyscope.app.settings import Settings

log = logging.getLogger(__name__)

KEY_HEADER: Final = "X-API-Key"
GUARDED: Final = ("/api", "/metrics")
UPLOADS: Final = "/api/checkpoints"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WINDOW = 60.0
_REMEMBERED = 10_000

CONTENT_POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Puts the security headers on every response; what a route set itself stays."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api"):
                    headers.setdefault("Cache-Control", "no-cache, private")
            await send(message)

        await self.app(scope, receive, send_with_headers)


class AccessControl:
    """Refuses a wrong Host, a foreign Origin, and a missing or wrong key."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._names = _own_names(settings)
        self._proxied = frozenset(name.lower() for name in settings.hosts)
        self._key = None if settings.api_key is None else settings.api_key.get_secret_value().encode()
        self._failures = FailedLogins(settings.key_failures)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._check(scope)
            except Problem as problem:
                await problem.response(scope["path"])(scope, receive, send)
                return
        elif scope["type"] == "websocket":
            return
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._names is not None and _name(f"//{host}") not in self._names:
            raise Problem(
                421,
                "wrong-host",
                f"this server is not called {host[:200]!r}; call it by its address, or allow the name by VALLEY_HOSTS",
            )
        if scope["method"] not in _SAFE_METHODS:
            self._check_origin(headers, host)
        if self._key is not None and scope["path"].startswith(GUARDED):
            self._check_key(headers, scope)

    def _check_origin(self, headers: Headers, host: str) -> None:
        """A page of another site must not make a visitor's browser change anything here."""
        origin = headers.get("origin")
        own = origin is None or origin.partition("//")[2] == host or _name(origin) in self._proxied
        if not own or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            message = "requests that change something must come from this server's own pages"
            raise Problem(403, "foreign-origin", message)

    def _check_key(self, headers: Headers, scope: Scope) -> None:
        """The right key opens whatever came before it: another client at the same address may have a wrong one."""
        address = scope["client"][0] if scope.get("client") else "unknown"
        given = headers.get(KEY_HEADER)
        assert self._key is not None
        if given is not None and hmac.compare_digest(given.encode("latin-1"), self._key):
            return
        wait = self._failures.wait(address)
        if given is not None and wait > 0:
            raise Problem(
                429,
                "too-many-keys",
                f"too many wrong keys from this address: wait {wait:.0f} s",
                headers={"Retry-After": str(int(wait) + 1)},
            )
        if given is not None:
            self._failures.note(address)
            log.warning("a wrong key was sent", extra={"client": address})
        raise Problem(
            401,
            "key-required" if given is None else "wrong-key",
            f"send the server's key in the header {KEY_HEADER}",
            headers={"WWW-Authenticate": f'ApiKey header="{KEY_HEADER}"'},
        )


class FailedLogins:
    """Counts wrong keys by address over the last minute."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def note(self, address: str) -> None:
        times = self._times.setdefault(address, deque(maxlen=self._allowed))
        times.append(time.monotonic())
        self._times.move_to_end(address)
        while len(self._times) > _REMEMBERED:
            self._times.popitem(last=False)

    def wait(self, address: str) -> float:
        """Seconds until the address may try again; 0 if it may now."""
        times = self._times.get(address)
        if times is None or len(times) < self._allowed:
            return 0.0
        return max(0.0, times[0] + _WINDOW - time.monotonic())


class BodyLimit:
    """Refuses bodies beyond a limit, by their announced length or while they arrive; uploads have their own."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._usual = settings.max_body
        # A multipart body is a little longer than the file in it.
        self._upload = settings.max_upload + settings.max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self._upload if scope["path"].rstrip("/") == UPLOADS else self._usual
        problem = Problem(413, "too-large", f"the body may have {limit} bytes at most", limit=limit)
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > limit:
            await problem.response(scope["path"])(scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > limit:
                    raise problem
            return message

        await self.app(scope, receive_limited, send)


def _own_names(settings: Settings) -> frozenset[str] | None:
    """Host names that this server answers to; None for any.

    A page that re-binds its name to 127.0.0.1 makes a browser send that name. Beyond loopback the key guards.
    """
    if not settings.loopback and not settings.hosts:
        return None
    names: Iterable[str] = (*_LOOPBACK, settings.host, *settings.hosts)
    return frozenset(name.strip("[]").lower() for name in names)


def _name(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""
