"""The saved state of an eigenvalue computation, from which a killed one goes on with identical numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from valleyscope.landscape.fitting.checkpoint import read_state, write_state

State = dict[str, Any]
_WRITING_SHARE = 0.05


class SavedState:
    """The states of the stages of a computation in one file; without a path nothing is saved.

    ``identity`` says what is computed: a file with another one is replaced. A state larger than ``most_bytes`` is not
    saved, and writing takes a twentieth of the time at most, so saving costs little however large the network is. With
    ``every=0`` it is saved at every chance.
    """

    def __init__(
        self, path: Path | None, identity: Mapping[str, Any], *, every: float = 10.0, most_bytes: int = 10**9
    ) -> None:
        self._path = path
        self._identity = dict(identity)
        self._every = every
        self._most_bytes = most_bytes
        self._wait = every
        self._saved = time.monotonic()
        self._stages = self._read()

    def stage(self, name: str) -> State | None:
        """What was saved of a stage; None if it has to start."""
        return self._stages.get(name)

    def offer(self, name: str, make: Callable[[], State], *, now: bool = False) -> None:
        """Save the state of a stage if it is time, or ``now``; states of other stages are kept."""
        begin = time.monotonic()
        if self._path is None or not (now or begin - self._saved >= self._wait):
            return
        self._stages[name] = make()
        if _bytes(self._stages) <= self._most_bytes:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_state(self._path, self._identity, self._stages)
        self._saved = time.monotonic()
        self._wait = self._every and max(self._every, (self._saved - begin) / _WRITING_SHARE)

    def drop(self, name: str) -> None:
        """Forget a stage that is over."""
        self._stages.pop(name, None)

    def remove(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _read(self) -> State:
        if self._path is None:
            return {}
        try:
            return read_state(self._path, self._identity) or {}
        except ValueError:  # of another computation, or damaged: it is cheaper to start than to ask
            return {}


def _bytes(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.untyped_storage().nbytes() if value.dim() else 8
    if isinstance(value, Mapping):
        return sum(map(_bytes, value.values()))
    return 8
