"""Reports are written by a process of their own, which may die or meet a bad disk."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.landscape import cases
from valleyscope.app.experiments.report_renderer import ReportRenderer, render_in_process


@pytest.fixture
def renderer() -> Iterator[ReportRenderer]:
    found = ReportRenderer()
    yield found
    found.close()


@pytest.fixture
def landscape(tmp_path: Path) -> Path:
    cases.landscape(5).save(tmp_path / "landscape.h5")
    return tmp_path / "landscape.h5"


def test_a_printed_report_is_that_of_the_library(renderer: ReportRenderer, landscape: Path, tmp_path: Path) -> None:
    render_in_process(landscape, tmp_path / "here.html")
    for name in ("first.html", "second.html"):
        renderer.render(landscape, tmp_path / name)
        assert (tmp_path / name).read_bytes() == (tmp_path / "here.html").read_bytes()


def test_a_press_that_dies_is_replaced_and_nothing_is_lost(
    renderer: ReportRenderer, landscape: Path, tmp_path: Path
) -> None:
    renderer.render(landscape, tmp_path / "first.html")
    process = renderer._subprocess.pid
    assert process is not None
    os.kill(process, signal.SIGKILL)
    renderer.render(landscape, tmp_path / "second.html")
    renderer.render(landscape, tmp_path / "third.html")
    assert len({(tmp_path / f"{name}.html").read_bytes() for name in ("first", "second", "third")}) == 1
    assert renderer._subprocess.pid not in (None, process)


def test_what_the_disk_refuses_is_an_error_of_the_disk(
    renderer: ReportRenderer, landscape: Path, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="nowhere") as refused:
        renderer.render(landscape, tmp_path / "nowhere" / "report.html")
    assert refused.value.errno == errno.ENOENT


def test_a_landscape_that_cannot_be_read_is_told(renderer: ReportRenderer, tmp_path: Path) -> None:
    (tmp_path / "landscape.h5").write_bytes(b"nothing of the kind")
    with pytest.raises((ValueError, OSError), match=r"landscape|report"):
        renderer.render(tmp_path / "landscape.h5", tmp_path / "report.html")
