"""`valley serve`: the API, the page and local workers in one command, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

import uvicorn
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.api.app import create_app
from valleyscope.app.devices import devices_for
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
_DATABASE_SECONDS = 30.0  # a database that starts together with the API may take this long
_DATABASE_POLL_SECONDS = 1.0


class Server(uvicorn.Server):
    """Starts local workers, calls `on_ready` with its address, and ends event streams on shutdown."""

    def __init__(self, settings: Settings, on_ready: Callable[[str], None], *, adopt_home: bool = False) -> None:
        self._settings = settings
        self._on_ready = on_ready
        self._supervisor: WorkerSupervisor | None = None
        self._ready_thread: threading.Thread | None = None
        self._socket = listen(settings)
        self.address = _address(self._socket)
        _check_home(settings)
        _check_database(settings, adopt_home)
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
            if self._ready_thread is not None:
                self._ready_thread.join(_GRACE_SECONDS)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._supervisor = WorkerSupervisor(self._settings, devices_for(self._settings.workers))
            self._ready_thread = threading.Thread(
                target=self._on_ready, args=(self.address,), name="ready", daemon=True
            )
            self._ready_thread.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        timer = exit_after()
        self._app.state.app_state.closing = True
        stopping = threading.Thread(target=self._supervisor.stop if self._supervisor else None, name="stopping")
        stopping.start()
        await super().shutdown(sockets)
        stopping.join()
        timer.cancel()


def serve(settings: Settings, on_ready: Callable[[str], None], *, adopt_home: bool = False) -> None:
    """Serve until Ctrl-C or SIGTERM; calls `on_ready` with the address once the server accepts requests.

    `adopt_home` links the home or the store to the database, even if they belonged to another one.
    """
    start_logging(settings)
    if settings.api_key is not None and len(settings.api_key.get_secret_value()) < 16:
        log.warning("VALLEY_API_KEY is short: create a longer one with `openssl rand -hex 24`")
    with suppress(KeyboardInterrupt):
        exit_quietly_on_sigterm()
        Server(settings, on_ready, adopt_home=adopt_home).run()
    exit_despite_threads()


def exit_quietly_on_sigterm() -> None:
    """Handle SIGTERM like Ctrl-C. Uvicorn raises the signal again after its shutdown."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def listen(settings: Settings) -> socket.socket:
    """Bind the port before anything else starts, so that a port in use is a one-line error."""
    settings.check_exposure()
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is explicit. Without it, every response on a kept-alive connection
    # waits 40 ms for the acknowledgement of its headers.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host.strip("[]"), settings.port))
    except OSError as error:
        sock.close()
        raise BadSettings(
            f"cannot listen at {settings.host}:{settings.port} ({error.strerror or error}): use another --port, "
            "or 0 for any free one"
        ) from error
    sock.listen(1024)
    sock.set_inheritable(False)
    return sock


def _check_home(settings: Settings) -> None:
    home = Home(settings.home)
    try:
        home.prepare()
        home.probe()
    except OSError as error:
        raise BadSettings(
            f"home={str(settings.home)!r} cannot be written ({error.strerror or error}): free space, change its "
            "permissions, or use another --home"
        ) from error


def _check_database(settings: Settings, adopt_home: bool) -> None:
    """Create or upgrade the tables, and check the owner of the files; waits for a database that is still starting."""
    deadline = time.monotonic() + _DATABASE_SECONDS
    while True:
        try:
            with closing(Database(settings.database)) as database, database.exclusive("start"):
                migrate(database)
                _check_identity(settings, database, adopt_home)
            return
        except (OSError, SQLAlchemyError) as error:
            left = deadline - time.monotonic()
            if not is_starting(error) or left < 0:
                raise BadSettings(
                    f"the database cannot be used ({short_message(error)}): check --database, or run `valley doctor`"
                ) from error
            log.warning("the database is not ready (%s); waiting up to %.0f s", short_message(error), left)
        time.sleep(_DATABASE_POLL_SECONDS)


def _check_identity(settings: Settings, database: Database, adopt_home: bool) -> None:
    """Refuse a database and files that do not belong together."""
    try:
        HomeIdentity(database, open_store(settings.store, Home(settings.home))).establish(adopt=adopt_home)
    except WrongHome as error:
        raise BadSettings(str(error)) from error
    except StoreUnavailable as error:
        if adopt_home:
            raise BadSettings(f"{error}; nothing was linked") from error
        log.warning("the store will be checked against the database later: %s", error)


def _address(sock: socket.socket) -> str:
    host, port, *_ = sock.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
