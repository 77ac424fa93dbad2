"""The rooms of the house: which package may import which, and what must not import torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent
FORBIDDEN = {"training": {"app", "landscape"}, "landscape": {"app", "training"}, "app": set()}
ORDER = {
    "app": (
        {
            "database_url",
            "devices",
            "log_config",
            "periodic_thread",
            "secret_files",
            "settings",
            "shutdown",
            "store_url",
        },
        {"experiments"},
        {"tasks"},
        {"storage"},
        {"jobs"},
        {"worker"},
        {"api"},
        {"commands"},
        {"cli"},
    ),
    "landscape": (
        {"cancellation", "colours", "drawing", "plot_style"},
        {"geometry"},
        {"storage"},
        {"network"},
        {"convolution"},
        {"evaluation"},
        {"alignment"},
        {"estimation"},
        {"fitting"},
        {"curvature"},
        {"analysis"},
        {"claim", "json_encoding"},
        {"figures"},
        {"recorder"},
        {"training_callbacks"},
        {"result_figures"},
        {"report"},
        {"export"},
        {"importers"},
        {"aligned_lines"},
        {"comparison_progress"},
        {"comparison"},
    ),
}
"""Packages and modules of a room, lowest first: each may import those before it."""
WITHOUT_TORCH = (
    "valleyscope.app.cli",
    "valleyscope.app.experiments.cost",
    "valleyscope.app.experiments.experiment_writer",
    "valleyscope.app.experiments.plan",
    "valleyscope.app.experiments.recipes",
    "valleyscope.app.worker.local_runner",
    "valleyscope.app.experiments.spec",
    "valleyscope.app.commands.run",
    "valleyscope.landscape.export",
    "valleyscope.landscape.figures",
    "valleyscope.landscape.importers",
    "valleyscope.landscape.report",
    "valleyscope.landscape.storage.landscape_file",
    "valleyscope.landscape.geometry.tiles",
    "valleyscope.landscape.analysis.verdict",
    "valleyscope.training.models",
    "valleyscope.training.settings",
    "valleyscope.training.dataset_sources",
)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            assert node.level == 0, f"{path} has a relative import"


@pytest.mark.parametrize("room", FORBIDDEN)
def test_rooms_import_one_way(room: str) -> None:
    modules = sorted((HOUSE / room).rglob("*.py"))
    assert modules
    for path in modules:
        names = list(imports(path))
        assert not {name.split(".")[0] for name in names} & {"app", "landscape", "training"}, f"{path}: use valleyscope"
        crossed = {name.split(".")[1] for name in names if name.startswith("valleyscope.")} & FORBIDDEN[room]
        assert not crossed, f"{path.relative_to(HOUSE)} imports {crossed}"


@pytest.mark.parametrize("room", ORDER)
def test_packages_of_a_room_import_one_way(room: str) -> None:
    level = {name: number for number, names in enumerate(ORDER[room]) for name in names}
    for path in sorted((HOUSE / room).rglob("*.py")):
        own = path.relative_to(HOUSE / room).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        assert own in level, f"{room}/{own} has no place in the order"
        for name in imports(path):
            parts = name.split(".")
            if parts[:2] == ["valleyscope", room] and len(parts) > 2:
                assert level[parts[2]] <= level[own], f"{path.relative_to(HOUSE)} imports {name}"


def test_what_only_reads_and_serves_does_not_import_torch() -> None:
    script = (
        f"import sys\nfor name in {WITHOUT_TORCH!r}:\n    __import__(name)\n    assert 'torch' not in sys.modules, name"
    )
    subprocess.run([sys.executable, "-c", script], cwd=HOUSE, check=True)


def test_every_package_ships_its_types() -> None:
    assert all((HOUSE / room / "py.typed").is_file() for room in FORBIDDEN)


def test_every_dependency_has_a_reason_beside_it() -> None:
    text = (HOUSE / "pyproject.toml").read_text(encoding="utf-8")
    listed = [line.strip() for line in text.splitlines() if line.startswith('    "') and any(c in line for c in "=>")]
    assert len(listed) > 10
    assert all(" # " in line for line in listed), [line for line in listed if " # " not in line]
