"""Which server a command talks to, and with which key: by option, by environment, else by the settings."""

from __future__ import annotations

import argparse
import os
from urllib.parse import urlsplit

from valleyscope.app.commands.client import Client, is_local, key_of_environment
from valleyscope.app.settings import BadSettings, Settings


def add_server(parser: argparse.ArgumentParser) -> None:
    """The option that says which server is meant."""
    words = "address of the server (default: VALLEY_SERVER, else that of the settings)"
    parser.add_argument("--server", metavar="URL", help=words)


def connect(server: str | None) -> Client:
    """A client of the server that is named (--server, VALLEY_SERVER), else of the one that the settings describe.

    A key from a settings file goes to this machine's own server and to no other; one from the environment is for
    whatever server is named beside it.
    """
    named = server or os.environ.get("VALLEY_SERVER")
    if named and key_of_environment() is not None:
        return Client(named)
    settings = Settings.load()
    if not named and settings.port == 0:
        raise BadSettings("setting port (VALLEY_PORT) = 0 does not say where the server listens: give --server")
    address = named or settings.address
    ours = is_local(address) or _place(address) == _place(settings.address)
    key = settings.api_key.get_secret_value() if ours and settings.api_key is not None else None
    return Client(address, key, direct=ours)


def _place(address: str) -> tuple[str | None, int | None]:
    found = urlsplit(address)
    try:
        return found.hostname, found.port
    except ValueError:
        return found.hostname, None
