"""The file of a landscape: complete at every moment, plain HDF5, and damage is reported."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.landscape import cases
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape, NotALandscape
from valleyscope.landscape.storage.records import Grid, PlaneRecord, checked_name

ROOT = Path(__file__).parents[3]
FIXTURE = Path(__file__).parents[1] / "data" / "landscape-v1.h5"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "landscape.h5"
    cases.landscape(9).save(path)
    return path


def assert_equal(one: Any, other: Any, where: str = "") -> None:
    """Equal in every field, arrays bit by bit, dictionaries in the same order."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        np.testing.assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_equal(one[key], other[key], f"{where}/{key}")
    elif hasattr(one, "__dict__"):
        assert_equal(vars(one), vars(other), where)
    else:
        np.testing.assert_equal(one, other, err_msg=where)


def test_what_is_saved_is_what_is_opened(tmp_path: Path) -> None:
    landscape = cases.landscape(11)
    landscape.planes["basins"].splits["train"].loss[0, 0] = np.inf
    landscape.minima["sgd"].final["angle"] = float("inf")
    landscape.save(tmp_path / "landscape.h5")
    assert_equal(Landscape.open(tmp_path / "landscape.h5"), landscape)


def test_a_plane_of_which_nothing_is_computed_can_be_saved(tmp_path: Path) -> None:
    plane = PlaneRecord.empty("valley", "through", np.linspace(0, 1, 5), np.linspace(0, 1, 4), ("train",))
    landscape = Landscape("new", planes={"valley": plane})
    landscape.save(tmp_path / "landscape.h5")
    assert_equal(Landscape.open(tmp_path / "landscape.h5"), landscape)


def test_layout_is_plain_for_other_programs(saved: Path) -> None:
    landscape = cases.landscape(9)
    with h5py.File(saved) as file:
        assert file.attrs["format"] == "valleyscope-landscape"
        assert file.attrs["version"] == 1
        assert list(file["minima"]) == ["sgd", "altsdp", "control"]
        plane = file["planes/valley"]
        np.testing.assert_array_equal(plane["train/loss"], landscape.planes["valley"].splits["train"].loss)
        assert plane["done"].dtype == np.uint8
        assert tuple(plane["points/altsdp"]) == (9.7, 0.0)
        assert plane["points/control"].attrs["distance"] == pytest.approx(14.4)
        assert plane["paths/trajectory:sgd"].shape == (24, 2)
        np.testing.assert_array_equal(file["lines/sgd-control/t"], np.linspace(0, 1, 61))
        np.testing.assert_array_equal(file["trajectory/sgd/train_loss"], file["minima/sgd/epochs/train_loss"])
        assert file["verdict"].attrs["kind"] == "level valley"
        kinds = set()
        file.visititems(lambda _, member: kinds.add(member.dtype.kind) if isinstance(member, h5py.Dataset) else None)
        assert kinds <= {"f", "i", "u", "O"}


def test_file_of_version_1_stays_readable() -> None:
    landscape = Landscape.open(FIXTURE)
    expected = cases.landscape(5)
    assert list(landscape.minima) == ["sgd", "altsdp"]
    assert landscape.minima["altsdp"].layers == expected.minima["altsdp"].layers
    plane = landscape.planes["basins"]
    np.testing.assert_allclose(plane.splits["train"].loss, expected.planes["basins"].splits["train"].loss, rtol=1e-12)
    assert plane.points == expected.planes["basins"].points
    error = landscape.lines["sgd-altsdp"].splits["test"].error
    np.testing.assert_allclose(error, expected.lines["sgd-altsdp"].splits["test"].error, rtol=1e-12)
    assert landscape.verdict is not None
    assert landscape.verdict["test_error"] == cases.VERDICT["test_error"]


WRITER = """
import sys
from valleyscope.landscape.storage.landscape_file import Landscape
from tests.landscape import cases
landscape = cases.landscape(61)
landscape.save(sys.argv[1])
print("saved", flush=True)
while True:
    landscape.save(sys.argv[1])
"""


def test_file_is_whole_after_kill_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "landscape.h5"
    moments = random.Random(0)
    for _ in range(10):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], cwd=ROOT, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(moments.uniform(0.0, 0.15))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        with h5py.File(path) as file:
            assert file["planes/basins/train/loss"].shape == (61, 61)
        assert Landscape.open(path).name == "digits"
    cases.landscape(5).save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["landscape.h5"]


def test_block_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), write_atomically(path) as file:
        file.writelines([b"ne", "no bytes"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_leftover_of_a_dead_writer_goes_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "landscape.h5"
    (tmp_path / ".landscape.h5.0123.partial").write_bytes(b"dead")
    (tmp_path / ".other.h5.0123.partial").write_bytes(b"of another file")
    with write_atomically(path) as outer:
        outer.write(b"outer")
        with write_atomically(path) as inner:
            inner.write(b"inner")
        assert path.read_bytes() == b"inner"
    assert path.read_bytes() == b"outer"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".other.h5.0123.partial", "landscape.h5"]


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write(letter: bytes) -> None:
        for _ in range(30):
            with write_atomically(path) as file:
                file.write(letter * 5000)

    writers = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in (b"a" * 5000, b"b" * 5000, b"c" * 5000)
    assert list(tmp_path.iterdir()) == [path]


def test_threads_save_different_landscapes_at_once(tmp_path: Path) -> None:
    def save(number: int) -> None:
        landscape = cases.landscape(9)
        landscape.name = f"number {number}"
        for _ in range(20):
            landscape.save(tmp_path / f"{number}.h5")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert [Landscape.open(tmp_path / f"{number}.h5").name for number in range(4)] == [f"number {n}" for n in range(4)]


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.1, 0.5, 0.9, 0.999])
def test_truncated_file_is_refused_by_name(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises((DamagedLandscape, NotALandscape), match=re.escape(str(saved))):
        Landscape.open(saved)


@pytest.mark.parametrize(
    "member",
    [
        "planes",
        "planes/valley/x",
        "planes/valley/done",
        "planes/basins/test",
        "planes/basins/test/error",
        "planes/valley/points",
        "curves/valley/t",
        "lines/sgd-control/train/loss",
        "minima/sgd/layers/groups",
        "minima/control/epochs",
    ],
)
def test_missing_member_is_named(saved: Path, member: str) -> None:
    with h5py.File(saved, "r+") as file:
        del file[member]
    with pytest.raises(DamagedLandscape, match=f"{re.escape(str(saved))}: {member}: is missing"):
        Landscape.open(saved)


@pytest.mark.parametrize("attribute", ["name", "spec", "provenance", "version", "created"])
def test_missing_attribute_is_named(saved: Path, attribute: str) -> None:
    with h5py.File(saved, "r+") as file:
        del file.attrs[attribute]
    with pytest.raises(DamagedLandscape, match=f"attribute '{attribute}' is missing"):
        Landscape.open(saved)


def replace(file: h5py.File, member: str, values: object) -> None:
    del file[member]
    file[member] = values


DAMAGES = {
    "planes/valley/train/loss: has shape": lambda file: replace(file, "planes/valley/train/loss", np.zeros((3, 3))),
    "planes/valley/train/loss: is object, not numbers": lambda file: replace(file, "planes/valley/train/loss", "text"),
    "row 2, column 1 is NaN and marked as done": lambda file: file["planes/valley/test/loss"].__setitem__(
        (2, 1), np.nan
    ),
    "row 0, column 3 has a value and is not marked": lambda file: file["planes/valley/done"].__setitem__((0, 3), 0),
    "done: has values other than 0 and 1": lambda file: file["planes/valley/done"].__setitem__((0, 3), 7),
    "error: has the value 98.6; an error is a fraction": lambda file: file["planes/valley/test/error"].__setitem__(
        (0, 0), 98.6
    ),
    "loss: has the value -1; a loss is zero or more": lambda file: file["curves/valley/train/loss"].__setitem__(0, -1),
    "planes/valley/x: a grid needs at least two": lambda file: file["planes/valley/x"].__setitem__(0, 99.0),
    "curves/valley/train/loss: is NaN at t = 0.5": lambda file: file["curves/valley/train/loss"].__setitem__(
        30, np.nan
    ),
    "columns differ in length": lambda file: replace(file, "minima/sgd/epochs/angle", np.zeros(3)),
    "has 20 zeros of 16": lambda file: file["minima/sgd/layers/zero_groups"].__setitem__(0, 20),
    "attribute 'spec' is not JSON": lambda file: file.attrs.__setitem__("spec", "{"),
    "provenance: has no fingerprint": lambda file: file.attrs.__setitem__("provenance", "{}"),
    "is a soft or external link": lambda file: (
        file.__delitem__("planes/valley/x"),
        file["planes/valley"].__setitem__("x", h5py.ExternalLink("/etc/hostname", "/x")),
    ),
}


@pytest.mark.parametrize("message", DAMAGES)
def test_damage_is_named(saved: Path, message: str) -> None:
    with h5py.File(saved, "r+") as file:
        DAMAGES[message](file)
    with pytest.raises(DamagedLandscape, match=re.escape(message)):
        Landscape.open(saved)


def test_huge_claim_is_refused_before_it_is_read(saved: Path) -> None:
    with h5py.File(saved, "r+") as file:
        del file["planes/valley/train/loss"]
        file["planes/valley/train"].create_dataset("loss", shape=(10**6, 10**6), dtype="f8", chunks=(100, 100))
    with pytest.raises(DamagedLandscape, match=f"has {10**12} values; at most"):
        Landscape.open(saved)


def test_newer_format_asks_for_an_upgrade(saved: Path) -> None:
    with h5py.File(saved, "r+") as file:
        file.attrs["version"] = 2
    with pytest.raises(NotALandscape, match=r"newer version of Valleyscope \(format 2.*upgrade"):
        Landscape.open(saved)


def test_foreign_files_are_told_apart(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.h5"
    text.write_text("not a landscape")
    with h5py.File(other, "w") as file:
        file["xcoordinates"] = np.zeros(3)
    with pytest.raises(NotALandscape, match=r"notes\.txt: is not an HDF5 file"):
        Landscape.open(text)
    with pytest.raises(NotALandscape, match=r"other\.h5: is an HDF5 file of another program .it holds xcoordinates"):
        Landscape.open(other)
    with pytest.raises(FileNotFoundError, match=r"absent\.h5"):
        Landscape.open(tmp_path / "absent.h5")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", ".hidden", "-flag", "x" * 65, "naïve", "a\n"])
def test_names_that_could_mean_something_else_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        checked_name(name, "plane")
    landscape = cases.landscape(5)
    plane = landscape.planes.pop("valley")
    plane.name = name
    landscape.planes[name] = plane
    with pytest.raises(ValueError, match="planes: a member has the name"):
        landscape.save(tmp_path / "landscape.h5")
    assert not list(tmp_path.iterdir())


def test_wrong_arrays_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    landscape = cases.landscape(5)
    grid = landscape.planes["valley"].splits["train"]
    landscape.planes["valley"].splits["train"] = Grid(grid.loss.T.copy(), grid.error)
    with pytest.raises(ValueError, match="planes/valley/train/loss: has shape"):
        landscape.save(tmp_path / "landscape.h5")
    landscape.planes["valley"].splits["train"] = Grid(grid.loss.astype(np.float32), grid.error)
    with pytest.raises(ValueError, match="planes/valley/train/loss: is float32, not an array of float64"):
        landscape.save(tmp_path / "landscape.h5")
    landscape.planes["valley"].splits = {"x": grid}
    with pytest.raises(ValueError, match="a split has the reserved name 'x'"):
        landscape.save(tmp_path / "landscape.h5")
    landscape.planes["valley"].splits = {"train": grid}
    landscape.spec["lr"] = float("nan")
    with pytest.raises(ValueError, match="spec: cannot be written as JSON"):
        landscape.save(tmp_path / "landscape.h5")
    assert not list(tmp_path.iterdir())


def test_reading_and_drawing_need_no_torch() -> None:
    modules = ("storage.landscape_file", "figures", "report", "export", "importers", "storage.atomic_write")
    imported = ", ".join(f"valleyscope.landscape.{name}" for name in modules)
    program = f"import sys, {imported}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


def test_several_threads_may_save_at_once(tmp_path: Path) -> None:
    """A service conducts several experiments in one process."""
    meet = threading.Barrier(4)

    def save(number: int) -> None:
        found = cases.landscape(9)
        try:
            for _ in range(10):
                meet.wait()
                found.save(tmp_path / f"{number}.h5")
        except OSError:
            meet.abort()
            raise

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert len({Landscape.open(path).name for path in tmp_path.glob("*.h5")}) == 1
