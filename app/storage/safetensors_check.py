"""Uploads of checkpoints: safetensors files, checked byte by byte as they arrive, never loaded.

A safetensors file is eight bytes with the length of its header, the header (JSON: type, shape and place of each
tensor), and the tensors. All that the header claims is checked before the first tensor is accepted, so that memory
is bounded whatever is sent: nothing is allocated by a size that a stranger wrote down.
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

FOLDER: Final = "uploads"
_LONGEST_HEADER = 4 * 2**20
_CHUNK = 4 * 2**20
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_FLOATS = ("F64", "F32", "F16", "BF16")
_DISGUISES = {
    b"PK": "a zip archive, such as torch.save writes",
    b"\x80": "a pickle",
    b"\x1f\x8b": "a gzip archive",
    b"\x89HDF": "an HDF5 file",
}
_REMEDY = "write it by safetensors.torch.save_file(model.state_dict(), path)"


class BadUpload(ValueError):
    """A file that is refused; the message says what is wrong with it."""


class TooLarge(BadUpload):
    """A file that goes beyond the limit."""


@dataclass(frozen=True)
class Entry:
    """One tensor of a file: type, shape, and where it begins and ends after the header."""

    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


class StreamedSafetensors:
    """One file on its way to the disk; `discard` removes what is there of it."""

    def __init__(self, folder: Path, limit: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{secrets.token_hex(8)}.part"
        self.size = 0
        self._limit = limit
        self._start = bytearray()
        self._entries: dict[str, Entry] | None = None
        self._tensors = 0  # where the first one begins
        self._complete = 0  # where the last one ends
        self._digest = hashlib.sha256()
        self._file = self.path.open("xb")

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Take the next bytes; raises BadUpload as soon as it is clear that the file is wrong."""
        self.size += len(data)
        if self.size > self._limit:
            raise TooLarge(f"the file has more than {self._limit} bytes, which is the limit here")
        if self._entries is None:
            self._start += data
            self._read_header()
        if self._entries is not None and self.size > self._complete:
            raise BadUpload(f"the file goes on after its last tensor, which ends at byte {self._complete}")
        self._digest.update(data)
        self._file.write(data)

    def finish(self, model_info: ModelInfo) -> None:
        """The file is complete: it must have the tensors of the network, and finite values."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if self._entries is None:
            raise BadUpload(f"the file ends within its header, after {self.size} bytes: {_REMEDY}")
        if self.size < self._complete:
            raise BadUpload(f"the file is truncated: it has {self.size} of {self._complete} bytes")
        differences = list(_differences(self._entries, model_info))
        if differences:
            more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
            raise BadUpload(f"the tensors are not those of the network: {'; '.join(differences[:8])}{more}")
        self._check_finite(self._entries)

    def discard(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _read_header(self) -> None:
        if len(self._start) < 8:
            return
        length = int.from_bytes(self._start[:8], "little")
        if not 2 <= length <= _LONGEST_HEADER:
            raise BadUpload(f"the file is {_disguise(self._start)}: {_REMEDY}")
        if len(self._start) >= 8 + length:
            self._entries = parse_header(bytes(self._start[8 : 8 + length]))
            self._tensors = 8 + length
            self._complete = self._tensors + max((entry.end for entry in self._entries.values()), default=0)
            self._start.clear()
            if self._complete > self._limit:
                raise TooLarge(f"the file has {self._complete} bytes by its header, the limit here is {self._limit}")

    def _check_finite(self, entries: Mapping[str, Entry]) -> None:
        with self.path.open("rb") as file:
            for name, entry in entries.items():
                if entry.kind not in _FLOATS:
                    continue
                file.seek(self._tensors + entry.begin)
                left = entry.end - entry.begin
                while left:
                    chunk = file.read(min(_CHUNK, left))
                    if not chunk:
                        raise BadUpload(f"the file is truncated within {name!r}")
                    left -= len(chunk)
                    if not _all_finite(chunk, entry.kind):
                        raise BadUpload(f"tensor {name!r} has values that are not finite")


def parse_header(text: bytes) -> dict[str, Entry]:
    """The tensors that a header describes, in the order of their bytes; refuses gaps, overlaps and wrong lengths."""
    try:
        content = json.loads(text, object_pairs_hook=_without_twins)
    except (ValueError, RecursionError) as error:
        raise BadUpload(f"the file's header is not JSON ({str(error)[:100]}): {_REMEDY}") from None
    if not isinstance(content, dict):
        raise BadUpload(f"the file's header is no JSON object: {_REMEDY}")
    metadata = content.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise BadUpload("the header's __metadata__ must be an object of texts")
    entries = {name: _entry(name, value) for name, value in content.items()}
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)))
    place = 0
    for name, entry in ordered.items():
        if entry.begin != place:
            raise BadUpload(f"tensor {name[:100]!r} begins at byte {entry.begin}, must begin at {place}")
        place = entry.end
    return ordered


def _entry(name: str, value: Any) -> Entry:
    shown = name[:100]
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise BadUpload(f"tensor {shown!r} must have dtype, shape and data_offsets")
    kind, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(kind, str) or kind not in _SIZES:
        given = repr(kind[:40]) if isinstance(kind, str) else "that is no text"
        raise BadUpload(f"tensor {shown!r} has a type {given}; use one of {', '.join(_SIZES)}")
    if not _whole_numbers(shape) or len(shape) > 8:
        raise BadUpload(f"tensor {shown!r} has no proper shape")
    if not _whole_numbers(offsets) or len(offsets) != 2:
        raise BadUpload(f"tensor {shown!r} has no proper data_offsets")
    begin, end = offsets
    if end - begin != math.prod(shape) * _SIZES[kind]:
        raise BadUpload(f"tensor {shown!r} has {end - begin} bytes, its shape and type need another number")
    return Entry(kind, tuple(shape), begin, end)


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(entry) is int and 0 <= entry < 2**63 for entry in value)


def _differences(entries: Mapping[str, Entry], model_info: ModelInfo) -> Iterator[str]:
    for name, (shape, kind) in model_info.tensors.items():
        entry = entries.get(name)
        if entry is None:
            yield f"{name} is missing"
        elif entry.shape != shape:
            yield f"{name} has shape {list(entry.shape)}, the network has {list(shape)}"
        elif (entry.kind in _FLOATS) != (kind in _FLOATS):
            yield f"{name} has type {entry.kind}, the network has {kind}"
    for name in entries:
        if name not in model_info.tensors:
            yield f"{name[:100]} is not part of the network"


def _disguise(start: bytes | bytearray) -> str:
    """What a file is that is no safetensors file."""
    known = (what for magic, what in _DISGUISES.items() if start.startswith(magic))
    return next((f"{what}, no safetensors file" for what in known), "no safetensors file")


def _all_finite(chunk: bytes, kind: str) -> bool:
    if kind == "BF16":
        exponents = np.frombuffer(chunk, "<u2") & 0x7F80
        return not bool((exponents == 0x7F80).any())
    return bool(np.isfinite(np.frombuffer(chunk, f"<f{_SIZES[kind]}")).all())


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name is there twice")
    return dict(pairs)
