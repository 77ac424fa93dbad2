"""Data sets as normalised tensors on the device: named ones, npz files and plug-ins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from valleyscope.training._arrays import FIELDS, Arrays, check_arrays, check_targets, read_npz
from valleyscope.training._cifar import read_cifar
from valleyscope.training._download import DownloadFailed, Progress, fetch
from valleyscope.training._idx import read_mnist
from valleyscope.training._image_data import read_hub_images, read_image_folder
from valleyscope.training._plugins import is_plugin, load_factory
from valleyscope.training.dataset_sources import SOURCES, CorruptData, MissingData, Source, data_root
from valleyscope.training.losses import LossName

__all__ = ["CorruptData", "Dataset", "MissingData", "data_root", "load_dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test samples, normalised, and their labels, all on one device.

    Images are float32 tensors (N, C, H, W), flat features (N, D); labels are int64, 0 ... classes - 1. `fingerprint` is
    the SHA-256 sum of the raw arrays and labels of both splits, the same on every device. `border` is the normalised
    value of a black pixel for each channel, the padding of crops; `augmented` is the default of crop and flip.

    With another `loss` than `cross_entropy` labels are float32 targets (N, ...), not normalised, and `classes` is the
    number of outputs of a sample.
    """

    name: str
    x_train: Tensor = field(repr=False)
    y_train: Tensor = field(repr=False)
    x_test: Tensor = field(repr=False)
    y_test: Tensor = field(repr=False)
    classes: int
    fingerprint: str
    border: tuple[float, ...]
    augmented: bool = False
    loss: LossName = "cross_entropy"

    @property
    def output_shape(self) -> tuple[int, ...]:
        """What a network gives for one sample: a value for each class, or the shape of a target."""
        return (self.classes,) if self.loss == "cross_entropy" else tuple(self.y_train.shape[1:])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample: (C, H, W), or (D,) for flat features."""
        return tuple(self.x_train.shape[1:])

    @property
    def splits(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The samples and labels of each split, by name."""
        return {"train": (self.x_train, self.y_train), "test": (self.x_test, self.y_test)}

    def to(self, device: str | torch.device) -> Self:
        """Return the same data set on another device."""
        return replace(self, **{name: getattr(self, name).to(device) for name in FIELDS})


def load_dataset(
    name: str = "digits",
    root: str | os.PathLike[str] | None = None,
    device: str | torch.device = "cpu",
    *,
    download: bool = True,
    progress: Progress | None = None,
    loss: LossName = "cross_entropy",
) -> Dataset:
    """Load a data set onto a device.

    `name` is one of `digits` (scikit-learn's, offline), `mnist`, `fashion-mnist`, `cifar10`, `cifar100`; or `npz:PATH`,
    a file with the arrays x_train, y_train, x_test, y_test (PATH is relative to the working folder, else to the data
    root); or `folder:PATH@64`, images in PATH/train/<class> and PATH/test/<class>, cut to squares of 64 pixels; or
    `hf:NAME@32`, images of a data set of the library `datasets`, a name or a folder of `save_to_disk`; or
    `package.module:factory`, a callable that returns a Dataset or those four arrays.

    For another `loss` than `cross_entropy`, arrays of npz files and plug-ins have numbers (N, ...) as y; without
    y_train and y_test, samples are their own targets.

    Files are read in torchvision's layout from `root`, else VALLEY_DATA, else the user's cache, and downloaded there
    unless `download` is off. Downloads draw a bar, or call `progress(file, bytes received, total bytes)`.

    Images of npz files are uint8 or float, (N, H, W), (N, H, W, C) or (N, C, H, W); each channel is shifted and scaled
    to mean 0 and deviation 1 on the training set, and so is each feature of flat arrays (N, D).

    >>> digits = load_dataset("digits")
    >>> digits.shape, len(digits.x_train), len(digits.x_test), digits.classes
    ((1, 8, 8), 1437, 360, 10)
    """
    if loss != "cross_entropy" and (name in SOURCES or name.startswith(("folder:", "hf:"))):
        raise ValueError(
            f"dataset {name!r} has class numbers, which loss {loss!r} cannot use: use cross_entropy, or npz:PATH with "
            "numbers as y_train and y_test"
        )
    if name in SOURCES:
        return _load_named(SOURCES[name], data_root(root), device, download, progress)
    if name.startswith("npz:"):
        return _normalised_by_own_moments(name, read_npz(name, _npz_path(name, data_root(root))), device, loss)
    if name.startswith(("folder:", "hf:")):
        read = read_image_folder if name.startswith("folder:") else read_hub_images
        found = read(name, data_root(root))
        x_train, x_test = (torch.from_numpy(x).permute(0, 3, 1, 2) for x in (found.x_train, found.x_test))
        y_train, y_test = torch.from_numpy(found.y_train), torch.from_numpy(found.y_test)
        rest = (found.classes, found.fingerprint, found.border)
        return Dataset(name, x_train, y_train, x_test, y_test, *rest).to(device)
    if is_plugin(name):
        return _load_plugin(name, device, loss)
    raise ValueError(
        f"dataset {name!r} is unknown; use one of {', '.join(SOURCES)}, npz:PATH for your own arrays, folder:PATH@SIZE "
        "for your own images, hf:NAME@SIZE, or package.module:factory for your own code"
    )


def _load_named(
    source: Source, root: Path, device: str | torch.device, download: bool, progress: Progress | None
) -> Dataset:
    """Read a named data set, downloading missing files."""
    _ensure_files(source, root, download, progress)
    if source.name == "digits":
        found = _digits()
    elif source.archive:
        found = read_cifar(source, root)
    else:
        found = read_mnist(source, root)
    try:
        arrays = check_arrays(f"dataset {source.name!r}", dict(zip(FIELDS, found, strict=True)), source.classes)
    except ValueError as error:
        raise CorruptData(f"{error}. The files in {root / source.folder} are not the originals") from error
    dataset = _normalised(source.name, arrays, np.array(source.mean), np.array(source.std), device, source.white)
    return replace(dataset, augmented=source.augmented)


def _ensure_files(source: Source, root: Path, download: bool, progress: Progress | None) -> None:
    """Download missing files of a data set; raises MissingData if some are still missing."""
    missing = source.missing_files(root)
    if not missing:
        return
    reason = "downloads are off"
    if download:
        addresses = _published_files(source)
        try:
            for file in missing:
                urls, md5 = addresses[Path(file).name]
                fetch(urls, root / file, md5, progress)
            return
        except (DownloadFailed, OSError) as error:
            reason = f"the download failed: {error}"
    raise MissingData(
        f"dataset {source.name!r}: missing {', '.join(Path(file).name for file in missing)} in "
        f"{(root / missing[0]).parent} ({reason}). Put the files there, packed or unpacked, "
        "or set VALLEY_DATA to the folder that has them in torchvision's layout"
    )


def _published_files(source: Source) -> dict[str, tuple[list[str], str]]:
    """Return torchvision's URLs and MD5 sum of each file of a data set."""
    import torchvision

    known = getattr(torchvision.datasets, source.torchvision)
    if source.archive:
        return {known.filename: ([known.url], known.tgz_md5)}
    return {file: ([mirror + file for mirror in known.mirrors], md5) for file, md5 in known.resources}


def _digits() -> tuple[npt.NDArray[Any], ...]:
    """Return scikit-learn's digits in one fixed stratified split.

    They are in the package, since importing scikit-learn would take 84 MB and 1.5 s in every worker.
    """
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        x_train, y_train, x_test, y_test = (file[field] for field in FIELDS)
    return x_train, y_train, x_test, y_test


def _npz_path(name: str, root: Path) -> Path:
    path = Path(name.removeprefix("npz:")).expanduser()
    places = [path] if path.is_absolute() else [Path.cwd() / path, root / path]
    for place in places:
        if place.is_file():
            return place
    raise MissingData(
        f"dataset {name!r}: there is no file {' or '.join(map(str, places))}; write it by "
        "numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)"
    )


def _load_plugin(name: str, device: str | torch.device, loss: LossName) -> Dataset:
    """Load a plug-in data set by calling its factory."""
    made = load_factory("dataset", name)()
    if isinstance(made, Dataset):
        if made.loss != loss:
            raise ValueError(f"dataset {name!r} is for the loss {made.loss!r}, not for {loss!r}")
        return made.to(device)
    if isinstance(made, Mapping):
        return _normalised_by_own_moments(name, made, device, loss)
    if isinstance(made, tuple | list) and len(made) == len(FIELDS):
        return _normalised_by_own_moments(name, dict(zip(FIELDS, made, strict=True)), device, loss)
    raise ValueError(
        f"dataset {name!r}: the factory returned a {type(made).__name__}, "
        f"must return a Dataset or the four arrays {', '.join(FIELDS)}"
    )


def _normalised_by_own_moments(
    name: str, given: Mapping[str, Any], device: str | torch.device, loss: LossName = "cross_entropy"
) -> Dataset:
    """Check four arrays and normalise the samples by the moments of their training set."""
    origin = f"dataset {name!r}"
    if loss == "cross_entropy":
        arrays = check_arrays(origin, given)
        return _normalised(name, arrays, *arrays.moments(), device)
    if loss != "bce" and {"y_train", "y_test"}.isdisjoint(given) and {"x_train", "x_test"} <= given.keys():
        own = check_targets(origin, {**given, "y_train": given["x_train"], "y_test": given["x_test"]})
        found = _normalised(name, own, *own.moments(), device)
        return replace(found, y_train=found.x_train, y_test=found.x_test, loss=loss)
    arrays = check_targets(origin, given, shares=loss == "bce")
    return replace(_normalised(name, arrays, *arrays.moments(), device), loss=loss)


def _normalised(
    name: str,
    arrays: Arrays,
    mean: npt.NDArray[np.float64],
    std: npt.NDArray[np.float64],
    device: str | torch.device,
    white: float = 1.0,
) -> Dataset:
    """Return the data set with the values (x / white - mean) / std in each channel."""

    def samples(x: npt.NDArray[Any]) -> Tensor:
        # float32 holds bytes and floats of up to 32 bits; wider types are kept until the values are centred.
        wide = np.result_type(x.dtype, np.float32)
        channels = (-1, *(1,) * (x.ndim - 2))
        values = x.astype(wide, order="C")
        values /= wide.type(white)
        values -= mean.astype(wide).reshape(channels)
        values /= std.astype(wide).reshape(channels)
        return torch.from_numpy(values.astype(np.float32, copy=False))

    black = np.zeros((1, arrays.x_train.shape[1], *(1,) * (arrays.x_train.ndim - 2)), arrays.x_train.dtype)
    return Dataset(
        name=name,
        x_train=samples(arrays.x_train),
        y_train=torch.from_numpy(arrays.y_train),
        x_test=samples(arrays.x_test),
        y_test=torch.from_numpy(arrays.y_test),
        classes=arrays.classes,
        fingerprint=arrays.fingerprint(),
        border=tuple(samples(black).flatten().tolist()),
    ).to(device)
