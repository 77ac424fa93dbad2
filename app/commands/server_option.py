"""The server and the API key of a command: from --server, the environment or the settings."""

from __future__ import annotations

import argparse
import os
from urllib.parse import urlsplit

from valleyscope.app.commands.client import Client, is_local, key_of_environment
from valleyscope.app.settings import BadSettings, Settings


def add_server(parser: argparse.ArgumentParser) -> None:
    text = "address of the server (default: VALLEY_SERVER, or the one in the settings)"
    parser.add_argument("--server", metavar="URL", help=text)


def connect(server: str | None) -> Client:
    """A client of the server in --server, VALLEY_SERVER or the settings.

    A key from a settings file is sent only to the server of these settings or this machine; a key from the environment
    goes to any server.
    """
    named = server or os.environ.get("VALLEY_SERVER")
    if named and key_of_environment() is not None:
        return Client(named)
    settings = Settings.load()
    if not named and settings.port == 0:
        raise BadSettings("the port of the server is unknown (VALLEY_PORT=0): pass --server")
    address = named or settings.address
    own = is_local(address) or _host_and_port(address) == _host_and_port(settings.address)
    key = settings.api_key.get_secret_value() if own and settings.api_key is not None else None
    return Client(address, key, direct=own)


def _host_and_port(address: str) -> tuple[str | None, int | None]:
    found = urlsplit(address)
    try:
        return found.hostname, found.port
    except ValueError:
        return found.hostname, None
