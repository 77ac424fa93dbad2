"""Images of any size as data sets: a folder for each class, or a data set of the library `datasets`.

They are cut to squares, normalised and written once into files that are mapped into memory: what is larger than the
memory of the machine is read block by block while a network is trained or evaluated.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from valleyscope.training.dataset_sources import MissingData
from valleyscope.training.downloads import downloads_allowed

_ENDS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
_TESTS = ("test", "val", "valid", "validation")
_CACHE = "prepared-images"
_VERSION = 1
_LARGEST_SIZE = 1024


@dataclass(frozen=True)
class Images:
    """Normalised float32 images (N, H, W, C), mapped into memory, and labels 0 ... classes - 1."""

    x_train: npt.NDArray[np.float32]
    y_train: npt.NDArray[np.int64]
    x_test: npt.NDArray[np.float32]
    y_test: npt.NDArray[np.int64]
    classes: int
    fingerprint: str
    border: tuple[float, ...]


class _Split(Protocol):
    """The labels of a split, and its images one after the other."""

    @property
    def labels(self) -> Sequence[int]: ...

    def images(self) -> Iterator[Any]: ...


@dataclass(frozen=True)
class _Files:
    labels: Sequence[int]
    paths: Sequence[Path]

    def images(self) -> Iterator[Any]:
        from PIL import Image

        for path in self.paths:
            try:
                with Image.open(path) as image:
                    yield image
            except OSError as error:
                raise ValueError(f"{path} is not an image ({error}); remove it") from error


@dataclass(frozen=True)
class _Column:
    """The images of a data set of the library `datasets`."""

    labels: Sequence[int]
    rows: Any
    column: str

    def images(self) -> Iterator[Any]:
        for row in self.rows:
            yield row[self.column]


def read_image_folder(name: str, root: Path) -> Images:
    """The images of `folder:PATH@SIZE`, in PATH/train/<class>/ and PATH/test/<class>/ (or val)."""
    path, size = _path_and_size(name)
    places = [path] if path.is_absolute() else [Path.cwd() / path, root / path]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise MissingData(f"dataset {name!r}: there is no folder {' or '.join(map(str, places))}")
    test = next((folder / split for split in _TESTS if (folder / split).is_dir()), folder / "test")
    classes = _folders_in(folder / "train")
    if len(classes) < 2 or not test.is_dir():
        raise ValueError(
            f"dataset {name!r}: {folder} must have images in train/<class>/ of at least two classes, and in "
            f"test/<class>/ (or val/<class>/)"
        )
    if unknown := set(_folders_in(test)) - set(classes):
        raise ValueError(f"dataset {name!r}: {test} has the class {min(unknown)!r}, which is not in train")
    files = {split: _files_in(place, classes) for split, place in (("train", folder / "train"), ("test", test))}
    for split, found in files.items():
        if not found:
            raise ValueError(f"dataset {name!r}: there are no images ({', '.join(_ENDS)}) in its split {split}")
    key = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for each in files.values() for file, _ in each]
    splits = {split: _Files([label for _, label in each], [file for file, _ in each]) for split, each in files.items()}
    return _prepared(name, root, json.dumps(key), splits["train"], splits["test"], len(classes), size)


def read_hub_images(name: str, root: Path) -> Images:
    """The images of `hf:NAME@SIZE`: a folder of `save_to_disk`, or a data set in the cache of the library `datasets`.

    Nothing is downloaded unless the operator allows it (VALLEY_ALLOW_DOWNLOADS).
    """
    path, size = _path_and_size(name)
    try:
        import datasets
    except ImportError as error:
        raise ValueError(f"dataset {name!r} needs the library datasets: pip install datasets") from error
    try:
        with _local_files_only(datasets):
            found = datasets.load_from_disk(str(path)) if path.is_dir() else datasets.load_dataset(str(path))
    except Exception as error:  # the library has many kinds of errors
        raise MissingData(
            f"dataset {name!r} cannot be read: {error}. Give a folder of save_to_disk, download it before, or set "
            "VALLEY_ALLOW_DOWNLOADS=1"
        ) from error
    test = next((split for split in _TESTS if split in found), None)
    if "train" not in found or test is None:
        raise ValueError(f"dataset {name!r} has the splits {', '.join(map(str, found))}; it needs train and test")
    features = found["train"].features
    image = next((key for key, kind in features.items() if type(kind).__name__ == "Image"), None)
    label = next((key for key, kind in features.items() if type(kind).__name__ == "ClassLabel"), None)
    if image is None or label is None:
        raise ValueError(
            f"dataset {name!r} has the columns {', '.join(features)}; it needs one of images and one of class labels"
        )
    splits = [_Column(list(found[split][label]), found[split], image) for split in ("train", test)]
    key = json.dumps([str(found[split]._fingerprint) for split in ("train", test)])
    return _prepared(name, root, key, splits[0], splits[1], int(features[label].num_classes), size)


@contextmanager
def _local_files_only(datasets: Any) -> Iterator[None]:
    """Keep the library from asking its hub, unless downloads are allowed.

    Its `local_files_only` only saves downloads: it asks the hub nonetheless, for half a minute where that is silent.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    if not downloads_allowed():
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _path_and_size(name: str) -> tuple[Path, int]:
    kind, _, rest = name.partition(":")
    path, at, size = rest.rpartition("@")
    if not (at and path and size.isdecimal() and 4 <= int(size) <= _LARGEST_SIZE):
        raise ValueError(
            f"dataset {name!r} does not say how large its images are: write {kind}:NAME@64 for 64 pixels a side, from "
            f"4 to {_LARGEST_SIZE}"
        )
    return Path(path).expanduser(), int(size)


def _folders_in(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir() if each.is_dir()) if place.is_dir() else []


def _files_in(place: Path, classes: Sequence[str]) -> list[tuple[Path, int]]:
    return [
        (file, number)
        for number, label in enumerate(classes)
        for file in sorted((place / label).rglob("*"))
        if file.suffix.lower() in _ENDS
    ]


def _prepared(name: str, root: Path, key: str, train: _Split, test: _Split, classes: int, size: int) -> Images:
    """The images from the cache; they are written there first if they, or the size, are new."""
    digest = hashlib.sha256(f"{_VERSION} {size} {key}".encode()).hexdigest()
    place = root / _CACHE / digest[:32]
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="part-", dir=place.parent))
        try:
            _write(work, train, test, size)
            _publish(work, place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    facts = json.loads((place / "facts.json").read_text(encoding="utf-8"))
    x_train, x_test = (np.load(place / f"x_{split}.npy", mmap_mode="c") for split in ("train", "test"))
    y_train, y_test = (np.array(split.labels, dtype=np.int64) for split in (train, test))
    for field, y in (("train", y_train), ("test", y_test)):
        if y.min() < 0 or y.max() >= classes:
            raise ValueError(f"dataset {name!r}: labels of {field} run from {y.min()} to {y.max()}; leave those out")
    return Images(x_train, y_train, x_test, y_test, classes, facts["fingerprint"], tuple(facts["border"]))


def _publish(work: Path, place: Path) -> None:
    try:
        work.rename(place)
    except OSError:
        if not place.is_dir():  # another process was faster
            raise


def _write(folder: Path, train: _Split, test: _Split, size: int) -> None:
    """Normalised images, with the mean and deviation of each channel of the training set."""
    hashed = hashlib.sha256()
    total, squares, pixels = np.zeros(3), np.zeros(3), 0
    for split, source in (("train", train), ("test", test)):
        shape = (len(source.labels), size, size, 3)
        hashed.update(f"{split} {shape} {list(source.labels)}\n".encode())
        raw = np.lib.format.open_memmap(folder / f"{split}.npy", "w+", np.uint8, shape)
        for number, image in enumerate(source.images()):
            raw[number] = square(image, size)
            hashed.update(raw[number].tobytes())
            if split == "train":
                values = raw[number].reshape(-1, 3) / 255.0
                total, squares, pixels = total + values.sum(0), squares + (values**2).sum(0), pixels + len(values)
        raw.flush()
    mean = total / pixels
    deviation = np.sqrt(np.maximum(squares / pixels - mean**2, 0))
    deviation = np.where(deviation > 1e-6, deviation, 1.0)
    normalise: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]] = lambda raw: (  # noqa: E731
        (raw / 255.0 - mean) / deviation
    ).astype(np.float32)
    for split in ("train", "test"):
        raw = np.load(folder / f"{split}.npy", mmap_mode="r")
        values = np.lib.format.open_memmap(folder / f"x_{split}.npy", "w+", np.float32, raw.shape)
        for start in range(0, len(raw), 256):
            values[start : start + 256] = normalise(raw[start : start + 256])
        values.flush()
        os.unlink(folder / f"{split}.npy")  # noqa: PTH108
    facts = {"fingerprint": hashed.hexdigest(), "border": normalise(np.zeros(3)).tolist()}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def square(image: Any, size: int) -> npt.NDArray[np.uint8]:
    """The middle square of an image in RGB, with `size` pixels a side."""
    from PIL import Image

    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    box = (left, top, left + side, top + side)
    return np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box=box))
