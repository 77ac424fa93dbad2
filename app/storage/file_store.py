"""The files that all hosts of a service share: in a folder that all mount, or in an object store that each copies from.

With an object store, each host has copies of the files it works on, and the store has:

    experiments/<id>/...             the folder of an experiment
    checkpoints/<id>.safetensors     an upload
    identity                         which database the files belong to
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from valleyscope.app.storage.home import IDENTITY, Home
from valleyscope.app.storage.object_store import Object, ObjectStore, StoreUnavailable, is_plain
from valleyscope.app.storage.sync_index import SyncedFile, SyncIndex

NameFilter = Callable[[str], bool]
_CHECK_INTERVAL_SECONDS: Final = 5.0
_CHECK_TIMEOUT_SECONDS: Final = 3.0
"""`problem` answers within this time, because health checks wait only for seconds."""


class FileStore:
    """Files in the home, which all hosts mount: methods that copy files between hosts have nothing to do."""

    remote = False
    """Whether files are copied. If so, any method may raise StoreUnavailable, and can then be called again."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def location(self) -> str:
        """The setting that says where the files are, with its value."""
        return f"home={str(self._home.path)!r}"

    def identity(self) -> str | None:
        """The identity that the files share with their database; None before they have one."""
        return self._home.identity()

    def write_identity(self, identity: str) -> None:
        self._home.write_identity(identity)

    def has_files(self) -> bool:
        """Whether there are files of experiments or uploads."""
        return bool(self._home.stored_experiments() or self._home.stored_checkpoints())

    def file_sizes(self, experiment: str) -> dict[str, int]:  # noqa: ARG002
        """The size of each file that the store has of an experiment."""
        return {}

    def pull(self, experiment: str, wanted: NameFilter) -> None:
        """Copy files here that changed in the store since they were last synced."""

    def push(self, experiment: str, wanted: NameFilter) -> None:
        """Copy files to the store that changed here, and remove from it what was removed here."""

    def fetch(self, experiment: str, name: str, *, age: float = 0.0) -> None:
        """Pull one file, unless that was done less than `age` seconds ago."""

    def remove(self, experiment: str) -> None:
        """Remove all objects of an experiment."""

    def push_checkpoint(self, identifier: str) -> None: ...

    def fetch_checkpoint(self, identifier: str) -> None:
        """Copy an upload here, unless it is here already or the store does not have it."""

    def remove_checkpoint(self, identifier: str) -> None: ...

    def probe(self) -> None:
        """Raise unless files can be listed, read, written and removed."""

    def problem(self) -> str | None:
        """What is wrong with the store now; cheap enough to be called often."""
        return None


def open_store(url: str | None, home: Home) -> FileStore:
    """The store of a service, without connecting to it; raises BadStore if this installation cannot use it."""
    return FileStore(home) if url is None else ObjectStoreReplica(ObjectStore(url), home)


class ObjectStoreReplica(FileStore):
    """This host's copies of files in an object store."""

    remote = True

    def __init__(self, objects: ObjectStore, home: Home) -> None:
        super().__init__(home)
        self._objects = objects
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._fetched: dict[tuple[str, str], float] = {}
        self._check_lock = threading.Lock()
        self._checked = threading.Event()
        self._check_started: float | None = None
        self._problem: str | None = None

    @property
    def location(self) -> str:
        return f"store={self._objects.url!r}"

    def identity(self) -> str | None:
        found = self._objects.read(IDENTITY)
        return None if found is None else found.decode("ascii", "replace").strip() or None

    def write_identity(self, identity: str) -> None:
        self._objects.write(IDENTITY, f"{identity}\n".encode())

    def has_files(self) -> bool:
        return any(self._objects.list(folder) for folder in ("checkpoints", "experiments"))

    def file_sizes(self, experiment: str) -> dict[str, int]:
        return {name: found.size for name, found in self._objects.list(_folder(experiment)).items()}

    def pull(self, experiment: str, wanted: NameFilter) -> None:
        with self._locks[experiment]:
            for name, found in self._objects.list(_folder(experiment)).items():
                if wanted(name):
                    self._download(experiment, name, found)

    def fetch(self, experiment: str, name: str, *, age: float = 0.0) -> None:
        key = (experiment, name)
        if age and time.monotonic() - self._fetched.get(key, -age) < age:
            return
        with self._locks[experiment]:
            found = self._objects.find(_key(experiment, name))
            if found is not None:
                self._download(experiment, name, found)
        self._fetched[key] = time.monotonic()

    def push(self, experiment: str, wanted: NameFilter) -> None:
        folder = self._home.experiment(experiment)
        with self._locks[experiment]:
            index = SyncIndex(folder)
            entries = index.read()
            present = {name: path for name, path in _files(folder) if wanted(name)}
            for name, path in present.items():
                try:
                    synced = entries.get(name)
                    if synced is None or not synced.matches(path.stat()):
                        state, stored = self._objects.put(_key(experiment, name), path)
                        index.update({name: SyncedFile.of(state, stored.tag)})
                except FileNotFoundError:
                    continue  # its task has just removed it
            for name in entries:
                if wanted(name) and not (folder / name).is_file():
                    self._objects.remove(_key(experiment, name))
                    index.update({name: None})

    def remove(self, experiment: str) -> None:
        with self._locks[experiment]:
            self._objects.remove_folder(_folder(experiment))
        for key in [key for key in self._fetched if key[0] == experiment]:
            self._fetched.pop(key, None)

    def push_checkpoint(self, identifier: str) -> None:
        self._objects.put(_checkpoint(identifier), self._home.checkpoint(identifier))

    def fetch_checkpoint(self, identifier: str) -> None:
        target = self._home.checkpoint(identifier)
        if not target.is_file():
            self._objects.get(_checkpoint(identifier), target)

    def remove_checkpoint(self, identifier: str) -> None:
        self._objects.remove(_checkpoint(identifier))

    def probe(self) -> None:
        self._objects.probe()

    def problem(self) -> str | None:
        with self._check_lock:
            now = time.monotonic()
            started = self._check_started
            if started is None or (self._checked.is_set() and now - started > _CHECK_INTERVAL_SECONDS):
                started = self._check_started = now
                self._checked.clear()
                threading.Thread(target=self._check, name="store", daemon=True).start()
        if not self._checked.wait(max(0.0, _CHECK_TIMEOUT_SECONDS - (now - started))):
            return f"the store {self._objects.url} does not answer: check the network and AWS_ENDPOINT_URL"
        return self._problem

    def _check(self) -> None:
        try:
            self._objects.check()
            self._problem = None
        except StoreUnavailable as error:
            self._problem = str(error)
        finally:
            self._checked.set()

    def _download(self, experiment: str, name: str, found: Object) -> None:
        """Copy an object here, unless the local file is the same or was made from it."""
        folder = self._home.experiment(experiment)
        index = SyncIndex(folder)
        synced = index.read().get(name)
        if synced is not None and synced.tag == found.tag and (folder / name).is_file():
            return
        downloaded = self._objects.get(_key(experiment, name), folder / name)
        if downloaded is not None:
            state, stored = downloaded
            index.update({name: SyncedFile.of(state, stored.tag)})


def _files(folder: Path) -> list[tuple[str, Path]]:
    """The files of a folder by their names in the store, without hidden and temporary ones."""
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
        raise ValueError(f"{name!r} is not a valid file name")
    return f"{_folder(experiment)}/{name}"


def _checkpoint(identifier: str) -> str:
    return f"checkpoints/{Home.checked(identifier)}.safetensors"
