"""Objects of a store, by fsspec: listed, put, taken and removed whole, and every trouble told in one way.

Nothing that a store or its library says is repeated to people or logs, since it may hold an address with a password
or a signed header: troubles are told in our own words.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from valleyscope.app.storage.ids import new_id
from valleyscope.app.storage.s3_timeouts import ATTEMPTS, configuration
from valleyscope.app.store_url import LOCAL_SCHEMES, check_store_url

_WHOLE: Final = 16 * 2**20
"""Files up to this size travel in one request; larger ones in parts, which a store shows only when all are there."""
_PART: Final = 32 * 2**20
_ATTEMPTS: Final = 3
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}")
_DEEPEST: Final = 3
_EXTRAS: Final = {"s3": "s3", "s3a": "s3"}
_OF_THIS_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE)
_WITHOUT_CREDENTIALS = re.compile("Credential|ProfileNotFound|SSO|TokenRetrieval")
_UNREACHABLE = re.compile("Endpoint|Connect|Timeout|Timed|HTTPClientError|Gai|SSL|ServerDisconnected")


class BadStore(ValueError):
    """A store that this installation cannot use, whatever happens outside."""


class StoreUnavailable(OSError):
    """The store did not do what was asked; it may do so later. The message is for people and has no secret in it."""


@dataclass(frozen=True)
class Object:
    """An object as the store knows it; `tag` is another one for every other content."""

    size: int
    tag: str


def is_plain(name: str) -> bool:
    """Whether a name that a store told is one that we could have given: relative, plain, and not deep."""
    parts = name.split("/")
    return len(parts) <= _DEEPEST and all(_PLAIN.fullmatch(part) for part in parts)


class ObjectStore:
    """All objects under one address. Safe to use from several threads."""

    def __init__(self, url: str) -> None:
        self.url = check_store_url(url)
        self._scheme = urlsplit(url).scheme
        self._local = self._scheme in LOCAL_SCHEMES
        self._system, self._root = self._open()

    def probe(self) -> None:
        """Raise StoreTrouble unless objects can be written, read, listed and removed."""
        key = f"probes/{new_id()}"
        with self._telling("write"):
            self._refuse_missing_root()
            self._system.pipe_file(self._path(key), b"valleyscope")
        with self._telling("read"):
            found = self._system.cat_file(self._path(key))
        self.remove([key])
        if found != b"valleyscope":
            raise StoreUnavailable(f"the store {self.url} gives back something else than was written")

    def check(self) -> None:
        """Raise StoreTrouble unless the store answers; cheaper than a probe."""
        with self._telling("list"):
            self._refuse_missing_root()
            self._system.find(self._path("probes"))

    def list(self, folder: str) -> dict[str, Object]:
        """The objects in a folder by their names in it; names that cannot be ours are left out."""
        base = self._path(folder)
        with self._telling("list"):
            self._refuse_missing_root()
            listed: dict[str, dict[str, Any]] = self._system.find(base, detail=True)
        found = {}
        for path, info in listed.items():
            name = path.removeprefix(f"{base}/")
            if name != path and is_plain(name) and info.get("type") == "file" and not info.get("islink"):
                found[name] = _object(info)
        return found

    def find(self, key: str) -> Object | None:
        """What the store knows of an object, None where there is none."""
        with self._telling("read"):
            try:
                info = self._system.info(self._path(key))
            except FileNotFoundError:
                self._refuse_missing_root()
                return None
        return _object(info) if info.get("type") == "file" else None

    def put(self, key: str, source: Path) -> tuple[os.stat_result, Object]:
        """Store a file; returns which state of it was stored. It may be replaced meanwhile, but not changed."""
        with source.open("rb") as file:
            state = os.fstat(file.fileno())
            with self._telling("write"):
                self._refuse_missing_root()
                if self._local:
                    self._replace(Path(self._path(key)), file)
                elif state.st_size <= _WHOLE:
                    self._system.pipe_file(self._path(key), file.read())
                else:
                    self._send(key, file)
        stored = self.find(key)
        if stored is None or stored.size != state.st_size:
            raise StoreUnavailable(f"the store {self.url} does not have what was just written to it")
        return state, stored

    def get(self, key: str, target: Path) -> tuple[os.stat_result, Object] | None:
        """Write an object to a file, whole or not at all; None where there is none."""
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}.pull")
        try:
            for _ in range(_ATTEMPTS):
                before = self.find(key)
                if before is None:
                    return None
                with self._telling("read"):
                    try:
                        self._system.get_file(self._path(key), str(partial))
                    except FileNotFoundError:
                        continue
                # Large objects come in several requests: whoever replaced it between them is noticed by its tag.
                if self.find(key) == before and partial.stat().st_size == before.size:
                    state = partial.stat()
                    partial.replace(target)
                    return state, before
            raise StoreUnavailable(f"the store {self.url} changes an object faster than it can be read")
        finally:
            partial.unlink(missing_ok=True)

    def read(self, key: str) -> bytes | None:
        """The content of a small object; None where there is none."""
        with self._telling("read"):
            try:
                content: bytes = self._system.cat_file(self._path(key))
            except FileNotFoundError:
                self._refuse_missing_root()
                return None
        return content

    def write(self, key: str, content: bytes) -> None:
        """Store a small object."""
        with self._telling("write"):
            self._refuse_missing_root()
            if self._local:
                self._replace(Path(self._path(key)), BytesIO(content))
            else:
                self._system.pipe_file(self._path(key), content)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are removed already."""
        for key in keys:
            with self._telling("remove"):
                try:
                    self._system.rm_file(self._path(key))
                except FileNotFoundError:
                    self._refuse_missing_root()

    def remove_folder(self, folder: str) -> None:
        """Remove everything in a folder, also what is not ours."""
        base = self._path(folder)
        with self._telling("remove"):
            self._refuse_missing_root()
            if self._system.exists(base):
                self._system.rm(base, recursive=True)
            # Libraries delete in bulk, and do not say where some of it was refused.
            if self._system.find(base):
                raise StoreUnavailable(f"the store {self.url} does not let objects be removed")

    def _send(self, key: str, file: Any) -> None:
        target = self._system.open(self._path(key), "wb", block_size=_PART, autocommit=False)
        try:
            shutil.copyfileobj(file, target, _PART)
            target.close()
            target.commit()
        except BaseException:
            target.discard()
            raise

    @staticmethod
    def _replace(target: Path, file: Any) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}.push")
        try:
            with partial.open("xb") as copy:
                shutil.copyfileobj(file, copy, _PART)
                copy.flush()
                os.fsync(copy.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def _refuse_missing_root(self) -> None:
        """A folder that is not mounted must not be made on the disk below it."""
        if self._local and not self._system.isdir(self._root):
            raise FileNotFoundError(self._root)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _open(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # only where a store is in use

        options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
        if self._local:
            options |= {"auto_mkdir": True}
        try:
            if self._scheme in _EXTRAS:
                options |= {"config_kwargs": configuration()}
            system, root = url_to_fs(self.url, **options)
        except ImportError:
            extra = _EXTRAS.get(self._scheme)
            remedy = f"pip install 'valleyscope[{extra}]'" if extra else "install fsspec's library for it"
            raise BadStore(f"store={self.url!r} needs a library that is not installed: {remedy}") from None
        except ValueError:
            raise BadStore(f"store={self.url!r}: {self._scheme}:// is unknown: use s3://bucket/prefix") from None
        if self._scheme in _EXTRAS:
            system.retries = ATTEMPTS  # five else, each with its time limit
        return system, root.rstrip("/")

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _OF_THIS_DISK and not self._local:
                raise
            raise StoreUnavailable(f"the store {self.url} {self._reason(error, what)}") from None

    def _reason(self, error: Exception, what: str) -> str:
        kind = type(error).__name__
        if isinstance(error, PermissionError):
            if self._local:
                return f"does not let this user {what}: change the owner or the mode of its folder"
            return (
                f"refuses these credentials to {what}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_PROFILE, "
                "and that they may list, read, write and delete there"
            )
        if isinstance(error, FileNotFoundError):
            return "does not exist: mount or make its folder" if self._local else "does not exist: make its bucket"
        if _WITHOUT_CREDENTIALS.search(kind):
            return f"needs credentials, and there are none ({kind}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if isinstance(error, ConnectionError | TimeoutError) or _UNREACHABLE.search(kind):
            return f"cannot be reached ({kind}): check the network and AWS_ENDPOINT_URL"
        if isinstance(error, OSError) and error.errno is not None:
            return f"fails to {what} ({errno.errorcode.get(error.errno, error.errno)})"
        return f"fails to {what} ({kind})"


def _object(info: dict[str, Any]) -> Object:
    for field in ("ETag", "etag", "md5Hash", "content_md5"):
        if info.get(field):
            return Object(int(info["size"]), str(info[field]).strip('"'))
    marks = (info.get(field) for field in ("mtime", "LastModified", "last_modified", "ino"))
    return Object(int(info["size"]), "-".join(str(mark) for mark in marks if mark is not None))
