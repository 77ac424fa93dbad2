"""The store that hosts have in common: a folder that all of them mount, or objects that each one copies from and to.

With a shared folder there is nothing to carry. With objects, every host has a copy of its own of what it works at, and
the copies meet in the store:

    experiments/<id>/...             the folder of an experiment
    checkpoints/<id>.safetensors     an upload
    identity                         which database they are of
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from valleyscope.app.storage.home import IDENTITY, Home
from valleyscope.app.storage.object_store import Object, ObjectStore, StoreUnavailable, is_plain
from valleyscope.app.storage.sync_index import SyncedFile, SyncIndex

Wanted = Callable[[str], bool]
_ANSWER_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 3.0
"""Whoever asks for trouble with the store has an answer after so long: health checks wait for seconds only."""


class FileStore(Protocol):
    """Carries files between the hosts of a service. Everything may raise StoreTrouble, and can be tried again."""

    @property
    def remote(self) -> bool:
        """Whether files have to be carried at all."""
        ...

    @property
    def place(self) -> str:
        """Where the files are, for people."""
        ...

    def identity(self) -> str | None:
        """The name that the files have in common with their database; None where they have none yet."""
        ...

    def identify(self, name: str) -> None:
        """Give them a name."""
        ...

    def occupied(self) -> bool:
        """Whether there are files of experiments or uploads."""
        ...

    def names(self, experiment: str) -> dict[str, int]:
        """The files that the store has of an experiment, with their sizes."""
        ...

    def pull(self, experiment: str, wanted: Wanted) -> None:
        """Copy files here that the store has in another form than was last seen here."""
        ...

    def push(self, experiment: str, wanted: Wanted) -> None:
        """Copy files to the store that changed here, and remove there what was removed here."""
        ...

    def fetch(self, experiment: str, name: str, *, age: float = 0.0) -> None:
        """Pull one file, unless that was done `age` seconds ago or less."""
        ...

    def remove(self, experiment: str) -> None:
        """Remove all objects of an experiment."""
        ...

    def push_checkpoint(self, identifier: str) -> None: ...

    def fetch_checkpoint(self, identifier: str) -> None:
        """Copy an upload here, if it is not here already and the store has it."""
        ...

    def remove_checkpoint(self, identifier: str) -> None: ...

    def probe(self) -> None:
        """Raise unless everything that is done with a store can be done."""
        ...

    def trouble(self) -> str | None:
        """What is wrong with the store at present; cheap enough to be asked often."""
        ...


def open_store(url: str | None, storage: Home) -> FileStore:
    """The store of a service; raises BadStore where this installation cannot use it. Nothing is asked of it yet."""
    return SharedFolder(storage) if url is None else ObjectStoreReplica(ObjectStore(url), storage)


class SharedFolder:
    """All hosts mount the home, so every file is everywhere already."""

    remote = False

    def __init__(self, storage: Home) -> None:
        self._storage = storage

    @property
    def place(self) -> str:
        return f"home={str(self._storage.home)!r}"

    def identity(self) -> str | None:
        return self._storage.identity()

    def identify(self, name: str) -> None:
        self._storage.identify(name)

    def occupied(self) -> bool:
        return bool(self._storage.stored_experiments() or self._storage.stored_checkpoints())

    def names(self, experiment: str) -> dict[str, int]:  # noqa: ARG002
        return {}

    def pull(self, experiment: str, wanted: Wanted) -> None: ...

    def push(self, experiment: str, wanted: Wanted) -> None: ...

    def fetch(self, experiment: str, name: str, *, age: float = 0.0) -> None: ...

    def remove(self, experiment: str) -> None: ...

    def push_checkpoint(self, identifier: str) -> None: ...

    def fetch_checkpoint(self, identifier: str) -> None: ...

    def remove_checkpoint(self, identifier: str) -> None: ...

    def probe(self) -> None: ...

    def trouble(self) -> str | None:
        return None


class ObjectStoreReplica:
    """This host's copy of what is in a store of objects."""

    remote = True

    def __init__(self, objects: ObjectStore, storage: Home) -> None:
        self._objects = objects
        self._storage = storage
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._fetched: dict[tuple[str, str], float] = {}
        self._asking = threading.Lock()
        self._answered = threading.Event()
        self._asked: float | None = None
        self._answer: str | None = None

    @property
    def place(self) -> str:
        return f"store={self._objects.url!r}"

    def identity(self) -> str | None:
        found = self._objects.read(IDENTITY)
        return None if found is None else found.decode("ascii", "replace").strip() or None

    def identify(self, name: str) -> None:
        self._objects.write(IDENTITY, f"{name}\n".encode())

    def occupied(self) -> bool:
        return any(self._objects.list(folder) for folder in ("checkpoints", "experiments"))

    def names(self, experiment: str) -> dict[str, int]:
        return {name: found.size for name, found in self._objects.list(_folder(experiment)).items()}

    def pull(self, experiment: str, wanted: Wanted) -> None:
        with self._locks[experiment]:
            for name, found in self._objects.list(_folder(experiment)).items():
                if wanted(name):
                    self._take(experiment, name, found)

    def fetch(self, experiment: str, name: str, *, age: float = 0.0) -> None:
        key = (experiment, name)
        if age and time.monotonic() - self._fetched.get(key, -age) < age:
            return
        with self._locks[experiment]:
            found = self._objects.find(_key(experiment, name))
            if found is not None:
                self._take(experiment, name, found)
        self._fetched[key] = time.monotonic()

    def push(self, experiment: str, wanted: Wanted) -> None:
        folder = self._storage.experiment(experiment)
        with self._locks[experiment]:
            agreement = SyncIndex(folder)
            known = agreement.read()
            present = {name: path for name, path in _files(folder) if wanted(name)}
            for name, path in present.items():
                try:
                    agreed = known.get(name)
                    if agreed is None or not agreed.is_of(path.stat()):
                        state, stored = self._objects.put(_key(experiment, name), path)
                        agreement.change({name: SyncedFile.of(state, stored.tag)})
                except FileNotFoundError:
                    continue  # its task has just removed it
            for name in known:
                if wanted(name) and not (folder / name).is_file():
                    self._objects.remove([_key(experiment, name)])
                    agreement.change({name: None})

    def remove(self, experiment: str) -> None:
        with self._locks[experiment]:
            self._objects.remove_folder(_folder(experiment))
        for key in [key for key in self._fetched if key[0] == experiment]:
            self._fetched.pop(key, None)

    def push_checkpoint(self, identifier: str) -> None:
        self._objects.put(_checkpoint(identifier), self._storage.checkpoint(identifier))

    def fetch_checkpoint(self, identifier: str) -> None:
        target = self._storage.checkpoint(identifier)
        if not target.is_file():
            self._objects.get(_checkpoint(identifier), target)

    def remove_checkpoint(self, identifier: str) -> None:
        self._objects.remove([_checkpoint(identifier)])

    def probe(self) -> None:
        self._objects.probe()

    def trouble(self) -> str | None:
        with self._asking:
            now = time.monotonic()
            if self._asked is None or (self._answered.is_set() and now - self._asked > _ANSWER_SECONDS):
                self._asked = now
                self._answered.clear()
                threading.Thread(target=self._ask, name="store", daemon=True).start()
            waited = now - self._asked
        if not self._answered.wait(max(0.0, _PATIENCE_SECONDS - waited)):
            return f"the store {self._objects.url} does not answer: check the network and AWS_ENDPOINT_URL"
        return self._answer

    def _ask(self) -> None:
        try:
            self._objects.check()
            self._answer = None
        except StoreUnavailable as error:
            self._answer = str(error)
        finally:
            self._answered.set()

    def _take(self, experiment: str, name: str, found: Object) -> None:
        """Copy an object here, unless the file here is the same or was made from it."""
        folder = self._storage.experiment(experiment)
        agreement = SyncIndex(folder)
        agreed = agreement.read().get(name)
        if agreed is not None and agreed.tag == found.tag and (folder / name).is_file():
            return
        taken = self._objects.get(_key(experiment, name), folder / name)
        if taken is not None:
            state, stored = taken
            agreement.change({name: SyncedFile.of(state, stored.tag)})


def _files(folder: Path) -> list[tuple[str, Path]]:
    """The files of a folder by their names in the store; what is hidden is on its way, or ours."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if is_plain(name) and path.is_file() and not path.is_symlink():
            found.append((name, path))
    return found


def _folder(experiment: str) -> str:
    return f"experiments/{Home.checked(experiment)}"


def _key(experiment: str, name: str) -> str:
    if not is_plain(name):
        raise ValueError(f"{name!r} is no name of a file of ours")
    return f"{_folder(experiment)}/{name}"


def _checkpoint(identifier: str) -> str:
    return f"checkpoints/{Home.checked(identifier)}.safetensors"
