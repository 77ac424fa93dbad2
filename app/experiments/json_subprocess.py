"""A subprocess that answers JSON requests, for work that would slow down the calling process or load torch into it.

It may be started before the first request if its imports take seconds. When idle it ends to free its memory; the
next request starts it again.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

_IDLE_SECONDS = 60.0
_NICENESS = 5  # the API goes first


class SubprocessFailed(RuntimeError):
    """The subprocess died or took too long; the message says which."""


class JsonSubprocess:
    """Sends `python -m module` one request at a time; requests and answers are lines of JSON."""

    def __init__(self, module: str, *, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._module = module
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._idle_timer: threading.Timer | None = None

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def prepare(self) -> None:
        """Start the subprocess ahead of the first request."""
        with self._lock:
            self._start()

    def request(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to a request; raises SubprocessFailed."""
        with self._lock:
            process = self._start()
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                answer = _read_answer(process, time.monotonic() + timeout)
            except TimeoutError:
                self._stop()
                raise SubprocessFailed(f"no answer after {timeout:.0f} s") from None
            except OSError:
                answer = None
            if answer is None:
                code = process.wait()
                self._stop()
                raise SubprocessFailed(f"the subprocess ended with code {code}")
            return answer

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _start(self) -> subprocess.Popen[bytes]:
        if self.pid is None:
            self._stop()
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name != "VALLEY_API_KEY"},
                start_new_session=True,  # Ctrl-C does not reach it: it ends with its standard input
            )
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = threading.Timer(self._idle_seconds, self.close)
        self._idle_timer.daemon = True
        self._idle_timer.start()
        assert self._process is not None
        return self._process

    def _stop(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def serve_requests(handle: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Runs in the subprocess: answer each line of the standard input until it ends. Errors become answers."""
    os.nice(_NICENESS)
    # Other output must not mix with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        try:
            answer = handle(json.loads(line))
        except Exception as error:  # the caller decides what an error means
            answer = {"error": str(error).split("\n", 1)[0] or type(error).__name__}
            if isinstance(error, OSError) and error.errno is not None:
                answer["errno"] = error.errno
        print(json.dumps(answer), file=answers, flush=True)


def _read_answer(process: subprocess.Popen[bytes], deadline: float) -> dict[str, Any] | None:
    """One line of JSON; None if the process ended. Raises TimeoutError."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    text = bytearray()
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            return None
        text += chunk
    answer: dict[str, Any] = json.loads(text)
    return answer
