"""The estimate: by the stated rule, quick whatever is asked, and exact where it claims to be."""

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
from valleyscope.app.experiments.estimate import CORE, GPU, Work, accumulated, estimate
from valleyscope.app.experiments.json_subprocess import JsonSubprocess, SubprocessFailed
from valleyscope.app.experiments.model_info import BadModel, ModelInfo, ModelInfoCache
from valleyscope.app.experiments.recipes import load_recipe
from valleyscope.app.experiments.spec import Model, Spec, parse_spec
from valleyscope.app.settings import Settings
from valleyscope.training.settings import Training
from valleyscope.training.thresholds import Mode

DRAWING = "valleyscope.app.experiments.model_inspector"
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
    assert accumulated(run, steps, 1e-3) == pytest.approx(run.reach(steps), rel=1e-9)


def test_a_long_run_of_small_steps_is_estimated_at_once() -> None:
    run = Training(optimizer="altsdp", epochs=2000, c=1e-6, mu=0.51)
    start = time.process_time()
    assert math.isfinite(accumulated(run, 60_000, 1e-6))
    assert time.process_time() - start < 0.5


def test_a_reach_that_overflows_is_infinite() -> None:
    run = Training(optimizer="altsdp", lr=1000, momentum=1 - 1e-16, mu=10, epochs=2000, c=1.0)
    assert accumulated(run, 10**12, 1.0) == math.inf


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


def test_statistics_of_the_population_cost_a_pass_over_the_training_set() -> None:
    spec = load_recipe("resnet56-cifar10")
    frozen = Spec.model_validate(spec.to_json() | {"batch_norm": "running"})
    surfaces = [estimate(found).stages["surfaces"].multiply_adds for found in (spec, frozen)]
    assert surfaces[0] / surfaces[1] == pytest.approx(1.5)


def test_a_checkpoint_costs_no_training() -> None:
    trained = parse_spec({"minima": {"a": {}, "b": {}}})
    given_ = parse_spec({"minima": {"a": {}, "b": {"checkpoint": "x"}}})
    assert estimate(given_).gpu_hours < estimate(trained).gpu_hours


def test_blueprints_are_drawn_once_and_agree_with_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    model_info_cache = ModelInfoCache(None, 1_000_000)
    drawn = model_info_cache.draw(Model(name="cnn"), "digits")
    assert (drawn.parameters, drawn.multiply_adds) == (22_602, 100_608)
    assert drawn.tensors["conv1.weight"] == ((16, 1, 3, 3), "F32")
    norms = drawn.norms[("filter", True)]
    assert 0.3 < norms.smallest <= norms.median < 1
    with monkeypatch.context() as silence:
        silence.setattr(JsonSubprocess, "request", lambda *_: pytest.fail("what is drawn already is asked for again"))
        assert model_info_cache.draw(Model(name="cnn"), "digits") is drawn
    with pytest.raises(BadModel, match="1,000,000 are allowed"):
        model_info_cache.draw(Model(name="mlp", hidden=[10_000, 10_000]), "digits")
    model_info_cache.close()


def test_an_operators_own_network_may_look_at_values() -> None:
    model_info_cache = ModelInfoCache(None, 10**6)
    drawn = model_info_cache.draw(Model(name="tests.app.plugins:choosy"), "digits")
    assert (drawn.parameters, drawn.multiply_adds) == (650, 640)
    model_info_cache.close()


def test_one_process_answers_all_questions_and_is_replaced_when_it_dies() -> None:
    clerk = JsonSubprocess(DRAWING)
    question = {"model": {"name": "mlp", "hidden": [3]}, "dataset": "digits", "data_root": None, "largest": 10**6}
    try:
        clerk.prepare()
        first = clerk.pid
        assert clerk.request(question, 120)["parameters"] == 64 * 3 + 3 + 3 * 10 + 10
        assert "hidden" in clerk.request({**question, "model": {"name": "mlp", "hidden": "x"}}, 120)["error"]
        assert clerk.pid == first
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(SubprocessFailed, match="takes more than"):
            clerk.request(question, 0.1)
        assert clerk.pid is None
        assert clerk.request(question, 120)["parameters"] == 235
    finally:
        clerk.close()
    assert clerk.pid is None


def test_a_process_without_questions_gives_its_memory_back() -> None:
    clerk = JsonSubprocess(DRAWING, rest_seconds=0.1)
    clerk.prepare()
    until(lambda: clerk.pid is None)


def test_admission_refuses_what_costs_too_much_unless_forced() -> None:
    limits = Settings.load(max_gpu_hours=1.0)
    submission_limits = SubmissionLimits(limits, ModelInfoCache(None, 10**9), lambda _: None)
    spec = load_recipe("vgg16-cifar10-c5e-7-mu51")
    with pytest.raises(TooExpensive, match="force"):
        submission_limits.check(spec)
    assert submission_limits.check(spec, force=True).gpu_hours > 1
    assert submission_limits.check(load_recipe("digits")).gpu_hours < 0.1
