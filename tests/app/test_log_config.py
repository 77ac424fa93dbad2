"""Logs are one JSON object per line, from every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_HOUSE = Path(__file__).parents[2]
_SCRIPT = """
import sys
from pathlib import Path
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.log_config import Style, start_logging
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.worker.child_runner import ChildRunner

if __name__ == "__main__":
    start_logging(Style("INFO", "json"))
    folder = Path(sys.argv[1])
    (folder / "work").mkdir()
    spec = Spec.model_validate({
        "minima": {"sgd": {}}, "training": {"epochs": 1, "batch_size": 500}, "samples": 500,
        "model": {"name": "tests.app.plugins:worrying"},
    })
    child_runner = ChildRunner("cpu")
    child_runner.run(Assignment(Task(Kind.TRAIN, "sgd"), spec, folder, None, {}), lambda _: None, lambda: None)
    child_runner.clear()
"""


def test_warnings_of_a_task_are_lines_of_the_log(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300, env={**os.environ, "PYTHONPATH": str(_HOUSE)}
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert any("this network worries" in line["message"] for line in lines)
