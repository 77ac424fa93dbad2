"""What `pip install` gets: all rooms, their data and the page."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

HOUSE = Path(__file__).parent.parent


def test_the_wheel_has_every_file_that_runs_or_is_served(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(HOUSE)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("valleyscope-*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    rooms = ("app", "landscape", "training", "static")
    wanted = {
        str(path.relative_to(HOUSE))
        for room in rooms
        for path in (HOUSE / room).rglob("*")
        if path.suffix in {".py", ".yaml", ".js", ".json", ".css", ".html", ".svg", ".typed"}
    }
    assert wanted
    assert not wanted - packed
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in packed)
