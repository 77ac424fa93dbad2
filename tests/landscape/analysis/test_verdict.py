"""The verdict: what it says of planted landscapes, and what it does not claim."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from valleyscope.landscape.analysis.barriers import Estimate, barrier, bootstrap_barriers, end_difference, rise
from valleyscope.landscape.analysis.verdict import Verdict, VerdictKind, verdict
from valleyscope.landscape.analysis.verdict_kind import TONES
from valleyscope.landscape.evaluation.guessing_baseline import guessing_loss
from valleyscope.landscape.geometry.curves import Curve, line
from valleyscope.landscape.geometry.vectors import flatten

T = np.linspace(0, 1, 21)
FLAT = np.zeros(21)
HILL = np.sin(np.pi * T)


def samples(shape: NDArray[np.float64], noise: float = 0.01, count: int = 400) -> NDArray[np.float32]:
    """Per-sample losses with a given mean course: a difficulty of each sample, and a little noise at each point."""
    generator = np.random.default_rng(len(shape))
    difficulty = generator.exponential(0.05, count)
    wobble = noise * generator.normal(size=(len(shape), count))
    wobble -= wobble.mean(axis=1, keepdims=True)
    return (shape[:, None] + difficulty + wobble).astype(np.float32)


@dataclass
class Split:
    loss: NDArray[np.float64]
    error: NDArray[np.float64]
    samples: NDArray[np.float32] | None = None
    guessing: float | None = None


@dataclass
class Profile:
    splits: dict[str, Split] = field(default_factory=dict)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30))
def test_barrier_is_the_top_above_the_higher_end_and_never_negative(losses: list[float]) -> None:
    assert barrier(losses) == max(losses) - max(losses[0], losses[-1])
    assert barrier(losses) >= 0
    assert barrier(losses[::-1]) == barrier(losses)
    assert barrier(torch.tensor(losses, dtype=torch.float64)) == barrier(np.array(losses))


def test_barrier_of_infinite_losses_is_a_number() -> None:
    assert barrier([0.0, math.inf, 0.0]) == math.inf
    assert barrier([math.inf, 1.0, 0.0]) == 0.0
    assert barrier([math.inf, math.inf, 0.0]) == 0.0


@pytest.mark.parametrize("losses", [[1.0], [[1.0, 2.0]], []])
def test_barrier_needs_a_path(losses: list[float]) -> None:
    with pytest.raises(ValueError, match="two or more points"):
        barrier(losses)
    with pytest.raises(ValueError, match="NaN"):
        barrier([0.0, math.nan, 0.0])


def test_intervals_equal_a_plain_loop_over_resamplings() -> None:
    paths = [samples(HILL, 0.3, 60), samples(0.1 * HILL, 0.3, 60)]
    found = bootstrap_barriers(paths, level=0.9, resamples=200, seed=5)
    generator = np.random.default_rng(5)
    drawn = np.concatenate([generator.integers(60, size=(rows, 60), dtype=np.int32) for rows in [16] * 12 + [8]])
    for path, estimate in zip(paths, found, strict=True):
        resampled = [path[:, chosen].astype(np.float64).mean(axis=1) for chosen in drawn]
        for measure, found_number in ((barrier, estimate), (rise, estimate.rise), (end_difference, estimate.ends)):
            assert found_number is not None
            values = sorted(measure(losses) for losses in resampled)
            assert found_number.value == pytest.approx(measure(path.mean(axis=1, dtype=np.float64)))
            assert found_number.low == pytest.approx(min(values[9], found_number.value), abs=1e-6)
            assert found_number.high == pytest.approx(max(values[190], found_number.value), abs=1e-6)


def test_interval_covers_the_true_barrier_about_as_often_as_it_says() -> None:
    """Barrier of a single high point, where it is the mean of differences: near-normal, so 90 % is near 90 %."""
    generator = np.random.default_rng(0)
    covered = 0
    for index in range(200):
        middle = 1.0 + generator.normal(size=150)
        (estimate,) = bootstrap_barriers([np.stack([np.zeros(150), middle, np.zeros(150)])], level=0.9, seed=index)
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 1.0 <= estimate.high
    assert 165 <= covered <= 195


def test_paths_share_their_resamplings() -> None:
    """Two equal paths get equal intervals, whatever the noise."""
    first, second = bootstrap_barriers([samples(HILL, 1.0), samples(HILL, 1.0)])
    assert first.low == pytest.approx(second.low, abs=1e-6)
    assert first.high == pytest.approx(second.high, abs=1e-6)


def test_a_sample_that_overflows_makes_the_bound_infinite_and_no_nan() -> None:
    path = samples(HILL)
    path[10, 3] = math.inf
    (estimate,) = bootstrap_barriers([path])
    assert estimate.value == math.inf
    assert estimate.high == math.inf
    assert estimate.low is not None
    assert estimate.low == pytest.approx(1.0, abs=0.1)


def test_flat_line_is_a_level_valley() -> None:
    found = verdict(samples(FLAT), samples(FLAT), samples(HILL), samples(0.005 * HILL), between=("sgd", "altsdp"))
    assert found.kind is VerdictKind.LEVEL_VALLEY
    assert found.sentence.startswith(
        "Level valley. Along the straight line from sgd to altsdp the train loss stays within "
    )
    assert "tolerance 0.05); the control's line rises by 1.00." in found.to_json()["finding"]
    assert "from sgd to control the line has a barrier of 1.00 nats" in found.sentence
    assert "a flat curve alone does not tell one basin from two" in found.sentence


def test_planted_hill_that_the_curve_goes_around_is_joined_by_a_curve_only() -> None:
    found = verdict(samples(HILL), samples(0.01 * HILL), samples(HILL), samples(0.01 * HILL))
    assert found.kind is VerdictKind.JOINED_BY_A_CURVE_ONLY
    assert "weak evidence" in found.sentence
    assert "one basin:" not in found.sentence


def test_planted_separate_minima_are_separate() -> None:
    found = verdict(samples(HILL), samples(0.5 * HILL))
    assert found.kind is VerdictKind.SEPARATE
    assert found.sentence.startswith("Separate. Along the straight line from start to end the train loss rises 1.00")


def test_without_a_curve_the_line_alone_is_judged_and_said() -> None:
    found = verdict(samples(HILL))
    assert found.kind is VerdictKind.SEPARATE
    assert "No curve was fitted" in found.sentence
    assert verdict(samples(FLAT)).kind is VerdictKind.LEVEL_VALLEY


@pytest.mark.parametrize(
    ("line_height", "curve_height"), [(0.05, None), (0.05, 0.0), (1.0, 0.05)], ids=["line", "line, flat curve", "curve"]
)
def test_barrier_at_the_tolerance_is_undecided(line_height: float, curve_height: float | None) -> None:
    curve = None if curve_height is None else samples(curve_height * HILL, noise=0.2)
    found = verdict(samples(line_height * HILL, noise=0.2), curve)
    assert found.kind is VerdictKind.UNDECIDED
    assert found.sentence.startswith("Undecided.")
    assert "interval contains the tolerance" in found.sentence


def side(found: Estimate | None, tolerance: float) -> str:
    """Where an interval lies: within the tolerance, above it, or on both sides."""
    assert found is not None
    low, high = (found.value if bound is None else bound for bound in (found.low, found.high))
    assert low <= found.value <= high
    return "within" if high <= tolerance else "above" if low > tolerance else "open"


def documented(line: tuple[str, str], curve: str | None) -> VerdictKind:
    """The table of the documentation: the sides of the line's barrier and rise, and of the curve's barrier."""
    match (*line, curve):
        case ("within", "within", _):
            return VerdictKind.LEVEL_VALLEY
        case ("within", "above", _):
            return VerdictKind.ONE_BASIN_SLOPING
        case ("above", _, "within"):
            return VerdictKind.JOINED_BY_A_CURVE_ONLY
        case ("above", _, "above" | None):
            return VerdictKind.SEPARATE
        case _:
            return VerdictKind.UNDECIDED


PROFILES = st.lists(st.floats(0, 0.3), min_size=2, max_size=12).map(np.array)


@settings(deadline=None, max_examples=200)
@given(
    line=PROFILES,
    curve=st.none() | PROFILES,
    noise=st.floats(0, 0.3),
    tolerance=st.floats(0.001, 0.3),
    kept=st.booleans(),
)
def test_kind_follows_from_barrier_rise_tolerance_and_their_intervals(
    line: NDArray[np.float64], curve: NDArray[np.float64] | None, noise: float, tolerance: float, kept: bool
) -> None:
    given = [None if path is None else samples(path, noise, 40) if kept else path for path in (line, curve)]
    found = verdict(*given, tolerance=tolerance, resamples=100)
    sides = side(found.line, tolerance), side(found.line.rise, tolerance)
    assert found.kind is documented(sides, None if found.curve is None else side(found.curve, tolerance))
    means = line if given[0].ndim == 1 else given[0].mean(axis=1, dtype=np.float64)
    assert found.line.rise.value == means.max() - means.min()
    assert found.line.ends.value == means[-1] - means[0]
    if found.line.rise.value > tolerance:
        assert TONES[found.kind] != "good", "a profile that rises beyond the tolerance is never green"


def test_only_a_level_valley_is_green() -> None:
    assert [kind for kind in VerdictKind if TONES[kind] == "good"] == [VerdictKind.LEVEL_VALLEY]


@pytest.mark.parametrize("direction", [1, -1])
def test_a_slope_beyond_the_tolerance_is_one_basin_but_sloping(direction: int) -> None:
    """The loss climbs from 0.007 to 0.331, as in a network that was pruned too far."""
    slope = 0.007 + 0.324 * T[::direction]
    found = verdict(samples(slope - 0.05), control=samples(HILL), between=("sgd", "altsdp"))
    assert found.kind is VerdictKind.ONE_BASIN_SLOPING
    assert found.line.value == found.line.high == 0
    assert found.line.rise is not None
    assert found.line.ends is not None
    assert found.line.rise.value == pytest.approx(0.324, abs=1e-6)
    assert found.line.ends.value == pytest.approx(direction * 0.324, abs=1e-6)
    said = found.to_json()["finding"]
    assert said.startswith(
        "One basin, sloping. Along the straight line from sgd to altsdp the train loss rises by 0.324"
    )
    assert said.endswith("tolerance 0.05) without a barrier; the control's line rises by 1.00.")


def test_a_line_that_dips_between_equal_ends_is_not_level() -> None:
    found = verdict(samples(0.5 - 0.4 * HILL))
    assert found.kind is VerdictKind.ONE_BASIN_SLOPING
    assert "between them it falls to 0.1" in found.sentence


def test_a_rise_at_the_tolerance_leaves_open_whether_the_basin_is_level() -> None:
    found = verdict(samples(0.05 * T, noise=0.2))
    assert found.kind is VerdictKind.UNDECIDED
    assert "lie in one basin, but whether it is level is open" in found.to_json()["finding"]


def test_an_interval_without_width_is_none() -> None:
    found = verdict(samples(FLAT, 0), samples(0.2 * T, 0), samples(FLAT, 0))
    assert found.curve is not None
    assert (found.curve.low, found.curve.high) == (0, 0)
    assert "The fitted curve 'curve' has no barrier" in found.sentence
    assert "The line to control has no barrier either (none)" in found.sentence
    assert "stays within 0 nats (95 % interval none; tolerance 0.05)" in found.sentence
    assert "0 to 0" not in found.sentence
    assert "0.000 to 0.000" not in found.sentence


def test_missing_control_is_said() -> None:
    assert "No control was measured" in verdict(samples(FLAT)).sentence
    assert "No control was measured" not in verdict(samples(FLAT), control=samples(HILL)).sentence


def test_control_in_the_same_basin_is_said_to_tell_nothing() -> None:
    found = verdict(samples(FLAT), control=samples(FLAT), control_name="other")
    assert "other lies in the same basin, so this picture cannot tell basins apart" in found.sentence


@pytest.mark.parametrize("direction", [1, -1])
def test_steady_rise_towards_one_end_is_no_barrier_and_not_constant(direction: int) -> None:
    names = ("sgd", "altsdp")[::direction]
    found = verdict(samples((0.04 * T)[::direction]), between=(names[0], names[1]))
    assert found.kind is VerdictKind.LEVEL_VALLEY
    assert found.line.value == 0.0
    assert "The loss rises steadily from" in found.sentence
    assert "at sgd to" in found.sentence
    assert found.sentence.index("at sgd to") < found.sentence.index("at altsdp.")
    assert "steadily" not in verdict(samples(FLAT)).sentence


def test_ends_of_different_height_are_said() -> None:
    assert "The loss is " in verdict(samples(HILL + 0.5 * T)).sentence
    assert "The loss is " not in verdict(samples(HILL + 0.01 * T)).sentence


def test_tolerance_is_stated_and_decides() -> None:
    assert verdict(samples(0.2 * HILL), tolerance=0.3).kind is VerdictKind.LEVEL_VALLEY
    assert "tolerance 0.3)" in verdict(samples(0.2 * HILL), tolerance=0.3).sentence
    assert verdict(samples(0.2 * HILL), tolerance=0.1).kind is VerdictKind.SEPARATE


def test_mean_losses_are_judged_without_an_interval_and_said() -> None:
    found = verdict(list(HILL), control=HILL)
    assert found.kind is VerdictKind.SEPARATE
    assert found.line.low is None
    assert any("no confidence interval" in note for note in found.notes)
    assert found.to_json()["line"] == {
        "barrier": pytest.approx(1.0),
        "low": None,
        "high": None,
        "rise": {"value": pytest.approx(1.0), "low": None, "high": None},
        "ends": {"value": pytest.approx(0.0), "low": None, "high": None},
    }


def test_profiles_are_read_by_split_with_their_test_error() -> None:
    error = np.linspace(0.01, 0.03, 21)
    path = Profile({"train": Split(FLAT, FLAT, samples(FLAT)), "test": Split(HILL, error, samples(HILL))})
    found = verdict(path, path)
    assert found.kind is VerdictKind.LEVEL_VALLEY
    assert found.to_json()["test_error"]["line"] == pytest.approx({"min": 0.01, "max": 0.03, "mean": 0.02})
    assert "Test error along the line changes by 2 points (tolerance 1 point): 1.0 to 3.0 %." in found.sentence
    assert found.test_error_verdict is not None
    assert found.test_error_verdict.kind is VerdictKind.ONE_BASIN_SLOPING
    lenient = verdict(path, path, error_tolerance=0.03)
    assert lenient.to_json()["test_error_verdict"] == {
        "kind": "level valley",
        "split": "test",
        "tolerance": 0.03,
        "line": found.to_json()["test_error_verdict"]["line"],
        "curve": found.to_json()["test_error_verdict"]["curve"],
        "control": None,
    }
    assert verdict(path, split="test").kind is VerdictKind.SEPARATE
    with pytest.raises(ValueError, match="line has no split 'validation'; it has 'train', 'test'"):
        verdict(path, split="validation")


def test_losses_that_overflow_on_the_way_are_a_barrier() -> None:
    blown = HILL.copy()
    blown[5:15] = math.inf
    for losses in (blown, np.repeat(blown[:, None], 50, axis=1)):
        found = verdict(losses)
        assert found.kind is VerdictKind.SEPARATE
        assert "overflows" in found.sentence
        assert found.to_json()["line"]["barrier"] is None
        assert any("infinite" in note for note in found.notes)


def test_a_minimum_without_finite_loss_leaves_it_undecided() -> None:
    blown = FLAT.copy()
    blown[-1] = math.inf
    found = verdict(blown)
    assert found.kind is VerdictKind.UNDECIDED
    assert any("no minimum to compare with" in note for note in found.notes)


def guessing_profile(line: NDArray[np.float64], kept: bool = True, guessing: float = math.log(10)) -> Profile:
    return Profile({"train": Split(line, FLAT, samples(line) if kept else None, guessing)})


@pytest.mark.parametrize("kept", [True, False], ids=["samples", "means"])
def test_networks_that_know_nothing_are_no_minima(kept: bool) -> None:
    """Two networks without training have losses near log 10, and no barrier between them."""
    found = verdict(guessing_profile(2.32 - 0.03 * T, kept), between=("first", "second"))
    assert found.kind is VerdictKind.UNDECIDED
    assert found.line.surely_within(0.05)
    assert "first has a train loss of 2.3" in found.sentence
    assert "no better than guessing (2.30): it is not a minimum, so a flat line says nothing" in found.sentence
    assert "second has a train loss of 2." in found.sentence
    assert sum("better than guessing" in note for note in found.to_json()["notes"]) == 2
    assert "basin" not in found.to_json()["finding"]


def test_one_end_that_knows_nothing_is_enough() -> None:
    """All weights pruned: the loss climbs steadily to that of guessing, without a barrier."""
    found = verdict(guessing_profile(0.01 + 2.24 * T), between=("sgd", "pruned"))
    assert found.kind is VerdictKind.UNDECIDED
    assert list(found.guessing_networks) == ["pruned"]
    assert found.to_json()["finding"].startswith("Undecided. pruned has a train loss of 2.30, hardly")
    assert "sgd has" not in found.sentence
    assert verdict(guessing_profile(0.01 + 2.24 * T + HILL)).kind is VerdictKind.UNDECIDED
    aligned = verdict(guessing_profile(0.01 + 2.24 * T + HILL), aligned=guessing_profile(0.01 + 2.24 * T))
    assert aligned.to_json()["alignment"]["kind"] == "undecided up to permutation"
    assert "permutation" not in aligned.sentence


def test_a_network_that_has_learnt_something_is_judged() -> None:
    assert verdict(guessing_profile(2.0 + FLAT)).kind is VerdictKind.LEVEL_VALLEY
    assert verdict(guessing_profile(2.0 + FLAT), tolerance=0.4).kind is VerdictKind.UNDECIDED
    assert verdict(guessing_profile(0.5 + FLAT, guessing=math.log(2))).kind is VerdictKind.LEVEL_VALLEY
    assert verdict(samples(2.5 + FLAT)).kind is VerdictKind.LEVEL_VALLEY, "bare losses do not tell the loss of guessing"


def test_a_control_that_knows_nothing_is_no_control() -> None:
    found = verdict(guessing_profile(0.1 + FLAT), control=guessing_profile(0.1 + 2.4 * T + HILL))
    assert found.kind is VerdictKind.LEVEL_VALLEY
    assert "control has a train loss of 2.55, no better than guessing (2.30)" in found.sentence
    assert "it is not a minimum, so it is not a valid control." in found.sentence
    assert "For comparison" not in found.sentence


@pytest.mark.parametrize(("counts", "expected"), [([5] * 10, math.log(10)), ([30, 10], 0.5623351446), ([4, 0], 0.0)])
def test_guessing_is_the_entropy_of_the_classes(counts: list[int], expected: float) -> None:
    assert guessing_loss(counts) == pytest.approx(expected)


def strict(found: Verdict) -> dict[str, object]:
    """A round trip through JSON that knows no NaN and no infinity."""
    content: dict[str, object] = json.loads(json.dumps(found.to_json(), allow_nan=False))
    return content


def test_json_has_the_agreed_keys_and_survives_strict_json() -> None:
    sharp = {"sgd": {"radius": 0.25, "rise": math.inf}}
    found = verdict(samples(HILL), samples(FLAT), samples(HILL), samples(FLAT), sharpness=sharp, curve_name="valley")
    content = strict(found)
    assert set(content) == {
        *(
            "kind",
            "finding",
            "sentence",
            "tolerance",
            "split",
            "between",
            "line",
            "curve",
            "control",
            "sharpness",
            "test_error",
            "test_error_verdict",
        ),
        *("level", "bootstrap", "notes"),
    }
    assert content["kind"] == "joined by a curve only"
    assert content["between"] == ["start", "end"]
    assert isinstance(content["curve"], dict)
    assert set(content["curve"]) == {"name", "barrier", "low", "high", "rise", "ends"}
    assert isinstance(content["control"], dict)
    assert set(content["control"]) == {"name", "line", "curve"}
    assert content["sharpness"] == {"sgd": {"radius": 0.25, "rise": None}}
    bare = strict(verdict(samples(FLAT)))
    assert bare["curve"] is None
    assert bare["control"] is None


def test_equal_seeds_give_equal_verdicts() -> None:
    path = samples(0.1 * HILL, 0.3)
    assert verdict(path, seed=1) == verdict(path, seed=1)
    assert verdict(path, seed=1).line != verdict(path, seed=2).line


def test_bad_inputs_are_named() -> None:
    with pytest.raises(ValueError, match="tolerance is 0"):
        verdict(FLAT, tolerance=0)
    with pytest.raises(ValueError, match="level is 95"):
        verdict(FLAT, level=95)
    with pytest.raises(ValueError, match="resamples is 10"):
        verdict(FLAT, resamples=10)
    with pytest.raises(ValueError, match=r"curve has losses of shape \(1,\)"):
        verdict(FLAT, [0.0])
    with pytest.raises(ValueError, match="curve has losses that are NaN"):
        verdict(FLAT, np.full(5, np.nan))
    with pytest.raises(ValueError, match=r"losses of \[300, 400\] samples"):
        verdict(samples(FLAT), samples(FLAT, count=300))
    with pytest.raises(ValueError, match="without control"):
        verdict(FLAT, control_curve=FLAT)


def test_verdict_does_not_import_torch() -> None:
    root = Path(__file__).resolve().parents[3]
    code = "import sys; import valleyscope.landscape.analysis.verdict; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def losses_along(model: nn.Module, path: Curve, x: Tensor, y: Tensor) -> NDArray[np.float32]:
    rows = []
    with torch.no_grad():
        for t in T:
            vector_to_parameters(path.point(t), model.parameters())
            rows.append(F.cross_entropy(model(x), y, reduction="none").numpy())
    return np.stack(rows)


def test_permuted_copy_of_a_network_is_the_same_function_in_another_basin() -> None:
    """Swapping hidden units changes nothing but the place in weight space; the straight line knows."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
    x = torch.randn(300, 2)
    y = (torch.atan2(x[:, 1], x[:, 0]) / math.pi * 1.5 + 1.5).long().clamp(0, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for _ in range(300):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    original = flatten(model)
    order = torch.randperm(16)
    state = model.state_dict()
    permuted = flatten(
        model,
        {
            "0.weight": state["0.weight"][order],
            "0.bias": state["0.bias"][order],
            "2.weight": state["2.weight"][:, order],
            "2.bias": state["2.bias"],
        },
    )
    losses = losses_along(model, line(original, permuted), x, y)
    np.testing.assert_allclose(losses[0], losses[-1], atol=1e-4)
    assert verdict(losses, between=("original", "permuted")).kind is VerdictKind.SEPARATE
    assert verdict(losses_along(model, line(original, original + 1e-3), x, y)).kind is VerdictKind.LEVEL_VALLEY
