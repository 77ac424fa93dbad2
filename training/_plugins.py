"""Plug-in data sets and models, named `package.module:factory`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def is_plugin(name: str) -> bool:
    """Whether a name has the form `package.module:factory`."""
    module, colon, factory = name.partition(":")
    return bool(colon) and all(part.isidentifier() for part in f"{module}.{factory}".split("."))


def load_factory(field: str, name: str) -> Callable[..., Any]:
    """Import the callable that `package.module:factory` names; errors call it `field`.

    This runs the module's code: names must come from the operator of an installation, never from a request.
    """
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that exists but fails to import another one is a bug of the plug-in.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"{field} {name!r}: there is no module {module_name!r}; install it or put its folder on PYTHONPATH"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{field} {name!r}: module {module_name!r} has no {path!r}; name a function in it")
        found = getattr(found, part)
    if not callable(found):
        raise ValueError(
            f"{field} {name!r}: {path!r} is a {type(found).__name__}, must be a callable that makes the {field}"
        )
    result: Callable[..., Any] = found
    return result
