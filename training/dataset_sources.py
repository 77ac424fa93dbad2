"""The named data sets: their files, folder and normalisation. Imports no torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


REMEDY = "delete it and load the data set again, or put the original file in its place"
"""The end of every message about a damaged file."""


class MissingData(FileNotFoundError):
    """Files of a data set are missing and could not be downloaded."""


class CorruptData(ValueError):
    """A file of a data set is damaged, or has unexpected content."""


@dataclass(frozen=True)
class Source:
    """A named data set.

    `folder` and `files` follow torchvision's layout under the data root. `archive` is the packed form in which the
    files are published: one tar archive in the root, or, when it is empty, each file with `.gz` after its name. Both
    forms are read. `white` is the largest value of a pixel; `mean` and `std` are those of the training pixels divided
    by it.
    """

    name: str
    description: str
    classes: int
    shape: tuple[int, int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    white: float = 255.0
    torchvision: str = ""
    folder: str = ""
    files: tuple[str, ...] = ()
    archive: str = ""
    augmented: bool = False

    def missing_files(self, root: Path) -> tuple[str, ...]:
        """The files missing under `root`, relative to it."""
        if self.archive:
            unpacked = all((root / self.folder / name).is_file() for name in self.files)
            return () if unpacked or (root / self.archive).is_file() else (self.archive,)
        paths = [f"{self.folder}/{name}" for name in self.files]
        return tuple(f"{path}.gz" for path in paths if not any((root / (path + end)).is_file() for end in ("", ".gz")))


SOURCES = {
    source.name: source
    for source in (
        Source(
            name="digits",
            description="1797 handwritten digits, 8x8 grey (scikit-learn's; needs no download)",
            classes=10,
            shape=(1, 8, 8),
            mean=(0.3054,),
            std=(0.3761,),
            white=16.0,
        ),
        Source(
            name="mnist",
            description="70,000 handwritten digits, 28x28 grey",
            classes=10,
            shape=(1, 28, 28),
            mean=(0.1307,),
            std=(0.3081,),
            torchvision="MNIST",
            folder="MNIST/raw",
            files=_IDX_FILES,
        ),
        Source(
            name="fashion-mnist",
            description="70,000 pieces of clothing, 28x28 grey",
            classes=10,
            shape=(1, 28, 28),
            mean=(0.2860,),
            std=(0.3530,),
            torchvision="FashionMNIST",
            folder="FashionMNIST/raw",
            files=_IDX_FILES,
        ),
        Source(
            name="cifar10",
            description="60,000 photographs in 10 classes, 32x32 colour",
            classes=10,
            shape=(3, 32, 32),
            mean=(0.4914, 0.4822, 0.4465),
            std=(0.2470, 0.2435, 0.2616),
            torchvision="CIFAR10",
            folder="cifar-10-batches-py",
            files=("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"),
            archive="cifar-10-python.tar.gz",
            augmented=True,
        ),
        Source(
            name="cifar100",
            description="60,000 photographs in 100 classes, 32x32 colour",
            classes=100,
            shape=(3, 32, 32),
            mean=(0.5071, 0.4865, 0.4409),
            std=(0.2673, 0.2564, 0.2762),
            torchvision="CIFAR100",
            folder="cifar-100-python",
            files=("train", "test"),
            archive="cifar-100-python.tar.gz",
            augmented=True,
        ),
    )
}


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the data sets: `root`, else VALLEY_DATA, else a folder in the user's cache."""
    chosen = root or os.environ.get("VALLEY_DATA")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "valleyscope"
