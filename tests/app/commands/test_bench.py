"""`valley bench` times surfaces; it measures here, so only its form and its refusals are tested."""

from __future__ import annotations

import pytest

from valleyscope.app.cli import main


def test_a_network_gets_a_row_with_both_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "mlp", "--samples", "32", "--points", "1", "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if line.startswith("mlp"))
    assert row.split()[3].endswith("x")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--samples", "0"], "--samples"),
        (["--device", "cuda:9"], "--device"),
        (["--shape", "3,x"], "--shape"),
        (["--points-at-once", "0"], "--points-at-once"),
    ],
)
def test_bad_options_are_refused_by_name(arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "mlp", *arguments]) == 2
    assert named in capsys.readouterr().err


def test_the_way_of_gpus_is_tried_on_the_processor_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--samples", "32", "--points", "2", "--rounds", "1"]
    assert main(["bench", "mlp", *few, "--points-at-once", "auto"]) == 0
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if line.startswith("mlp "))
    assert float(row.split()[4]) < 1e-4
    assert "16 points at a time, 32 samples" in shown
