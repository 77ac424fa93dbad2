"""Check a safetensors file without loading it; an upload while it is received.

A safetensors file has eight bytes with the length of its header, the header (JSON: type, shape and offsets of each
tensor), and the tensors. The header is checked before the first tensor is accepted, so memory is bounded whatever a
client sends.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from valleyscope.app.experiments.model_info import ModelInfo

UPLOAD_FOLDER: Final = "uploads"
_MAX_HEADER_BYTES = 4 * 2**20
_CHUNK_BYTES = 4 * 2**20
_TYPE_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_FLOAT_TYPES = ("F64", "F32", "F16", "BF16")
_OTHER_FORMATS = {
    b"PK": "a zip archive, such as torch.save writes",
    b"\x80": "a pickle",
    b"\x1f\x8b": "a gzip archive",
    b"\x89HDF": "an HDF5 file",
}
_REMEDY = "write it with safetensors.torch.save_file(model.state_dict(), path)"


class BadUpload(ValueError):
    """The file is not acceptable; the message says why."""


class TooLarge(BadUpload):
    """The file is larger than the limit."""


@dataclass(frozen=True)
class Entry:
    """One tensor of a file; the offsets count from the end of the header."""

    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


class StreamedSafetensors:
    """A file that is being received; `discard` removes it."""

    def __init__(self, folder: Path, limit: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{secrets.token_hex(8)}.part"
        self.size = 0
        self._limit = limit
        self._start = bytearray()
        self._entries: dict[str, Entry] | None = None
        self._data_start = 0
        self._expected_size = 0
        self._digest = hashlib.sha256()
        self._file = self.path.open("xb")
        self._begun = False

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def begin_file(self, name: str) -> None:  # noqa: ARG002  (the id of a checkpoint is its name)
        if self._begun:
            raise BadUpload("the form has two fields 'file': send one checkpoint per request")
        self._begun = True

    def write(self, data: bytes) -> None:
        """Add the next bytes; raises BadUpload as soon as the file is known to be wrong."""
        self.size += len(data)
        if self.size > self._limit:
            raise TooLarge(f"the file has more than {self._limit} bytes, the limit of this server")
        if self._entries is None:
            self._start += data
            self._read_header()
        if self._entries is not None and self.size > self._expected_size:
            raise BadUpload(f"the file continues after its last tensor, which ends at byte {self._expected_size}")
        self._digest.update(data)
        self._file.write(data)

    def finish(self, model_info: ModelInfo) -> None:
        """Check the complete file: it must have the tensors of the network, with finite values."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._entries is None:
            raise BadUpload(f"the file ends within its header, after {self.size} bytes: {_REMEDY}")
        if self.size < self._expected_size:
            raise BadUpload(f"the file is truncated: it has {self.size} of {self._expected_size} bytes")
        _check_tensors(self._entries, model_info)
        self._check_finite(self._entries)

    def discard(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _read_header(self) -> None:
        if len(self._start) < 8:
            return
        length = int.from_bytes(self._start[:8], "little")
        if not 2 <= length <= _MAX_HEADER_BYTES:
            raise BadUpload(f"the file is {_actual_format(self._start)}: {_REMEDY}")
        if len(self._start) >= 8 + length:
            self._entries = parse_header(bytes(self._start[8 : 8 + length]))
            self._data_start = 8 + length
            self._expected_size = self._data_start + max((entry.end for entry in self._entries.values()), default=0)
            self._start.clear()
            if self._expected_size > self._limit:
                raise TooLarge(f"the file has {self._expected_size} bytes, the limit of this server is {self._limit}")

    def _check_finite(self, entries: Mapping[str, Entry]) -> None:
        with self.path.open("rb") as file:
            for name, entry in entries.items():
                if entry.kind not in _FLOAT_TYPES:
                    continue
                file.seek(self._data_start + entry.begin)
                left = entry.end - entry.begin
                while left:
                    chunk = file.read(min(_CHUNK_BYTES, left))
                    if not chunk:
                        raise BadUpload(f"the file is truncated within {name!r}")
                    left -= len(chunk)
                    if not _all_finite(chunk, entry.kind):
                        raise BadUpload(f"tensor {name!r} has values that are not finite")


def check_file(path: Path, model_info: ModelInfo) -> None:
    """Raise BadUpload unless a whole file has the tensors of the network; values are not read."""
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or not 2 <= length <= _MAX_HEADER_BYTES:
            raise BadUpload(f"the file is {_actual_format(start)}: {_REMEDY}")
        _check_tensors(parse_header(file.read(length)), model_info)


def parse_header(text: bytes) -> dict[str, Entry]:
    """The tensors of a header in the order of their bytes; raises BadUpload for gaps, overlaps and wrong lengths."""
    try:
        content = json.loads(text, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        raise BadUpload(f"the file's header is not JSON ({str(error)[:100]}): {_REMEDY}") from None
    if not isinstance(content, dict):
        raise BadUpload(f"the file's header is not a JSON object: {_REMEDY}")
    metadata = content.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise BadUpload("the header's __metadata__ must be an object of strings")
    entries = {name: _entry(name, value) for name, value in content.items()}
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)))
    expected = 0
    for name, entry in ordered.items():
        if entry.begin != expected:
            raise BadUpload(f"tensor {name[:100]!r} begins at byte {entry.begin}, must begin at {expected}")
        expected = entry.end
    return ordered


def _entry(name: str, value: Any) -> Entry:
    shown = name[:100]
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise BadUpload(f"tensor {shown!r} must have dtype, shape and data_offsets")
    kind, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(kind, str) or kind not in _TYPE_SIZES:
        given = repr(kind[:40]) if isinstance(kind, str) else "that is not a string"
        raise BadUpload(f"tensor {shown!r} has a type {given}: use one of {', '.join(_TYPE_SIZES)}")
    if not _whole_numbers(shape) or len(shape) > 8:
        raise BadUpload(f"tensor {shown!r} has an invalid shape")
    if not _whole_numbers(offsets) or len(offsets) != 2:
        raise BadUpload(f"tensor {shown!r} has invalid data_offsets")
    begin, end = offsets
    needed = math.prod(shape) * _TYPE_SIZES[kind]
    if end - begin != needed:
        raise BadUpload(f"tensor {shown!r} has {end - begin} bytes, its shape and type need {needed}")
    return Entry(kind, tuple(shape), begin, end)


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(entry) is int and 0 <= entry < 2**63 for entry in value)


def _check_tensors(entries: Mapping[str, Entry], model_info: ModelInfo) -> None:
    differences = list(_differences(entries, model_info))
    if differences:
        more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
        raise BadUpload(f"the tensors do not match the network: {'; '.join(differences[:8])}{more}")


def _differences(entries: Mapping[str, Entry], model_info: ModelInfo) -> Iterator[str]:
    for name, (shape, kind) in model_info.tensors.items():
        entry = entries.get(name)
        if entry is None:
            yield f"{name} is missing"
        elif entry.shape != shape:
            yield f"{name} has shape {list(entry.shape)}, the network has {list(shape)}"
        elif (entry.kind in _FLOAT_TYPES) != (kind in _FLOAT_TYPES):
            yield f"{name} has type {entry.kind}, the network has {kind}"
    for name in entries:
        if name not in model_info.tensors:
            yield f"{name[:100]} is not part of the network"


def _actual_format(start: bytes | bytearray) -> str:
    """What a file is that is not a safetensors file."""
    known = (what for magic, what in _OTHER_FORMATS.items() if start.startswith(magic))
    return next((f"{what}, not a safetensors file" for what in known), "not a safetensors file")


def _all_finite(chunk: bytes, kind: str) -> bool:
    if kind == "BF16":
        exponents = np.frombuffer(chunk, "<u2") & 0x7F80
        return not bool((exponents == 0x7F80).any())
    return bool(np.isfinite(np.frombuffer(chunk, f"<f{_TYPE_SIZES[kind]}")).all())


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)
