"""`valley health`: health check of the local server or worker, for containers."""

from __future__ import annotations

from typing import Literal
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from valleyscope.app.settings import BadSettings, Settings
from valleyscope.app.worker.health_file import Unhealthy, check_health_file

_TIMEOUT = 8.0


def check_health(settings: Settings, role: Literal["api", "worker"]) -> str:
    """One line if all is well; raises Unhealthy otherwise."""
    if role == "worker":
        if settings.heartbeat is None:
            raise BadSettings("VALLEY_HEARTBEAT is not set: set it to the same file for the worker and this command")
        return f"{check_health_file(settings.heartbeat)} is healthy"
    address = f"{settings.address}/readyz"
    try:
        # No proxy: the server is on this machine.
        with build_opener(ProxyHandler({})).open(Request(address), timeout=_TIMEOUT) as response:
            response.read()
    except HTTPError as error:
        raise Unhealthy(f"{address} answers {error.code}: {error.read(500).decode('utf-8', 'replace')}") from None
    except (URLError, OSError) as error:
        raise Unhealthy(f"{address} does not answer: {getattr(error, 'reason', error)}") from None
    return f"{address} is ready"
