"""The end of a process that was asked to leave: in good order where that is possible, and in time in any case.

A library may be waiting for a database or a store that does not answer, in a thread that nobody can end, and Python
waits for such threads. But whoever asked does so only for a while, and kills then. Leaving at once loses nothing:
what was not handed back is taken over by others as soon as the lease of this process is free.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger(__name__)

LEAVE_SECONDS = 30.0
"""For so long a process may hand its work back and sign off; deployments give it 45 s and more."""
_REST_SECONDS = 2.0


def exit_after(seconds: float = LEAVE_SECONDS) -> threading.Timer:
    """End this process after some time, wherever it is then, unless the timer is cancelled."""
    timer = threading.Timer(seconds, lambda: _end("leaving took longer than %.0f s", seconds))
    timer.daemon = True
    timer.start()
    return timer


def exit_despite_threads() -> None:
    """Call it last: ends the process unless all its threads end by themselves within a moment."""
    deadline = time.monotonic() + _REST_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    staying = [thread for thread in others if not thread.daemon]
    for thread in staying:
        thread.join(max(0.0, deadline - time.monotonic()))
    if left := [thread.name for thread in staying if thread.is_alive()]:
        _end("threads are left behind that wait for something: %s", ", ".join(left))


def run_with_timeout(action: Callable[[], object], seconds: float) -> None:
    """Do something, and wait for its end only so long; then it goes on beside what comes next."""
    thread = threading.Thread(target=action, name=getattr(action, "__name__", "leaving"), daemon=True)
    thread.start()
    thread.join(seconds)


def _end(message: str, *arguments: object) -> None:
    log.warning(message, *arguments)
    logging.shutdown()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(0)
