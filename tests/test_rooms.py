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
    "valleyscope.training.sources",
)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            assert node.level == 0, f"{path} has a relative import"


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_point_one_way(room: str) -> None:
    modules = sorted((HOUSE / room).rglob("*.py"))
    assert modules
    for path in modules:
        crossed = {name.split(".")[0] for name in imports(path)} & FORBIDDEN[room]
        assert not crossed, f"{path.relative_to(HOUSE)} imports {crossed}"


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
