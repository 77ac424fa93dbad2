"""Reports are rendered by a subprocess, which may die or meet a disk error."""

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


def test_a_rendered_report_is_that_of_the_library(renderer: ReportRenderer, landscape: Path, tmp_path: Path) -> None:
    render_in_process(landscape, tmp_path / "library.html")
    for name in ("first.html", "second.html"):
        renderer.render(landscape, tmp_path / name)
        assert (tmp_path / name).read_bytes() == (tmp_path / "library.html").read_bytes()


def test_a_renderer_that_dies_is_replaced_and_nothing_is_lost(
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


def test_a_disk_error_is_raised_as_oserror(renderer: ReportRenderer, landscape: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere") as refused:
        renderer.render(landscape, tmp_path / "nowhere" / "report.html")
    assert refused.value.errno == errno.ENOENT


def test_an_unreadable_landscape_is_an_error(renderer: ReportRenderer, tmp_path: Path) -> None:
    (tmp_path / "landscape.h5").write_bytes(b"not a landscape")
    with pytest.raises((ValueError, OSError), match=r"landscape|report"):
        renderer.render(tmp_path / "landscape.h5", tmp_path / "report.html")
