"""Addresses of databases: checked before anybody connects, and shown without what is secret in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_KINDS = ("sqlite", "postgresql", "postgres")
_SECRET = re.compile("pass|secret|token|key", re.IGNORECASE)
_MASK = "***"


def check_address(url: str, password: str | None = None) -> str:
    """The address, with the password where it needs one; raises ValueError, which repeats nothing of either."""
    if url.startswith("sqlite:///"):
        return url  # the usual one, for which nobody should wait until SQLAlchemy is loaded
    parsed = _parsed(url)
    if password is None or parsed.get_backend_name() == "sqlite":
        return url
    if parsed.password or "password" in parsed.query:
        raise ValueError("has a password already: take it out, or unset VALLEY_DATABASE_PASSWORD")
    return parsed.set(password=password).render_as_string(hide_password=False)


def without_secrets(url: str) -> str:
    """The address for people; libpq takes passwords among the options, too.

    >>> without_secrets("postgresql://valley:a@db/valley?sslpassword=b&sslmode=require")
    'postgresql://valley:***@db/valley?sslmode=require&sslpassword=***'
    """
    parsed = _parsed(url)
    options = {name: _MASK if _SECRET.search(name) else value for name, value in sorted(parsed.query.items())}
    return parsed.set(query=options).render_as_string(hide_password=True).replace("%2A%2A%2A", _MASK)


def _parsed(url: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.get_backend_name() not in _KINDS:
        raise ValueError("must be sqlite:///FILE or an address such as postgresql://user@host:5432/name")
    return parsed
