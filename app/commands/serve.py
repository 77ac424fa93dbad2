"""`valley serve`: the API, the page and local workers in one command, ended cleanly by Ctrl-C or SIGTERM."""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.api.app import create_app
from valleyscope.app.devices import local_devices
from valleyscope.app.log_config import start_logging
from valleyscope.app.settings import BadSettings, Settings
from valleyscope.app.shutdown import exit_after, exit_despite_threads
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import is_starting, short_message
from valleyscope.app.storage.file_store import open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity, WrongHome
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.worker.supervisor import WorkerSupervisor

log = logging.getLogger(__name__)

_GRACE_SECONDS = 3
_DATABASE_SECONDS = 30.0
"""For so long a database may take to start beside the API, as when all of a deployment is started at once."""
_DATABASE_PAUSE = 1.0


class Server(uvicorn.Server):
    """A server that says where it listens, has workers, and ends streams before it waits for them."""

    def __init__(self, settings: Settings, ready: Callable[[str], None], *, adopt_home: bool = False) -> None:
        self._settings = settings
        self._ready = ready
        self._supervisor: WorkerSupervisor | None = None
        self._telling: threading.Thread | None = None
        self._socket = listen(settings)
        self.address = _address(self._socket)
        _check_home(settings)
        _check_database(settings)
        _settle_identity(settings, adopt_home)
        self._app = create_app(settings)
        super().__init__(
            uvicorn.Config(
                self._app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="on",
                timeout_graceful_shutdown=_GRACE_SECONDS,
                ws="none",
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal, or `should_exit`."""
        try:
            super().run(sockets or [self._socket])
        finally:
            if self._telling is not None:
                self._telling.join(_GRACE_SECONDS)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._supervisor = WorkerSupervisor(self._settings, local_devices(self._settings))
            self._telling = threading.Thread(target=self._ready, args=(self.address,), name="ready", daemon=True)
            self._telling.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        timer = exit_after()
        self._app.state.app_state.closing = True
        leaving = (
            threading.Thread(target=self._supervisor.stop, name="leaving") if self._supervisor is not None else None
        )
        if leaving is not None:
            leaving.start()
        await super().shutdown(sockets)
        if leaving is not None:
            leaving.join()
        timer.cancel()


def serve(settings: Settings, ready: Callable[[str], None], *, adopt_home: bool = False) -> None:
    """Serve until Ctrl-C or SIGTERM; `ready` is told the address once requests are answered.

    `adopt_home` takes the home, or the store, for that of the database, whatever it was before.
    """
    start_logging(settings)
    _warn(settings)
    with suppress(KeyboardInterrupt):
        end_quietly()
        Server(settings, ready, adopt_home=adopt_home).run()
    exit_despite_threads()


def end_quietly() -> None:
    """Let SIGTERM do what Ctrl-C does. Uvicorn raises a signal again once everything is shut down."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def listen(settings: Settings) -> socket.socket:
    """Bind before anything else is started, so that a port in use is one clear line."""
    settings.check_exposure()
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # TCP is named, since asyncio sends small packets at once (TCP_NODELAY) only where it is. Else every answer on a
    # connection that is kept waits 40 ms for the acknowledgement of its headers.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        found.close()
        raise BadSettings(
            f"cannot listen at {settings.host}:{settings.port} ({error.strerror or error}): choose another --port, "
            "or 0 for any free one"
        ) from error
    found.listen(1024)
    found.set_inheritable(False)
    return found


def _check_home(settings: Settings) -> None:
    """A home that cannot be written is one clear line, too."""
    storage = Home(settings.home)
    try:
        storage.prepare()
        storage.probe()
    except OSError as error:
        raise BadSettings(
            f"home={str(settings.home)!r} cannot be written ({error.strerror or error}): make room or give the rights, "
            "or choose another --home"
        ) from error


def _check_database(settings: Settings) -> None:
    """Neither is a database; one that was started together with this process is waited for."""
    deadline = time.monotonic() + _DATABASE_SECONDS
    while True:
        try:
            database = Database(settings.database)
            with database.exclusive("start"):
                migrate(database)
            database.close()
            return
        except (OSError, SQLAlchemyError) as error:
            left = deadline - time.monotonic()
            if not is_starting(error) or left < 0:
                raise BadSettings(
                    f"the database cannot be used ({short_message(error)}): see --database, and `valley doctor`"
                ) from error
            log.warning("the database is not there yet (%s); waiting %.0f s more for it", short_message(error), left)
        time.sleep(_DATABASE_PAUSE)


def _settle_identity(settings: Settings, adopt_home: bool) -> None:
    """A database and files that do not belong together are refused before anything is done to either."""
    database = Database(settings.database)
    try:
        with database.exclusive("start"):
            HomeIdentity(database, open_store(settings.store, Home(settings.home))).establish(adopt=adopt_home)
    except WrongHome as error:
        raise BadSettings(str(error)) from error
    except StoreUnavailable as error:
        if adopt_home:
            raise BadSettings(f"{error}; nothing was adopted") from error
        log.warning("whether the store is that of this database is found out later: %s", error)
    finally:
        database.close()


def _address(found: socket.socket) -> str:
    host, port, *_ = found.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _warn(settings: Settings) -> None:
    key: Any = settings.api_key
    if key is not None and len(key.get_secret_value()) < 16:
        log.warning("VALLEY_API_KEY is short: make a better one by `openssl rand -hex 24`")
