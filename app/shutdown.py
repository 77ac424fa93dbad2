"""Graceful shutdown with a hard deadline.

A library may wait in a thread for a database or a store that does not answer, and Python waits for such threads at
exit; a deployment would kill the process meanwhile. Exiting early loses nothing: other processes take over the work as
soon as the lease of this process is free.
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

SHUTDOWN_SECONDS = 30.0
"""Time to return jobs to the queue and deregister; deployments allow 45 s and more."""
_THREADS_SECONDS = 2.0


def exit_after(seconds: float = SHUTDOWN_SECONDS) -> threading.Timer:
    """Exit this process after some time, unless the timer is cancelled."""
    timer = threading.Timer(seconds, lambda: _exit("shutdown took longer than %.0f s", seconds))
    timer.daemon = True
    timer.start()
    return timer


def exit_despite_threads() -> None:
    """Exit even if threads are still waiting. Call it last."""
    deadline = time.monotonic() + _THREADS_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    waiting = [thread for thread in others if not thread.daemon]
    for thread in waiting:
        thread.join(max(0.0, deadline - time.monotonic()))
    if names := [thread.name for thread in waiting if thread.is_alive()]:
        _exit("exiting with threads still waiting: %s", ", ".join(names))


def run_with_timeout(action: Callable[[], object], seconds: float) -> None:
    """Run an action and wait for it at most this long; after that it continues in the background."""
    thread = threading.Thread(target=action, name=getattr(action, "__name__", "shutdown"), daemon=True)
    thread.start()
    thread.join(seconds)


def _exit(message: str, *arguments: object) -> None:
    log.warning(message, *arguments)
    logging.shutdown()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(0)
