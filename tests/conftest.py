"""What holds for all tests: one thread for each process, as in workers, since the tests run on all cores already.

Laws are checked however long an example takes: how long that is says more of the machine than of the law.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("VALLEY_ONNX", "off")  # each new process would load the exporter for seconds; one test does

# A shell that runs a command in the background has it ignore Ctrl-C, and all that it starts inherits that; some tests
# interrupt processes to see what they do.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


COMPUTING = ("browser", "landscape", "training")
"""Rooms whose tests keep a core busy; those of the others mostly wait for processes that they started."""

SERVICE = (
    "tests/app/api/",
    "tests/app/commands/test_client_server.py",
    "tests/app/commands/test_export.py",
    "tests/app/commands/test_serve.py",
    "tests/app/experiments/test_model_info_cache.py",
    "tests/app/test_compact_networks.py",
)
"""Files whose tests share two servers (`tests/app/conftest.py`). One process runs them all: an idle server costs some
percent of a core, and every other process would start two of its own."""


def _share(nodeid: str) -> str:
    """What one process runs as a whole: a file, or all files that share servers."""
    file = nodeid.partition("::")[0]
    return "service" if file.startswith(SERVICE) else file


class _Shares(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _share(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """With `--dist loadfile`, processes take shares; other distributions are xdist's own."""
    return _Shares(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the files, alternate between files that compute and files that wait, `long` ones first.

    Then neither all processes compute at once, nor is a long file left over at the end.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    shares: dict[str, list[pytest.Item]] = {}
    for item in items:
        shares.setdefault(_share(item.nodeid), []).append(item)
    long_first = sorted(
        shares.items(), key=lambda share: share[0] != "service" and share[1][0].get_closest_marker("long") is None
    )
    places: list[tuple[float, list[pytest.Item]]] = []
    for computing in (True, False):
        chosen = [tests for _, tests in long_first if (_room(tests[0].path) in COMPUTING) is computing]
        places += [((number + 0.5) / len(chosen), tests) for number, tests in enumerate(chosen)]
    items[:] = [item for _, tests in sorted(places, key=lambda entry: entry[0]) for item in tests]


def _room(path: Path) -> str:
    return path.relative_to(Path(__file__).parent).parts[0]
