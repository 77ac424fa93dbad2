"""What `pip install` gets: one import name with all packages, their data and the page, in a new environment.

Everything is built offline from the files that the Dockerfile copies, by the setuptools that torch needs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent
ROOMS = ("app", "landscape", "training", "static")
SPEC = {
    "name": "tiny",
    "model": {"name": "mlp", "hidden": [8]},
    "training": {"epochs": 3, "batch_size": 128},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.3}},
    "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 1}},
    "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 5}},
    "points": 5,
    "verdict": {"resamples": 100},
}
SCRIPT = """
import torch
from pathlib import Path
import valleyscope
from valleyscope import compare, write_report

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
minima = {name: {key: torch.randn(value.shape) for key, value in model.state_dict().items()} for name in ("a", "b")}
data = (torch.randn(32, 2), torch.arange(32) % 2)
write_report(compare(model, minima, data, resolution=5, epochs=1), "report.html")
print(Path(valleyscope.__file__).parent)
"""
TYPES = """
import valleyscope.landscape
from valleyscope import AltSDP, compare, partition

reveal_type(compare)
reveal_type(AltSDP)
reveal_type(partition)
reveal_type(valleyscope.landscape.verdict)
valleyscope.no_such_name
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(*arguments: str | Path, cwd: Path) -> None:
    run(sys.executable, "-m", "pip", "--quiet", *arguments, cwd=cwd)


def environment(folder: Path) -> Path:
    """A new environment; its Python finds the libraries of the running one, but not this clone."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    (site,) = folder.glob("lib/python*/site-packages")
    libraries = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries))
    python = folder / "bin" / "python"
    absent = "import importlib.util as u; assert not any(map(u.find_spec, ('valleyscope', 'app', 'training')))"
    run(python, "-c", absent, cwd=folder)
    return python


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the stage `wheel` of the Dockerfile copies: folders, and links to them as links."""
    folder = tmp_path_factory.mktemp("source")
    stage = (HOUSE / "Dockerfile").read_text(encoding="utf-8").partition("WORKDIR /source")[2].partition("RUN")[0]
    for line in re.findall(r"(?m)^COPY (.*) \S+$", stage):
        for name in line.split():
            if (HOUSE / name).is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(HOUSE / name, folder / name, symlinks=True, ignore=ignore)
            else:
                shutil.copy(HOUSE / name, folder)
    assert (folder / "valleyscope" / "app").is_symlink()
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source, cwd=folder)
    return next(folder.glob("valleyscope-*.whl"))


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The Python of an environment that has the wheel, and a user's folder with modules named as our folders."""
    folder = tmp_path_factory.mktemp("user")
    python = environment(folder / "environment")
    pip("--python", python, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    files = folder / "files"
    (files / "static").mkdir(parents=True)
    for name in ("app.py", "training.py", "landscape.py", "static/__init__.py"):
        (files / name).write_text(f"raise AssertionError('{name} of the user was imported')\n")
    return python, files


def test_the_wheel_has_every_file_under_one_name(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"valleyscope/{path.relative_to(HOUSE)}"
        for room in ROOMS
        for path in (HOUSE / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } | {"valleyscope/__init__.py", "valleyscope/py.typed"}
    assert not wanted - packed
    assert {name.split("/")[0].partition("-")[0] for name in packed} == {"valleyscope"}, "one top-level name"


def test_the_sdist_makes_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, tmp_path, cwd=source)
    (sdist,) = tmp_path.glob("valleyscope-*.tar.gz")
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", tmp_path, sdist, cwd=tmp_path)
    (other,) = tmp_path.glob("valleyscope-*.whl")
    ours, theirs = ({i.filename: i.CRC for i in zipfile.ZipFile(path).infolist()} for path in (wheel, other))
    differing = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    assert all(name.endswith(".dist-info/RECORD") for name in differing), differing


def test_valley_run_works_beside_modules_with_the_names_of_our_folders(installation: tuple[Path, Path]) -> None:
    python, files = installation
    (files / "tiny.json").write_text(json.dumps(SPEC))
    for command in ("valley", "valleyscope"):
        assert "digits" in run(python.with_name(command), "recipes", cwd=files)
    run(python.with_name("valley"), "run", "tiny.json", "--out", "out", cwd=files)
    verdict = json.loads((files / "out" / "verdict.json").read_text())
    assert verdict
    assert (files / "out" / "report.html").stat().st_size > 100_000


def test_a_script_compares_networks_beside_modules_with_the_names_of_our_folders(
    installation: tuple[Path, Path],
) -> None:
    python, files = installation
    (files / "script.py").write_text(SCRIPT)
    package = Path(run(python, "script.py", cwd=files).strip())
    assert package.is_relative_to(python.parent.parent)
    assert (package / "static" / "index.html").is_file()
    assert (files / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize("installed", ["wheel", pytest.param("editable", marks=pytest.mark.drill)])
def test_mypy_sees_the_types_of_an_installed_package(
    installed: str, installation: tuple[Path, Path], source: Path, tmp_path: Path
) -> None:
    python = installation[0]
    if installed == "editable":
        python = environment(tmp_path / "environment")
        options = ("install", "--no-deps", "--no-build-isolation", "--no-index", "--editable")
        pip("--python", python, *options, source, cwd=tmp_path)
        where = run(python, "-c", "import valleyscope.app; print(valleyscope.app.__file__)", cwd=tmp_path)
        assert Path(where.strip()).is_relative_to(source)
    # Other libraries are skipped, for speed: what they define is Any here.
    settings = "[mypy]\nfollow_imports = skip\n[mypy-valleyscope.*]\nfollow_imports = normal\n"
    (tmp_path / "mypy.ini").write_text(settings)
    (tmp_path / "user.py").write_text(TYPES)
    command = [sys.executable, "-m", "mypy", "--python-executable", python, "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    notes = [line.split("note: ")[1] for line in done.stdout.splitlines() if "note: Revealed" in line]
    assert len(notes) == 4, done.stdout + done.stderr
    assert "valleyscope.landscape.storage" in notes[0], "compare returns a Landscape"
    assert all('"def (' in note or '"def [' in note for note in notes), notes
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, errors
    assert "no_such_name" in errors[0]
