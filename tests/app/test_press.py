"""Reports are written by a process of their own, which may die or meet a bad disk."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.experiments.press import Press, write_here
from tests.landscape import cases


@pytest.fixture
def press() -> Iterator[Press]:
    found = Press()
    yield found
    found.close()


@pytest.fixture
def landscape(tmp_path: Path) -> Path:
    cases.landscape(5).save(tmp_path / "landscape.h5")
    return tmp_path / "landscape.h5"


def test_a_printed_report_is_that_of_the_library(press: Press, landscape: Path, tmp_path: Path) -> None:
    write_here(landscape, tmp_path / "here.html")
    for name in ("first.html", "second.html"):
        press.print(landscape, tmp_path / name)
        assert (tmp_path / name).read_bytes() == (tmp_path / "here.html").read_bytes()


def test_a_press_that_dies_is_replaced_and_nothing_is_lost(press: Press, landscape: Path, tmp_path: Path) -> None:
    press.print(landscape, tmp_path / "first.html")
    process = press._clerk.pid
    assert process is not None
    os.kill(process, signal.SIGKILL)
    press.print(landscape, tmp_path / "second.html")
    press.print(landscape, tmp_path / "third.html")
    assert len({(tmp_path / f"{name}.html").read_bytes() for name in ("first", "second", "third")}) == 1
    assert press._clerk.pid not in (None, process)


def test_what_the_disk_refuses_is_an_error_of_the_disk(press: Press, landscape: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere") as refused:
        press.print(landscape, tmp_path / "nowhere" / "report.html")
    assert refused.value.errno == errno.ENOENT


def test_a_landscape_that_cannot_be_read_is_told(press: Press, tmp_path: Path) -> None:
    (tmp_path / "landscape.h5").write_bytes(b"nothing of the kind")
    with pytest.raises((ValueError, OSError), match=r"landscape|report"):
        press.print(tmp_path / "landscape.h5", tmp_path / "report.html")
