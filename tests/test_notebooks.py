"""The notebooks of docs/notebooks run from top to bottom, as they stand there."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))
SAYS = {
    "own-network": "Along the straight line",
    "altsdp": "of the groups are zero; the threshold ended at step",
    "trajectories": "axes explain",
}
WRITES = {"own-network": ["landscape.h5", "report.html"], "altsdp": [], "trajectories": ["landscape.h5"]}


def shown(value: Any) -> str:
    """What a notebook draws for the last value of a cell."""
    draw = getattr(value, "_repr_html_", None)
    return str(draw() if draw is not None else value)


def run(code: str, names: dict[str, Any]) -> str | None:
    """Run a cell; the value of its last expression is drawn as a notebook draws it."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # type: ignore[attr-defined]
    return None if value is None else shown(value)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws_what_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code), "stored without outputs"
    names: dict[str, Any] = {"__name__": path.stem}
    before = torch.get_rng_state()
    try:
        drawn = [run("".join(cell["source"]), names) for cell in code]
    finally:
        torch.set_rng_state(before)
    assert SAYS[path.stem] in capsys.readouterr().out
    assert [name for name in WRITES[path.stem] if not (tmp_path / name).is_file()] == []
    if path.stem != "altsdp":
        assert any("plotly" in (text or "").lower() for text in drawn)
    if path.stem == "altsdp":
        assert float(names["difference"]) < 1e-4


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(SAYS)
