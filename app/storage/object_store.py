"""Objects in a store, through fsspec: list, put, get and remove whole objects, with one kind of error.

Error messages never repeat what the store or its library says: it may contain a URL with a password or a signed header.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from valleyscope.app.storage.ids import new_id
from valleyscope.app.storage.s3_timeouts import ATTEMPTS, client_config
from valleyscope.app.store_url import LOCAL_SCHEMES, check_store_url

_MAX_SINGLE_PUT: Final = 16 * 2**20
"""Larger files are sent in parts; a store shows such an object only when all parts are there."""
_PART_BYTES: Final = 32 * 2**20
_READ_ATTEMPTS: Final = 3
_NAME_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}")
_MAX_DEPTH: Final = 3
_EXTRAS: Final = {"s3": "s3", "s3a": "s3"}
_LOCAL_DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE)
_NO_CREDENTIALS = re.compile("Credential|ProfileNotFound|SSO|TokenRetrieval")
_UNREACHABLE = re.compile("Endpoint|Connect|Timeout|Timed|HTTPClientError|Gai|SSL|ServerDisconnected")


class BadStore(ValueError):
    """This installation cannot use the store; a retry does not help."""


class StoreUnavailable(OSError):
    """A request to the store failed; a retry may help. The message contains no secrets."""


@dataclass(frozen=True)
class Object:
    """An object in the store; each content has another `tag`."""

    size: int
    tag: str


def is_plain(name: str) -> bool:
    """Whether a name is relative, of plain characters and not nested too deeply."""
    parts = name.split("/")
    return len(parts) <= _MAX_DEPTH and all(_NAME_PART.fullmatch(part) for part in parts)


class ObjectStore:
    """All objects under one URL. Thread-safe."""

    def __init__(self, url: str) -> None:
        self.url = check_store_url(url)
        self._scheme = urlsplit(url).scheme
        self._local = self._scheme in LOCAL_SCHEMES
        self._system, self._root = self._open()

    def probe(self) -> None:
        """Raise StoreUnavailable unless objects can be written, read, listed and removed."""
        key = f"probes/{new_id()}"
        with self._wrap_errors("write"):
            self._check_root()
            self._system.pipe_file(self._path(key), b"valleyscope")
        with self._wrap_errors("read"):
            found = self._system.cat_file(self._path(key))
        self.remove(key)
        if found != b"valleyscope":
            raise StoreUnavailable(f"the store {self.url} returned other data than written: check its configuration")

    def check(self) -> None:
        """Raise StoreUnavailable unless the store answers; cheaper than a probe."""
        with self._wrap_errors("list"):
            self._check_root()
            self._system.find(self._path("probes"))

    def list(self, folder: str) -> dict[str, Object]:
        """The objects in a folder by their names in it, without those whose names are not plain."""
        base = self._path(folder)
        with self._wrap_errors("list"):
            self._check_root()
            listed: dict[str, dict[str, Any]] = self._system.find(base, detail=True)
        found = {}
        for path, info in listed.items():
            name = path.removeprefix(f"{base}/")
            if name != path and is_plain(name) and info.get("type") == "file" and not info.get("islink"):
                found[name] = _object(info)
        return found

    def find(self, key: str) -> Object | None:
        """An object, or None if it does not exist."""
        with self._wrap_errors("read"):
            try:
                info = self._system.info(self._path(key))
            except FileNotFoundError:
                self._check_root()
                return None
        return _object(info) if info.get("type") == "file" else None

    def put(self, key: str, source: Path) -> tuple[os.stat_result, Object]:
        """Store a file and return the state that was stored. The file may be replaced meanwhile, but not changed."""
        with source.open("rb") as file:
            state = os.fstat(file.fileno())
            with self._wrap_errors("write"):
                self._check_root()
                if self._local:
                    self._replace(Path(self._path(key)), file)
                elif state.st_size <= _MAX_SINGLE_PUT:
                    self._system.pipe_file(self._path(key), file.read())
                else:
                    self._put_in_parts(key, file)
        stored = self.find(key)
        if stored is None or stored.size != state.st_size:
            raise StoreUnavailable(f"the store {self.url} lost an object just written to it: check its configuration")
        return state, stored

    def get(self, key: str, target: Path) -> tuple[os.stat_result, Object] | None:
        """Write an object to a file atomically; None if the object does not exist."""
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}.pull")
        try:
            for _ in range(_READ_ATTEMPTS):
                before = self.find(key)
                if before is None:
                    return None
                with self._wrap_errors("read"):
                    try:
                        self._system.get_file(self._path(key), str(partial))
                    except FileNotFoundError:
                        continue
                # Large objects are read in several requests: the tag shows whether it was replaced between them.
                if self.find(key) == before and partial.stat().st_size == before.size:
                    state = partial.stat()
                    partial.replace(target)
                    return state, before
            raise StoreUnavailable(f"the store {self.url} replaced an object each time it was read: try again")
        finally:
            partial.unlink(missing_ok=True)

    def read(self, key: str) -> bytes | None:
        """The content of a small object; None if it does not exist."""
        with self._wrap_errors("read"):
            try:
                content: bytes = self._system.cat_file(self._path(key))
            except FileNotFoundError:
                self._check_root()
                return None
        return content

    def write(self, key: str, content: bytes) -> None:
        with self._wrap_errors("write"):
            self._check_root()
            if self._local:
                self._replace(Path(self._path(key)), BytesIO(content))
            else:
                self._system.pipe_file(self._path(key), content)

    def remove(self, key: str) -> None:
        """Remove an object; a missing one is ignored."""
        with self._wrap_errors("remove"):
            try:
                self._system.rm_file(self._path(key))
            except FileNotFoundError:
                self._check_root()

    def remove_folder(self, folder: str) -> None:
        """Remove everything in a folder, including unknown files."""
        base = self._path(folder)
        with self._wrap_errors("remove"):
            self._check_root()
            if self._system.exists(base):
                self._system.rm(base, recursive=True)
            # Libraries delete in bulk, and do not report objects that were refused.
            if self._system.find(base):
                raise StoreUnavailable(f"the store {self.url} did not remove objects: check the credentials")

    def _put_in_parts(self, key: str, file: Any) -> None:
        target = self._system.open(self._path(key), "wb", block_size=_PART_BYTES, autocommit=False)
        try:
            shutil.copyfileobj(file, target, _PART_BYTES)
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
                shutil.copyfileobj(file, copy, _PART_BYTES)
                copy.flush()
                os.fsync(copy.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def _check_root(self) -> None:
        """A folder that is not mounted must not be created on the disk below it."""
        if self._local and not self._system.isdir(self._root):
            raise FileNotFoundError(self._root)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _open(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # only if a store is used

        options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
        if self._local:
            options |= {"auto_mkdir": True}
        try:
            if self._scheme in _EXTRAS:
                options |= {"config_kwargs": client_config()}
            system, root = url_to_fs(self.url, **options)
        except ImportError:
            extra = _EXTRAS.get(self._scheme)
            remedy = f"pip install 'valleyscope[{extra}]'" if extra else "install fsspec's library for it"
            raise BadStore(f"store={self.url!r} needs a library that is not installed: {remedy}") from None
        except ValueError:
            raise BadStore(f"store={self.url!r}: {self._scheme}:// is not supported: use s3://bucket/prefix") from None
        if self._scheme in _EXTRAS:
            system.retries = ATTEMPTS  # the default is five, each with its time limit
        return system, root.rstrip("/")

    @contextmanager
    def _wrap_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _LOCAL_DISK_ERRORS and not self._local:
                raise
            raise StoreUnavailable(f"the store {self.url} {self._reason(error, action)}") from None

    def _reason(self, error: Exception, action: str) -> str:
        kind = type(error).__name__
        if isinstance(error, PermissionError):
            if self._local:
                return f"does not let this user {action}: change the owner or the mode of its folder"
            return (
                f"does not allow these credentials to {action}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or "
                "AWS_PROFILE, and allow them to list, read, write and delete"
            )
        if isinstance(error, FileNotFoundError):
            return "does not exist: mount or create its folder" if self._local else "does not exist: create its bucket"
        if _NO_CREDENTIALS.search(kind):
            return f"needs credentials ({kind}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if isinstance(error, ConnectionError | TimeoutError) or _UNREACHABLE.search(kind):
            return f"cannot be reached ({kind}): check the network and AWS_ENDPOINT_URL"
        if isinstance(error, OSError) and error.errno is not None:
            return f"failed to {action} ({errno.errorcode.get(error.errno, error.errno)})"
        return f"failed to {action} ({kind})"


def _object(info: dict[str, Any]) -> Object:
    for field in ("ETag", "etag", "md5Hash", "content_md5"):
        if info.get(field):
            return Object(int(info["size"]), str(info[field]).strip('"'))
    marks = (info.get(field) for field in ("mtime", "LastModified", "last_modified", "ino"))
    return Object(int(info["size"]), "-".join(str(mark) for mark in marks if mark is not None))
