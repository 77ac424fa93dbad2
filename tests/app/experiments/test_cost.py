"""The cost estimate follows the stated rule and is fast; the reach of a threshold is exact."""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.waiting import until
from valleyscope.app.api.submission_limits import SubmissionLimits, TooExpensive
from valleyscope.app.experiments.accumulated_threshold import accumulated
from valleyscope.app.experiments.cost import CORE, GPU, Work, estimate
from valleyscope.app.experiments.json_subprocess import JsonSubprocess, SubprocessFailed
from valleyscope.app.experiments.model_info import BadModel, ModelInfo, ModelInfoCache
from valleyscope.app.experiments.recipes import load_recipe
from valleyscope.app.experiments.spec import Spec, parse_spec
from valleyscope.app.experiments.spec_parts import Model
from valleyscope.app.settings import Settings
from valleyscope.training.settings import Training
from valleyscope.training.thresholds import Mode

INSPECTOR = "valleyscope.app.experiments.model_inspector"
SCHEDULES: list[dict[str, Any]] = [
    {"kind": "constant"},
    {"kind": "halving", "every": 3},
    {"kind": "piecewise"},
    {"kind": "milestones", "at": [2, 5], "factors": [0.2, 0.4]},
]


@given(
    epochs=st.integers(1, 12),
    steps=st.integers(1, 200),
    mu=st.floats(0, 3),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    mode=st.sampled_from(get_args(Mode)),
    schedule=st.sampled_from(SCHEDULES),
)
@settings(max_examples=150, deadline=None)
def test_the_sum_over_epochs_is_the_sum_over_steps(
    epochs: int, steps: int, mu: float, momentum: float, mode: Mode, schedule: dict[str, Any]
) -> None:
    run = Training(optimizer="altsdp", epochs=epochs, mu=mu, momentum=momentum, mode=mode, schedule=schedule, c=1e-3)
    assert 1e-3 * accumulated(run, steps) == pytest.approx(run.reach(steps), rel=1e-9)


def test_the_reach_of_a_long_run_is_computed_quickly() -> None:
    run = Training(optimizer="altsdp", epochs=2000, c=1e-6, mu=0.51)
    start = time.process_time()
    assert math.isfinite(accumulated(run, 60_000))
    assert time.process_time() - start < 0.5


def test_a_reach_that_overflows_is_infinite() -> None:
    run = Training(optimizer="altsdp", lr=1000, momentum=1 - 1e-16, mu=10, epochs=2000, c=1.0)
    assert accumulated(run, 10**12) == math.inf


def test_the_cost_is_what_the_rule_says() -> None:
    spec = parse_spec(
        {
            "training": {"epochs": 10, "batch_size": 100},
            "minima": {"a": {}, "b": {"epochs": 20}},
            "curves": {"v": {"from": "a", "to": "b", "epochs": 5}},
            "planes": {"p": {"around": "a", "resolution": 11}},
            "points": 7,
        }
    )
    model_info = ModelInfo(100, 1000, {"weight": ((10,), "F32")}, {})
    cost = estimate(spec, model_info)
    train, test = 1437, 360
    assert cost.stages["minima"] == Work(1000 * 30 * (4 * train + test), 30 * 15)
    assert cost.stages["curves"] == Work(1000 * 3 * train * 5, 5 * 15)
    assert cost.stages["surfaces"] == Work(1000 * 121 * (train + test))
    assert cost.stages["profiles"] == Work(1000 * (train + test) * (7 * 2 + 21 * 2))
    assert cost.gpu_hours == pytest.approx(GPU.hours(cost.work))
    assert cost.core_hours == pytest.approx(
        (cost.work.multiply_adds / CORE.multiply_adds + cost.work.steps * CORE.step) / 3600
    )


def test_population_statistics_cost_a_pass_over_the_training_set() -> None:
    spec = load_recipe("resnet56-cifar10")
    frozen = Spec.model_validate(spec.to_json() | {"batch_norm": "running"})
    surfaces = [estimate(found).stages["surfaces"].multiply_adds for found in (spec, frozen)]
    assert surfaces[0] / surfaces[1] == pytest.approx(1.5)


def test_a_checkpoint_costs_no_training() -> None:
    trained = parse_spec({"minima": {"a": {}, "b": {}}})
    given_ = parse_spec({"minima": {"a": {}, "b": {"checkpoint": "x"}}})
    assert estimate(given_).gpu_hours < estimate(trained).gpu_hours


def test_a_network_is_inspected_once_and_its_info_agrees_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model_info_cache = ModelInfoCache(None, 1_000_000)
    info = model_info_cache.inspect(Model(name="cnn"), "digits")
    assert (info.parameters, info.multiply_adds) == (22_602, 100_608)
    assert info.tensors["conv1.weight"] == ((16, 1, 3, 3), "F32")
    smallest, median = info.norms[("filter", True)]
    assert 0.3 < smallest <= median < 1
    with monkeypatch.context() as patched:
        patched.setattr(JsonSubprocess, "request", lambda *_: pytest.fail("a cached network is inspected again"))
        assert model_info_cache.inspect(Model(name="cnn"), "digits") is info
    with pytest.raises(BadModel, match=r"VALLEY_MAX_PARAMETERS\) is 1,000,000"):
        model_info_cache.inspect(Model(name="mlp", hidden=[10_000, 10_000]), "digits")
    model_info_cache.close()


def test_a_custom_network_may_depend_on_values() -> None:
    model_info_cache = ModelInfoCache(None, 10**6)
    info = model_info_cache.inspect(Model(name="tests.app.plugins:choosy"), "digits")
    assert (info.parameters, info.multiply_adds) == (650, 640)
    model_info_cache.close()


def test_one_subprocess_answers_all_requests_and_is_replaced_when_it_dies() -> None:
    inspector = JsonSubprocess(INSPECTOR)
    request = {
        "model": {"name": "mlp", "hidden": [3]},
        "dataset": "digits",
        "data_root": None,
        "max_parameters": 10**6,
    }
    try:
        inspector.prepare()
        first = inspector.pid
        assert inspector.request(request, 120)["parameters"] == 64 * 3 + 3 + 3 * 10 + 10
        assert "hidden" in inspector.request({**request, "model": {"name": "mlp", "hidden": "x"}}, 120)["error"]
        assert inspector.pid == first
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(SubprocessFailed, match="no answer after"):
            inspector.request(request, 0.1)
        assert inspector.pid is None
        assert inspector.request(request, 120)["parameters"] == 235
    finally:
        inspector.close()
    assert inspector.pid is None


def test_an_idle_subprocess_ends() -> None:
    inspector = JsonSubprocess(INSPECTOR, idle_seconds=0.1)
    inspector.prepare()
    until(lambda: inspector.pid is None)


def test_an_expensive_spec_is_refused_unless_forced() -> None:
    limits = Settings.load(max_gpu_hours=1.0)
    submission_limits = SubmissionLimits(limits, ModelInfoCache(None, 10**9), lambda _: None)
    spec = load_recipe("vgg16-cifar10-c5e-7-mu51")
    with pytest.raises(TooExpensive, match="force"):
        submission_limits.check(spec)
    assert submission_limits.check(spec, force=True).gpu_hours > 1
    assert submission_limits.check(load_recipe("digits")).gpu_hours < 0.1


def test_the_time_on_workers_is_bounded_by_their_number_and_by_the_longest_network() -> None:
    cost = estimate(load_recipe("digits"))
    alone = cost.wall_hours([CORE])
    assert alone == pytest.approx(cost.core_hours)
    assert cost.wall_hours([GPU]) == pytest.approx(cost.gpu_hours)
    assert cost.wall_hours([]) is None
    longest = max(CORE.hours(piece) for piece in cost.pieces["minima"])
    for count in (2, 3, 100):
        wall = cost.wall_hours([CORE] * count)
        assert wall is not None
        assert alone is not None
        assert max(alone / count, longest) <= wall < alone


def test_a_slow_worker_beside_a_fast_one_does_not_make_it_slower() -> None:
    cost = estimate(load_recipe("vgg16bn-cifar10"))
    fast, mixed = cost.wall_hours([GPU]), cost.wall_hours([CORE, GPU])
    assert fast is not None
    assert mixed is not None
    assert mixed <= fast
