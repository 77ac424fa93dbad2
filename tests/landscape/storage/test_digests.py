"""A file whose content was changed is refused, and the error names the changed member."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.landscape import cases
from tests.landscape.storage.test_landscape_file import FIXTURE, assert_equal
from valleyscope.landscape.storage.digests import altered, digests
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape, NotALandscape


def small() -> Landscape:
    """A landscape with one member of every kind, so that most of its file is content."""
    whole = cases.landscape(5)
    minimum, plane = whole.minima["altsdp"], whole.planes["basins"]
    minimum.epochs = {name: values[:3] for name, values in list(minimum.epochs.items())[:3]}
    minimum.final = {"train_loss": minimum.final["train_loss"]}
    plane.paths = {"trajectory:sgd": plane.paths["trajectory:sgd"][:4]}
    return Landscape(
        name="small",
        spec=whole.spec,
        provenance=whole.provenance,
        minima={"altsdp": minimum},
        planes={"basins": plane},
        curves={"valley": whole.curves["valley"]},
        lines={"sgd-altsdp": whole.lines["sgd-altsdp"]},
        verdict=whole.verdict,
    )


def flipped(content: bytes, count: int) -> list[bytes]:
    """Copies with one byte changed each, at places all over the file."""
    draw = random.Random(0)
    copies = []
    for place in draw.sample(range(len(content)), count):
        copy = bytearray(content)
        copy[place] ^= draw.randrange(1, 256)
        copies.append(bytes(copy))
    return copies


def opened(path: Path) -> Landscape | str:
    """The landscape in a file, or the error message."""
    try:
        return Landscape.open(path)
    except (DamagedLandscape, NotALandscape) as error:
        return str(error)


def test_a_changed_byte_is_refused_by_name_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "landscape.h5"
    landscape = small()
    landscape.save(path)
    refused = 0
    for content in flipped(path.read_bytes(), 250):
        path.write_bytes(content)
        found = opened(path)
        if isinstance(found, str):
            assert found.startswith(f"{path}: ")
            refused += 1
        else:
            assert_equal(found, landscape)
    assert refused > 50


@pytest.mark.parametrize(("place", "bit"), [(12532, 4), (41294, 2)])
def test_data_types_that_do_not_exist_are_damage_to_a_member(tmp_path: Path, place: int, bit: int) -> None:
    """A file from before there were checksums; h5py has no exception of its own for such types."""
    content = bytearray(FIXTURE.read_bytes())
    content[place] ^= bit
    path = tmp_path / "landscape.h5"
    path.write_bytes(content)
    with pytest.raises(DamagedLandscape, match=re.escape(f"{path}: ") + r"[a-z]+/\S+/\S+: cannot be read"):
        Landscape.open(path)


def test_a_file_with_a_checksum_is_plain_hdf5_for_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "landscape.h5"
    small().save(path)
    size = path.stat().st_size
    with h5py.File(path) as file:
        assert file["planes/basins/train/loss"].shape == (5, 5)
    assert path.stat().st_size == size
    with h5py.File(path, "r+") as file:
        file["remark"] = "added by another program"
    assert b"valleyscope sha256" not in path.read_bytes()
    assert Landscape.open(path).name == "small"


def test_a_wrong_checksum_is_found_before_anything_is_read(tmp_path: Path) -> None:
    """HDF5 may crash the process on such files."""
    path = tmp_path / "landscape.h5"
    small().save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedLandscape, match="was damaged after it was written: the sha256 of its bytes"):
        Landscape.open(path)


EDITS: dict[str, Callable[[h5py.File], Any]] = {
    "planes/valley: was altered": lambda file: file["planes/valley/test/loss"].__setitem__((2, 1), 0.5),
    "planes/basins: was altered": lambda file: file["planes/basins"].attrs.__setitem__("note", "something else"),
    "curves/valley: was altered": lambda file: file["curves/valley/train/error"].__setitem__(7, 0.25),
    "minima/sgd: was altered": lambda file: file["trajectory/sgd/test_loss"].__setitem__(0, 0.5),
    "minima/altsdp: was altered": lambda file: file["minima/altsdp/layers/name"].__setitem__(0, "head"),
    "attributes: was altered": lambda file: file.attrs.__setitem__("name", "another"),
    "verdict: was altered": lambda file: file["verdict"].attrs.__setitem__("json", '{"kind": "separate"}'),
    "lines/sgd-control: is missing": lambda file: file["lines"].__delitem__("sgd-control"),
    "attribute 'sha256' is not an object": lambda file: file.attrs.__setitem__("sha256", "[]"),
}


@pytest.mark.parametrize("message", EDITS)
def test_an_edited_member_is_named(tmp_path: Path, message: str) -> None:
    path = tmp_path / "landscape.h5"
    cases.landscape(5).save(path)
    with h5py.File(path, "r+") as file:
        EDITS[message](file)
    with pytest.raises(DamagedLandscape, match=re.escape(f"{path}: ") + ".*" + re.escape(message)):
        Landscape.open(path)


def test_a_file_without_digests_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "landscape.h5"
    cases.landscape(5).save(path)
    with h5py.File(path, "r+") as file:
        file["planes/valley/test/loss"][2, 1] = 0.5
        del file.attrs["sha256"]
    assert Landscape.open(path).planes["valley"].splits["test"].loss[2, 1] == 0.5


def test_unusual_but_valid_content_is_not_refused(tmp_path: Path) -> None:
    landscape = small()
    landscape.name = ""
    landscape.spec = {"größe": "∞ \u2028 \t", "nested": {"empty": {}, "list": [(), None, True, 1e-300, 10**30]}, "1": 1}  # type: ignore[dict-item]
    landscape.updated = "naïve\r\n"
    plane, minimum = landscape.planes["basins"], landscape.minima["altsdp"]
    plane.points = {name: tuple(np.float32(place)) for name, place in plane.points.items()}
    plane.distances = dict(reversed(plane.distances.items()))
    plane.splits["train"].loss[0, 0] = np.inf
    plane.paths = {}
    minimum.final = {"angle": float("nan"), "epoch": 3, "sparsity": np.float32(0.1)}  # type: ignore[dict-item]
    minimum.layers, minimum.epochs, minimum.checkpoint = [], {}, ""
    landscape.save(tmp_path / "landscape.h5")
    found = Landscape.open(tmp_path / "landscape.h5")
    assert digests(found) == digests(landscape)


def test_added_missing_and_reordered_members_are_named() -> None:
    written = {"attributes": "1", "minima/a": "2", "minima/b": "3"}
    assert altered(written, dict(written)) is None
    assert altered(written, {**written, "planes/c": "4"}) == "planes/c: was not there when the file was written"
    assert altered(written, {"attributes": "1", "minima/b": "3"}) == "minima/a: is missing"
    swapped = {"attributes": "1", "minima/b": "3", "minima/a": "2"}
    assert altered(written, swapped) == "members are in another order than when the file was written"


CHANGES: list[Callable[[Landscape], Any]] = [
    lambda each: each.planes["valley"].done.__setitem__((0, 0), False),
    lambda each: each.planes["valley"].distances.update(control=1.0),
    lambda each: each.planes["valley"].points.update(control=(8.0, 1.0)),
    lambda each: each.minima["sgd"].epochs["epoch"].__setitem__(slice(0, 2), [2.0, 1.0]),
    lambda each: each.minima["sgd"].epochs.__setitem__("sparsity", -each.minima["sgd"].epochs["sparsity"]),
    lambda each: each.minima["sgd"].epochs.__setitem__("more", each.minima["sgd"].epochs.pop("sparsity")),
    lambda each: setattr(each.minima["sgd"], "checkpoint", None),
    lambda each: each.lines["sgd-control"].arc.__setitem__(3, 0.0),
    lambda each: each.spec.update(seed=1),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_digests_depend_on_every_value_its_position_and_its_name(number: int) -> None:
    one, other = (cases.landscape(5) for _ in range(2))
    other.created = one.created
    assert digests(one) == digests(other)
    CHANGES[number](other)
    assert sum(digests(one)[part] != digest for part, digest in digests(other).items()) == 1
