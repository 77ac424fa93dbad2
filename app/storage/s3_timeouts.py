"""Time limits for S3 requests, so a server that accepts connections but never answers blocks nothing.

botocore limits the wait for a connection and for an answer, but not for a server that does not read what is sent to it
or never answers `Expect: 100-continue`. So each request as a whole has a limit.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Final

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 10
REQUEST_SECONDS: Final = 15.0
"""From the start of a request to the first bytes of its answer, plus the time to send its body."""
_MIN_BYTES_PER_SECOND: Final = 512 * 1024
ATTEMPTS: Final = 2


def client_config() -> dict[str, Any]:
    """Options for botocore. It sends each request once: s3fs repeats those that fail."""
    from aiobotocore.config import AioConfig

    options: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"total_max_attempts": 1},
    }
    if "http_session_cls" in inspect.signature(AioConfig.__init__).parameters:
        options["http_session_cls"] = _timeout_session()
    return options


def request_timeout(request: Any) -> float:
    """Seconds until the answer to a request must begin."""
    sent = request.headers.get("Content-Length") or request.headers.get("X-Amz-Decoded-Content-Length") or 0
    return REQUEST_SECONDS + int(sent) / _MIN_BYTES_PER_SECOND


def _timeout_session() -> type[Any]:
    from aiobotocore.httpsession import AIOHTTPSession
    from botocore.exceptions import ReadTimeoutError

    class TimeoutSession(AIOHTTPSession):  # type: ignore[misc]
        async def send(self, request: Any) -> Any:
            try:
                return await asyncio.wait_for(super().send(request), request_timeout(request))
            except TimeoutError as error:
                raise ReadTimeoutError(endpoint_url=request.url, error=error) from None

    return TimeoutSession
