"""What holds for all tests: one thread for each process, as in workers, since the tests run on all cores already.

Laws are checked however long an example takes: how long that is says more of the machine than of the law.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the files, alternate between files that compute and files that wait, `long` ones first.

    Then neither all processes compute at once, nor is a long file left over at the end.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    long_first = sorted(files.values(), key=lambda tests: tests[0].get_closest_marker("long") is None)
    places: list[tuple[float, list[pytest.Item]]] = []
    for computing in (True, False):
        chosen = [tests for tests in long_first if (_room(tests[0].path) in COMPUTING) is computing]
        places += [((number + 0.5) / len(chosen), tests) for number, tests in enumerate(chosen)]
    items[:] = [item for _, tests in sorted(places, key=lambda entry: entry[0]) for item in tests]


def _room(path: Path) -> str:
    return path.relative_to(Path(__file__).parent).parts[0]
