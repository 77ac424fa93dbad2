"""What holds for all tests: one thread for each process, as in workers, since the tests run on all cores already.

Laws are checked however long an example takes: how long that is says more of the machine than of the law.
"""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

# A shell that runs a command in the background has it ignore Ctrl-C, and all that it starts inherits that; some tests
# interrupt processes to see what they do.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the files, those marked `long` start first: none of them is left over at the end."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.get_closest_marker("long") is None)
