"""Files of earlier versions: "one basin" becomes level or sloping by the rise of the profile in the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscape import cases
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PathRecord, PathValues

RELEASED = Path(__file__).parents[1] / "data" / "landscape-v1.h5"
T = np.linspace(0, 1, 61)


def earlier(kind: str = "one basin", **changes: Any) -> dict[str, Any]:
    """A verdict in the words of version 0.1.0, which knew no rise."""

    def plain(path: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in path.items() if name not in ("rise", "ends")}

    now = cases.VERDICT
    control = {"name": "control", **{name: plain(now["control"][name]) for name in ("line", "curve")}}
    sentence = f"{kind.capitalize()}. The straight line from sgd to altsdp never rises above its ends."
    paths = {"line": plain(now["line"]), "curve": plain(now["curve"]), "control": control}
    return {**now, "kind": kind, "sentence": sentence, **paths, **changes}


def opened(folder: Path, verdict: dict[str, Any], losses: np.ndarray[Any, Any] | None) -> Landscape:
    """A file with this verdict and these losses along the judged line, as it is opened."""
    landscape = cases.landscape(5)
    del landscape.lines["sgd-altsdp"]
    if losses is not None:
        splits = {split: PathValues(losses, 0.1 * losses) for split in ("train", "test")}
        line = PathRecord("sgd-altsdp", "line", "sgd", "altsdp", T, T, splits)
        landscape.lines = {"sgd-altsdp": line, **landscape.lines}
    landscape.verdict = verdict
    landscape.save(folder / "landscape.h5")
    return Landscape.open(folder / "landscape.h5")


@pytest.mark.parametrize(("top", "kind"), [(0.331, "one basin, sloping"), (0.031, "level valley")])
def test_one_basin_is_judged_anew_by_the_rise_of_its_profile(top: float, kind: str, tmp_path: Path) -> None:
    """The complaint that began it: a loss that climbs from 0.007 to 0.331 was "one basin 0.000"."""
    found = opened(tmp_path, earlier(), 0.007 + (top - 0.007) * T).verdict
    assert found is not None
    assert found["kind"] == kind
    assert found["line"]["rise"] == {"value": pytest.approx(top - 0.007), "low": None, "high": None}
    assert found["line"]["ends"]["value"] == pytest.approx(top - 0.007)
    assert (found["line"]["low"], found["line"]["high"]) == (0.0, 0.001), "the interval of the barrier is kept"
    assert f"{top - 0.007:.3f} nats (tolerance 0.05)" in found["finding"]
    assert found["sentence"].startswith(found["finding"])
    assert any("no confidence interval" in note for note in found["notes"])
    assert found["sharpness"] == cases.VERDICT["sharpness"]
    assert found["control"]["name"] == "control"
    assert found["test_error_verdict"]["line"]["rise"]["value"] == pytest.approx(0.1 * (top - 0.007))


def test_what_was_judged_anew_is_saved_and_stays(tmp_path: Path) -> None:
    landscape = opened(tmp_path, earlier(), 0.2 * T)
    landscape.save(tmp_path / "again.h5")
    assert Landscape.open(tmp_path / "again.h5").verdict == landscape.verdict


def test_without_a_profile_one_basin_is_undecided(tmp_path: Path) -> None:
    found = opened(tmp_path, earlier(), None).verdict
    assert found is not None
    assert found["kind"] == "undecided"
    assert "lie in one basin; the profile is missing, so whether it is level is open" in found["sentence"]


@pytest.mark.parametrize("kind", ["separate", "joined by a curve only", "undecided"])
def test_other_kinds_stay_and_get_their_rise(kind: str, tmp_path: Path) -> None:
    verdict = earlier(kind)
    found = opened(tmp_path, verdict, 0.2 * T).verdict
    assert found is not None
    assert (found["kind"], found["sentence"]) == (kind, verdict["sentence"])
    assert found["line"]["rise"]["value"] == pytest.approx(0.2)


def test_the_file_of_a_release_is_judged_anew() -> None:
    landscape = Landscape.open(RELEASED)
    line = landscape.lines["sgd-altsdp"].splits["train"].loss
    assert landscape.verdict is not None
    assert landscape.verdict["line"]["rise"]["value"] == pytest.approx(np.ptp(line))
    assert landscape.verdict["kind"] in ("level valley", "one basin, sloping", "separate", "joined by a curve only")


@pytest.mark.parametrize(
    "wrong",
    [
        {"line": 7},
        {"line": {"barrier": "x"}},
        {"between": ["sgd"]},
        {"between": [["sgd"], "altsdp"]},
        {"control": "control"},
        {"control": {"name": 3}},
        {"control": {"name": "nobody", "line": []}},
        {"split": "validation"},
        {"curve": [1]},
    ],
    ids=str,
)
def test_a_malformed_verdict_does_not_keep_a_file_from_opening(wrong: dict[str, Any], tmp_path: Path) -> None:
    assert opened(tmp_path, earlier(**wrong), 0.2 * T).minima
