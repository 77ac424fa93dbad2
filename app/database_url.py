"""Check database URLs before connecting, and show them without secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_BACKENDS = ("sqlite", "postgresql", "postgres")
_SECRET_OPTION = re.compile("pass|secret|token|key", re.IGNORECASE)
_MASK = "***"


def check_database_url(url: str, password: str | None = None) -> str:
    """The URL, with the password added if it needs one; raises ValueError, whose message contains neither."""
    if url.startswith("sqlite:///"):
        return url  # the usual case does not wait for the import of SQLAlchemy
    parsed = _parse(url)
    if password is None or parsed.get_backend_name() == "sqlite":
        return url
    if parsed.password or "password" in parsed.query:
        raise ValueError("already has a password: remove it, or unset VALLEY_DATABASE_PASSWORD")
    return parsed.set(password=password).render_as_string(hide_password=False)


def without_secrets(url: str) -> str:
    """The URL to show; libpq also accepts passwords as options.

    >>> without_secrets("postgresql://valley:a@db/valley?sslpassword=b&sslmode=require")
    'postgresql://valley:***@db/valley?sslmode=require&sslpassword=***'
    """
    parsed = _parse(url)
    options = {name: _MASK if _SECRET_OPTION.search(name) else value for name, value in sorted(parsed.query.items())}
    return parsed.set(query=options).render_as_string(hide_password=True).replace("%2A%2A%2A", _MASK)


def _parse(url: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.get_backend_name() not in _BACKENDS:
        raise ValueError("must be sqlite:///FILE or a URL such as postgresql://user@host:5432/name")
    return parsed
