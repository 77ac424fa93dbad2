"""`import torchvision` after `import valleyscope`, in new processes, with and without its compiled operators."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What the compiled library would declare, for installations where it does not load.
DECLARE_OPERATORS = """
import torch
library = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""

GUARDED = """
import sys
import valleyscope
import torchvision
from torchvision import transforms
assert torchvision is sys.modules["torchvision"] and transforms is torchvision.transforms
assert torchvision.datasets.MNIST.mirrors and torchvision.extension is sys.modules["torchvision.extension"]
assert torchvision.__version__ and torchvision.__spec__.loader.get_source("torchvision")
for name in ("_meta_registrations", "_autograd_registrations"):
    print(getattr(sys.modules[f"torchvision.{name}"], "__file__", None) is not None)
"""


def run(code: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*folders, ROOT)))}
    return subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def without_operators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed torchvision, file by file, but for its compiled libraries."""
    spec = importlib.util.find_spec("torchvision")
    assert spec is not None
    assert spec.origin is not None
    folder = tmp_path_factory.mktemp("site")
    package = folder / "torchvision"
    package.mkdir()
    for entry in Path(spec.origin).parent.iterdir():
        if entry.suffix not in (".so", ".pyd"):
            (package / entry.name).symlink_to(entry)
    return folder


def test_torchvision_is_imported_without_its_operators_where_they_are_missing(without_operators: Path) -> None:
    plain = run("import torchvision", without_operators)
    assert plain.returncode != 0
    assert "operator torchvision::" in plain.stderr
    guarded = run(GUARDED, without_operators)
    assert guarded.returncode == 0, guarded.stderr
    assert guarded.stdout.split() == ["False", "False"], "the registrations must be empty modules"


def test_a_submodule_can_be_the_first_import(without_operators: Path) -> None:
    code = "import valleyscope; from torchvision.datasets import MNIST; print(MNIST.__module__)"
    assert run(code, without_operators).stdout.strip() == "torchvision.datasets.mnist"


def test_an_import_that_failed_before_valleyscope_is_repaired(without_operators: Path) -> None:
    earlier = (
        "try:\n    import torchvision\nexcept RuntimeError:\n    pass\nelse:\n    raise SystemExit('no failure')\n"
    )
    guarded = run(earlier + GUARDED, without_operators)
    assert guarded.returncode == 0, guarded.stderr


def test_torchvision_with_operators_is_imported_as_it_is() -> None:
    prelude = "" if run("import torchvision").returncode == 0 else DECLARE_OPERATORS
    guarded = run(prelude + GUARDED)
    assert guarded.returncode == 0, guarded.stderr
    assert guarded.stdout.split() == ["True", "True"], "the registrations must be torchvision's own"


def test_other_failures_of_torchvision_are_not_hidden(tmp_path: Path) -> None:
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('the disk is full')")
    code = """
import sys
import valleyscope
try:
    import torchvision
except RuntimeError as error:
    print(error, [name for name in sys.modules if name.startswith("torchvision")])
"""
    assert run(code, tmp_path).stdout.strip() == "the disk is full []"


def test_valleyscope_imports_neither_torch_nor_torchvision_and_has_one_hook() -> None:
    code = """
import importlib, sys, valleyscope
importlib.reload(valleyscope)
print([name in sys.modules for name in ("torch", "torchvision")])
print(sum(type(finder).__name__ == "TorchvisionFinder" for finder in sys.meta_path))
"""
    assert run(code).stdout.splitlines() == ["[False, False]", "1"]


def test_loading_present_data_imports_no_torchvision() -> None:
    code = (
        "import sys; from valleyscope import load_dataset; load_dataset('digits'); print('torchvision' in sys.modules)"
    )
    assert run(code).stdout.strip() == "False"
