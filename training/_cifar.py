"""Read the python version of CIFAR-10 and CIFAR-100 without running code from the pickles."""

from __future__ import annotations

import io
import pickle
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from valleyscope.training.dataset_sources import REMEDY, CorruptData, Source

_PIXELS = 3 * 32 * 32


def read_cifar(source: Source, root: Path) -> tuple[npt.NDArray[Any], ...]:
    """Return x_train (N, 3, 32, 32), y_train (N,), x_test and y_test, from the unpacked files or from the archive."""
    files = _read_files(source, root)
    batches = [_batch(path, content) for path, content in files.items()]
    images = [images for images, _ in batches]
    labels = [labels for _, labels in batches]
    # The last of the files is the test set.
    return np.concatenate(images[:-1]), np.concatenate(labels[:-1]), images[-1], labels[-1]


def _read_files(source: Source, root: Path) -> dict[str, bytes]:
    """Return the bytes of every file of the data set, in the order of `source.files`, by the name errors use."""
    folder = root / source.folder
    if all((folder / name).is_file() for name in source.files):
        return {str(folder / name): (folder / name).read_bytes() for name in source.files}
    archive = root / source.archive
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                file = members.extractfile(member) if member.isfile() else None
                if file is not None and member.name.removeprefix("./").startswith(f"{source.folder}/"):
                    found[member.name.rsplit("/", 1)[-1]] = file.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise CorruptData(f"{archive} is not a complete gzipped tar archive ({error}): {REMEDY}") from error
    if missing := [name for name in source.files if name not in found]:
        raise CorruptData(f"{archive} lacks {', '.join(missing)} in {source.folder}: {REMEDY}")
    return {f"{archive}/{source.folder}/{name}": found[name] for name in source.files}


def _batch(path: str, content: bytes) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return images (N, 3, 32, 32) and labels (N,) of one pickled batch."""
    try:
        entries = _PlainData(io.BytesIO(content), encoding="bytes").load()
    except pickle.UnpicklingError as error:
        raise CorruptData(f"{path} is not a batch of CIFAR ({error}): {REMEDY}") from error
    except Exception as error:
        # A damaged pickle may raise anything.
        raise CorruptData(f"{path} is not a complete pickle ({type(error).__name__}: {error}): {REMEDY}") from error
    if isinstance(entries, dict):
        entries = {key.decode() if isinstance(key, bytes) else key: value for key, value in entries.items()}
        images, labels = entries.get("data"), entries.get("labels", entries.get("fine_labels"))
        if isinstance(images, _Array) and isinstance(labels, list) and all(type(label) is int for label in labels):
            pixels = images.bytes(path)
            if pixels.size == len(labels) * _PIXELS:
                return pixels.reshape(-1, 3, 32, 32), np.array(labels, np.int64)
            raise CorruptData(f"{path} has {pixels.size} pixel bytes, not {_PIXELS} for each of {len(labels)} labels")
    raise CorruptData(f"{path} does not hold a dict with the array `data` and a list of labels: {REMEDY}")


class _Dtype:
    """Replaces numpy.dtype in a pickle: stores its code."""

    def __init__(self, code: object, *_: object) -> None:
        self.code = code.decode("latin1") if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and alignment: a single byte has neither."""


class _Array:
    """Replaces numpy.ndarray in a pickle: stores its state."""

    state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def bytes(self, path: str) -> npt.NDArray[np.uint8]:
        """Return the elements, which must be unsigned bytes in C order (version, shape, kind, Fortran order, data)."""
        match self.state:
            case (_, tuple(), _Dtype(code="u1" | "|u1"), fortran, bytes(data)) if not fortran:
                return np.frombuffer(data, np.uint8)
        raise CorruptData(f"{path}: `data` is not an array of unsigned bytes: {REMEDY}")


class _PlainData(pickle.Unpickler):
    """Unpickles dicts, lists, numbers, strings and byte arrays; imports no class or function."""

    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case "numpy", "dtype":
                return _Dtype
            case "numpy", "ndarray":
                return _Array
            case "numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct":
                return lambda *_: _Array()
            case "_codecs", "encode":
                return lambda text, _: text.encode("latin1")
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, which pixels and labels do not need")
