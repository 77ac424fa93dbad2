"""A clerk: a process that answers questions, for one that must not load its libraries or has no time for them.

It may be started ahead of the first question, where loading takes seconds; after a while without questions it ends and
gives its memory back, and the next question starts it again.
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

_REST_SECONDS = 60.0
_NICENESS = 5  # somebody waits for the answer, and others for the API


class SubprocessFailed(RuntimeError):
    """The process died, or took too long; the message says which."""


class JsonSubprocess:
    """Asks one process (`python -m module`) one question at a time; both sides speak JSON, a line each."""

    def __init__(self, module: str, *, rest_seconds: float = _REST_SECONDS) -> None:
        self._module = module
        self._rest_seconds = rest_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest: threading.Timer | None = None

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def prepare(self) -> None:
        """Start the process, so that the first question finds it ready."""
        with self._lock:
            self._start()

    def request(self, question: dict[str, Any], patience: float) -> dict[str, Any]:
        """The answer to a question; raises NoAnswer."""
        with self._lock:
            process = self._start()
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                answer = _read_answer(process, time.monotonic() + patience)
            except TimeoutError:
                self._end()
                raise SubprocessFailed(f"it takes more than {patience:.0f} s") from None
            except OSError:
                answer = None
            if answer is None:
                code = process.wait()
                self._end()
                raise SubprocessFailed(f"its process ended with code {code}")
            return answer

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        if self.pid is None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name != "VALLEY_API_KEY"},
                start_new_session=True,  # Ctrl-C is not for it: it ends with its standard input
            )
        if self._rest is not None:
            self._rest.cancel()
        self._rest = threading.Timer(self._rest_seconds, self.close)
        self._rest.daemon = True
        self._rest.start()
        assert self._process is not None
        return self._process

    def _end(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def serve_requests(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The clerk's side: answers every line of the standard input until that ends. What goes wrong is an answer, too."""
    os.nice(_NICENESS)
    # Whatever else is printed must not mix with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for question in sys.stdin:
        try:
            given = answer(json.loads(question))
        except Exception as error:  # any question may be wrong in any way; whoever asked decides what that means
            given = {"error": str(error).split("\n", 1)[0] or type(error).__name__}
            if isinstance(error, OSError) and error.errno is not None:
                given["errno"] = error.errno
        print(json.dumps(given), file=answers, flush=True)


def _read_answer(process: subprocess.Popen[bytes], deadline: float) -> dict[str, Any] | None:
    """One line of JSON; None where the process ended instead. Raises TimeoutError."""
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
