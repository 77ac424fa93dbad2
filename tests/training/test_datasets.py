"""Data sets from published files and from your own arrays, and the errors when they are invalid."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from valleyscope.training.dataset_sources import SOURCES
from valleyscope.training.datasets import CorruptData, Dataset, MissingData, data_root, load_dataset

Array = npt.NDArray[Any]
Four = tuple[Array, Array, Array, Array]


def random_images(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def image_arrays(*shape: int, train: int = 20, test: int = 10, classes: int = 10) -> Four:
    """Images with labels that go round the classes."""
    return (
        random_images(train, *shape, seed=1),
        np.arange(train, dtype=np.uint8) % classes,
        random_images(test, *shape, seed=2),
        np.arange(test, dtype=np.uint8)[::-1] % classes,
    )


def write_idx(path: Path, array: Array) -> None:
    """Write the published format of MNIST by its specification."""
    content = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_mnist(root: Path, arrays: Four, folder: str = "MNIST", ending: str = "") -> Path:
    raw = root / folder / "raw"
    for name, array in zip(SOURCES["mnist"].files, arrays, strict=True):
        write_idx(raw / (name + ending), array)
    return raw


def python2_pickle(images: Array, labels: list[int], label_key: str) -> bytes:
    """Pickle a batch opcode by opcode as Python 2 did when CIFAR was published, with numpy's names of that time."""

    def string(value: bytes) -> bytes:
        short = len(value) < 256
        return (b"U" + bytes([len(value)]) if short else b"T" + struct.pack("<i", len(value))) + value

    def integer(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    kind = b"cnumpy\ndtype\n(" + string(b"u1") + integer(0) + integer(1) + b"tR"
    kind += b"(" + integer(3) + string(b"|") + b"NNN" + integer(-1) * 2 + integer(0) + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + integer(0) + b"t" + string(b"b") + b"tR"
    shape = b"(" + b"".join(map(integer, images.shape)) + b"t"
    array += b"(" + integer(1) + shape + kind + b"\x89" + string(images.tobytes()) + b"tb"
    entries = string(b"batch_label") + string(b"training batch 1 of 5")
    entries += string(label_key.encode()) + b"](" + b"".join(map(integer, labels)) + b"e"
    entries += string(b"data") + array
    return b"\x80\x02}(" + entries + b"u."


def cifar_batches(name: str, arrays: Four) -> dict[str, bytes]:
    """The files of a small CIFAR: the training set in as many batches as the original, then the test set."""
    x_train, y_train, x_test, y_test = arrays
    *training, test = SOURCES[name].files
    key = "labels" if name == "cifar10" else "fine_labels"
    parts = zip(
        [*training, test],
        [*np.array_split(x_train, len(training)), x_test],
        [*np.array_split(y_train, len(training)), y_test],
        strict=True,
    )
    return {file: python2_pickle(x.reshape(len(x), -1), [int(v) for v in y], key) for file, x, y in parts}


def write_cifar(root: Path, name: str, arrays: Four) -> Path:
    folder = root / SOURCES[name].folder
    folder.mkdir(parents=True)
    for file, content in cifar_batches(name, arrays).items():
        (folder / file).write_bytes(content)
    return folder


def write_npz(path: Path, arrays: Four, **changes: Array | None) -> str:
    named = dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays, strict=True)) | changes
    np.savez(path, **{key: value for key, value in named.items() if value is not None})  # type: ignore[arg-type]
    return f"npz:{path}"


def assert_normalised_as_torchvision_does(dataset: Dataset, arrays: Four) -> None:
    from torchvision.transforms import functional

    source = SOURCES[dataset.name]
    for x, images in ((dataset.x_train, arrays[0]), (dataset.x_test, arrays[2])):
        pictures = images[:, None] if images.ndim == 3 else images
        scaled = torch.from_numpy(pictures).to(torch.float32).div(255)
        assert torch.equal(x, functional.normalize(scaled, source.mean, source.std))
    assert dataset.y_train.tolist() == arrays[1].tolist()
    assert dataset.y_test.tolist() == arrays[3].tolist()
    assert dataset.y_train.dtype == torch.int64


def test_digits_are_scikit_learns_in_a_fixed_stratified_split() -> None:
    from sklearn.datasets import load_digits

    digits = load_dataset()
    assert digits.x_train.shape == (1437, 1, 8, 8)
    assert digits.x_test.shape == (360, 1, 8, 8)
    mean, std, white = SOURCES["digits"].mean[0], SOURCES["digits"].std[0], SOURCES["digits"].white
    values = (torch.cat([digits.x_train, digits.x_test]).double() * std + mean) * white
    ours = sorted(
        (*pixels, label)
        for pixels, label in zip(
            values.round().flatten(1).int().tolist(), torch.cat([digits.y_train, digits.y_test]).tolist(), strict=True
        )
    )
    images, labels = load_digits(return_X_y=True)
    assert ours == sorted((*map(int, pixels), int(label)) for pixels, label in zip(images, labels, strict=True))
    shares = torch.bincount(digits.y_test) / torch.bincount(torch.from_numpy(labels))
    assert (shares - 360 / 1797).abs().max() < 0.005
    assert digits.fingerprint == load_dataset("digits").fingerprint


def test_digits_are_normalised_on_the_training_set() -> None:
    digits = load_dataset("digits")
    assert digits.x_train.mean().abs() < 1e-3
    assert (digits.x_train.std() - 1).abs() < 1e-3
    assert digits.x_train.min() == digits.border[0]


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
def test_idx_files_are_read_as_torchvision_reads_them(tmp_path: Path, name: str, folder: str, ending: str) -> None:
    arrays = image_arrays(28, 28)
    write_mnist(tmp_path, arrays, folder, ending)
    dataset = load_dataset(name, tmp_path, download=False)
    assert dataset.shape == (1, 28, 28)
    assert dataset.classes == 10
    assert not dataset.augmented
    assert_normalised_as_torchvision_does(dataset, arrays)
    if not ending:
        from torchvision import datasets

        theirs = getattr(datasets, folder)(tmp_path, train=True)
        assert torch.equal(theirs.data, torch.from_numpy(arrays[0]))


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
def test_cifar_is_read_from_files_and_from_the_archive_alike(tmp_path: Path, name: str, classes: int) -> None:
    arrays = image_arrays(3, 32, 32, train=110, test=20, classes=classes)
    write_cifar(tmp_path / "files", name, arrays)
    (tmp_path / "archive").mkdir()
    with tarfile.open(tmp_path / "archive" / SOURCES[name].archive, "w:gz") as archive:
        for file, content in cifar_batches(name, arrays).items():
            member = tarfile.TarInfo(f"{SOURCES[name].folder}/{file}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    unpacked, packed = (load_dataset(name, tmp_path / form, download=False) for form in ("files", "archive"))
    assert unpacked.shape == (3, 32, 32)
    assert unpacked.classes == classes
    assert unpacked.augmented
    assert_normalised_as_torchvision_does(unpacked, arrays)
    assert torch.equal(unpacked.x_train, packed.x_train)
    assert unpacked.fingerprint == packed.fingerprint


def test_the_handwritten_pickle_is_what_torchvision_would_read() -> None:
    images = random_images(3, 3072)
    entries = pickle.loads(python2_pickle(images, [1, 2, 3], "labels"), encoding="latin1")
    assert np.array_equal(entries["data"], images)
    assert entries["labels"] == [1, 2, 3]


def test_cifar_pickled_anew_by_python_3_is_read_too(tmp_path: Path) -> None:
    arrays = image_arrays(3, 32, 32, classes=100, train=100)
    folder = write_cifar(tmp_path, "cifar100", arrays)
    batch = {b"data": arrays[2].reshape(10, -1), b"fine_labels": [int(label) for label in arrays[3]]}
    (folder / "test").write_bytes(pickle.dumps(batch, protocol=2))
    assert_normalised_as_torchvision_does(load_dataset("cifar100", tmp_path), arrays)


class Bomb:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.trace),)


def test_a_pickle_that_calls_something_is_refused_and_calls_nothing(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path, "cifar10", image_arrays(3, 32, 32))
    trace = tmp_path / "called"
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": Bomb(trace), b"labels": [0]}))
    with pytest.raises(CorruptData, match=r"test_batch is not a batch of CIFAR \(it refers to posix.mkdir"):
        load_dataset("cifar10", tmp_path)
    assert not trace.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-200],
        lambda _: b"",
        lambda _: b"<html>not found</html>",
        lambda _: pickle.dumps([1, 2]),
        lambda _: pickle.dumps({b"data": b"123", b"labels": [1]}),
        lambda _: python2_pickle(random_images(2, 3071), [0, 1], "labels"),
        lambda _: python2_pickle(random_images(2, 3072), [0, 1], "names"),
        lambda _: python2_pickle(random_images(2, 3072), [0, 10], "labels"),
    ],
)
def test_damaged_cifar_files_are_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    file = write_cifar(tmp_path, "cifar10", image_arrays(3, 32, 32)) / "test_batch"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptData, match=r"test_batch|y_test contains the label 10"):
        load_dataset("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:1000], r"has 1000 bytes, but its header says 20x28x28 elements, 15696 bytes"),
        (lambda content: content + b"!", "has 15697 bytes"),
        (lambda content: content[:9], "ends within its header"),
        (lambda _: b"", "does not start like an idx file"),
        (lambda _: b"<html>not found</html>", "does not start like an idx file"),
        (lambda content: content[:2] + b"\x0d" + content[3:], "idx type 0x0d, must be unsigned bytes"),
        (lambda _: struct.pack(">HBBI", 0, 8, 1, 2) + b"ab", "has 1 dimensions, must have 3"),
    ],
)
def test_damaged_mnist_files_are_named(tmp_path: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    file = write_mnist(tmp_path, image_arrays(28, 28)) / "train-images-idx3-ubyte"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptData, match=message) as caught:
        load_dataset("mnist", tmp_path)
    assert str(file) in str(caught.value)


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    file = write_mnist(tmp_path, image_arrays(28, 28), ending=".gz") / "t10k-labels-idx1-ubyte.gz"
    for content in (file.read_bytes()[:-9], b"nothing"):
        file.write_bytes(content)
        with pytest.raises(CorruptData, match="not a complete gzip file"):
            load_dataset("mnist", tmp_path)


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    x_train, y_train, x_test, y_test = image_arrays(28, 28)
    write_mnist(tmp_path, (x_train, y_train[:-1], x_test, y_test))
    with pytest.raises(CorruptData, match=r"x_train has 20 samples and y_train has 19 labels.*not the originals"):
        load_dataset("mnist", tmp_path)


def test_missing_files_are_named_with_the_folder_they_belong_in(tmp_path: Path) -> None:
    (write_mnist(tmp_path, image_arrays(28, 28)) / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(MissingData) as caught:
        load_dataset("mnist", tmp_path, download=False)
    message = str(caught.value)
    assert f"missing t10k-labels-idx1-ubyte.gz in {tmp_path / 'MNIST' / 'raw'} (downloads are off)" in message
    assert "train-images" not in message
    with pytest.raises(FileNotFoundError, match=f"missing cifar-100-python.tar.gz in {tmp_path}"):
        load_dataset("cifar100", tmp_path, download=False)


def test_data_root_is_argument_then_environment_then_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALLEY_DATA", str(tmp_path))
    arrays = image_arrays(28, 28)
    write_mnist(tmp_path, arrays)
    assert_normalised_as_torchvision_does(load_dataset("mnist"), arrays)
    assert data_root("elsewhere") == Path("elsewhere")
    monkeypatch.delenv("VALLEY_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root() == tmp_path / "cache" / "valleyscope"


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_npz_images_in_every_layout_are_the_same_data_set(tmp_path: Path, kind: type) -> None:
    x_train, y_train, x_test, y_test = image_arrays(3, 6, 7)
    x_train, x_test = x_train.astype(kind), x_test.astype(kind)
    first = load_dataset(write_npz(tmp_path / "first.npz", (x_train, y_train, x_test, y_test)))
    moved = (np.moveaxis(x_train, 1, 3), y_train, np.moveaxis(x_test, 1, 3), y_test)
    last = load_dataset(write_npz(tmp_path / "last.npz", moved))
    assert first.shape == last.shape == (3, 6, 7)
    assert torch.equal(first.x_test, last.x_test)
    assert first.fingerprint == last.fingerprint
    mean, std = x_train.mean((0, 2, 3), np.float64), x_train.astype(np.float64).std((0, 2, 3))
    expected = (x_test - mean.reshape(3, 1, 1)) / std.reshape(3, 1, 1)
    np.testing.assert_allclose(first.x_test.numpy(), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(first.border, -mean / std, rtol=1e-5)
    assert first.x_train.is_contiguous()


def test_npz_without_channels_and_flat_npz(tmp_path: Path) -> None:
    grey = image_arrays(5, 6)
    assert load_dataset(write_npz(tmp_path / "grey.npz", grey)).shape == (1, 5, 6)
    flat = (grey[0].reshape(20, 30).astype(np.float32), grey[1], grey[2].reshape(10, 30).astype(np.float32), grey[3])
    flat[0][:, 4] = 7.0
    dataset = load_dataset(write_npz(tmp_path / "flat.npz", flat))
    assert dataset.shape == (30,)
    varying = [column for column in range(30) if column != 4]
    torch.testing.assert_close(dataset.x_train.mean(0), torch.zeros(30), atol=1e-5, rtol=0)
    torch.testing.assert_close(dataset.x_train[:, varying].std(0, correction=0), torch.ones(29))
    assert not dataset.x_train[:, 4].any(), "a constant feature is centred and not scaled"


def test_moments_do_not_depend_on_how_the_training_set_is_cut(tmp_path: Path) -> None:
    arrays = image_arrays(4, 6, train=1500, test=10)
    dataset = load_dataset(write_npz(tmp_path / "large.npz", arrays))
    assert abs(dataset.x_train.double().mean()) < 1e-6
    assert abs(dataset.x_train.double().std(correction=0) - 1) < 1e-6


def test_npz_paths_are_relative_to_the_working_folder_or_the_data_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npz(tmp_path / "mine.npz", image_arrays(8, 8))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert load_dataset("npz:mine.npz", tmp_path).name == "npz:mine.npz"
    with pytest.raises(MissingData, match=r"there is no file .*elsewhere/mine\.npz"):
        load_dataset("npz:mine.npz", elsewhere)
    monkeypatch.chdir(tmp_path)
    assert len(load_dataset("npz:mine.npz", elsewhere).x_train) == 20


NAN = np.full((20, 8, 8), np.nan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "y_test missing .there is x_test, x_train, y_train."),
        ({"y_train": np.arange(19) % 10}, "x_train has 20 samples and y_train has 19 labels"),
        ({"y_train": np.arange(20) % 10 / 2}, "y_train has type float64, must be whole numbers"),
        ({"y_train": (np.arange(20) % 10)[:, None]}, r"y_train has shape \(20, 1\)"),
        ({"y_train": np.arange(20) % 10 - 1}, "y_train contains the label -1"),
        ({"y_train": np.arange(20) % 10 * 2}, "y_train has the labels 0, 2, 4, 6.*must be 0 to 9 without gaps"),
        ({"y_train": np.zeros(20, int), "y_test": np.zeros(10, int)}, "y_train has only the label 0"),
        ({"y_test": np.arange(10) + 1}, "y_test contains the label 10, but there are 10 classes"),
        ({"x_train": NAN}, "x_train has 1280 values that are NaN or infinite"),
        ({"x_train": np.full((20, 8, 8), 1e39)}, r"x_train has a value of size 1e\+39, beyond float32"),
        ({"x_train": np.zeros((20, 8, 8), "U1")}, "x_train has type <U1, must be uint8 or a float type"),
        ({"x_train": np.zeros((20, 8, 8), complex)}, "x_train has type complex128"),
        ({"x_train": np.zeros(20)}, r"x_train has shape \(20,\), must be \(N, H, W\)"),
        ({"x_train": np.zeros((20, 8, 9))}, r"samples of shape \(1, 8, 9\) and x_test of \(1, 8, 8\)"),
        ({"x_train": np.zeros((20, 8, 8))}, "x_train has type float64 and x_test uint8"),
        ({"x_train": np.zeros((20, 8, 8, 8))}, "neither the second nor the last axis"),
        ({"x_train": np.zeros((20, 3, 8, 3))}, "both the second and the last axis"),
        ({"x_test": np.zeros((0, 8, 8)), "y_test": np.zeros(0, int)}, "y_test is empty"),
        ({"x_train": np.array([None] * 20)}, "cannot read .*npz .*write it by numpy.savez"),
    ],
)
def test_npz_arrays_that_will_not_do_are_named(tmp_path: Path, changes: dict[str, Array | None], message: str) -> None:
    name = write_npz(tmp_path / "bad.npz", image_arrays(8, 8), **changes)
    with pytest.raises(ValueError, match=message) as caught:
        load_dataset(name)
    assert name in str(caught.value)


def test_files_that_are_not_npz_are_refused(tmp_path: Path) -> None:
    write_npz(tmp_path / "whole.npz", image_arrays(8, 8))
    np.save(tmp_path / "single.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("x_train")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-300])
    for file in ("single.npy", "text.npz", "cut.npz"):
        with pytest.raises(ValueError, match=f"cannot read .*{file} as npz"):
            load_dataset(f"npz:{file}", tmp_path)


def test_an_unknown_data_set_is_refused_with_the_known_ones() -> None:
    for name in ("imagenet", "", "npz", "a b:c", "../x:y"):
        with pytest.raises(ValueError, match="is unknown; use one of digits, mnist, fashion-mnist, cifar10, cifar100"):
            load_dataset(name)


def test_fingerprint_tells_content_and_split_apart(tmp_path: Path) -> None:
    x_train, y_train, x_test, y_test = image_arrays(8, 8, train=20, test=20)
    variants = {
        "same": (x_train, y_train, x_test, y_test),
        "pixel": (x_train ^ (np.arange(20) == 3)[:, None, None].astype(np.uint8), y_train, x_test, y_test),
        "labels": (x_train, y_train[::-1].copy(), x_test, y_test),
        "split": (x_test, y_test, x_train, y_train),
    }
    prints = {
        key: load_dataset(write_npz(tmp_path / f"{key}.npz", value)).fingerprint for key, value in variants.items()
    }
    assert len(set(prints.values())) == len(variants)
    wide = (x_train, y_train.astype(np.int64), x_test, y_test.astype(np.int16))
    assert load_dataset(write_npz(tmp_path / "wide.npz", wide)).fingerprint == prints["same"]
    assert load_dataset(f"npz:{tmp_path / 'same.npz'}").to("meta").fingerprint == prints["same"]


def test_a_data_set_moves_to_a_device_as_a_whole() -> None:
    digits = load_dataset("digits", device="meta")
    assert {x.device.type for split in digits.splits.values() for x in split} == {"meta"}
    assert list(digits.splits) == ["train", "test"]
    assert digits.shape == (1, 8, 8)
    assert load_dataset("digits").to("meta").name == "digits"


@pytest.fixture
def own_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "valley_test_data.py").write_text(
        "import numpy as np\n"
        "from valleyscope.training.datasets import load_dataset\n"
        "def four():\n"
        "    return np.eye(4), np.arange(4), np.eye(4), np.arange(4)\n"
        "def mapping():\n"
        "    return dict(zip(('x_train', 'y_train', 'x_test', 'y_test'), four()))\n"
        "def whole():\n"
        "    return load_dataset('digits')\n"
        "def three():\n"
        "    return four()[:3]\n"
        "class Sources:\n"
        "    four = staticmethod(four)\n"
    )
    (tmp_path / "valley_test_broken.py").write_text("import valley_test_absent_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own_datasets")
def test_an_own_data_set_comes_from_its_factory() -> None:
    four, mapping, nested = (load_dataset(f"valley_test_data:{name}") for name in ("four", "mapping", "Sources.four"))
    assert four.shape == (4,)
    assert four.fingerprint == mapping.fingerprint == nested.fingerprint
    assert load_dataset("valley_test_data:whole", device="meta").x_train.device.type == "meta"


@pytest.mark.usefixtures("own_datasets")
def test_an_own_data_set_that_will_not_do_is_refused() -> None:
    with pytest.raises(ValueError, match="returned a tuple, must return a Dataset or the four arrays"):
        load_dataset("valley_test_data:three")
    with pytest.raises(ValueError, match="has no 'absent'"):
        load_dataset("valley_test_data:absent")
    with pytest.raises(ValueError, match="there is no module 'valley_test_nowhere'"):
        load_dataset("valley_test_nowhere:four")
    with pytest.raises(ModuleNotFoundError, match="valley_test_absent_dependency"):
        load_dataset("valley_test_broken:four")
