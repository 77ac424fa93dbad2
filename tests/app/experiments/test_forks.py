"""Forks in a spec: what they take from their trunk, how a sweep makes them, and which are refused before any work."""

from __future__ import annotations

from typing import Any

import pytest

from valleyscope.app.experiments.cost import estimate
from valleyscope.app.experiments.plan import Kind, plan
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.app.experiments.task_files import is_input, is_output

SWEEP: dict[str, Any] = {
    "seed": 4,
    "training": {"epochs": 40, "lr": 0.2},
    "forks": {"epochs": [0, 5, 20], "each": [{}, {"optimizer": "altsdp", "target": 1.6}], "seeds": 2},
}


def spec_with(**minima: dict[str, Any]) -> Spec:
    return parse_spec({"training": {"epochs": 40}, "minima": {"sgd": {"lr": 0.3, "seed": 2}, **minima}})


def test_a_fork_has_the_settings_of_its_trunk_but_for_its_own() -> None:
    spec = spec_with(
        other={"fork": {"from": "sgd", "epoch": 5}, "seed": 7},
        late={"fork": {"from": "sgd", "epoch": 9}, "optimizer": "altsdp", "target": 1.0},
        later={"fork": {"from": "late", "epoch": 30}, "target": 2.0},
    )
    other, late, later = (spec.minimum(name) for name in ("other", "late", "later"))
    assert (other.lr, other.initialisation, other.order, other.optimizer) == (0.3, 2, 7, "sgd")
    assert (late.lr, late.initialisation, late.order, late.optimizer) == (0.3, 2, 2, "altsdp")
    assert (later.optimizer, later.target, later.first_epoch, later.own_epochs) == ("altsdp", 2.0, 30, 10)
    assert spec.sources("later") == ["late", "sgd"]
    assert parse_spec(spec.to_json()) == spec
    assert spec.to_json()["minima"]["other"]["fork"] == {"from": "sgd", "epoch": 5}


def test_a_seed_of_its_own_is_another_order_even_if_the_trunk_names_one() -> None:
    minima = {"sgd": {"order_seed": 3}, "fork": {"fork": {"from": "sgd", "epoch": 1}, "seed": 7}}
    assert parse_spec({"minima": minima}).minimum("fork").order == 7


def test_a_fork_waits_for_its_trunk_and_reads_the_state_that_it_kept() -> None:
    spec = spec_with(early={"fork": {"from": "sgd", "epoch": 0}}, late={"fork": {"from": "sgd", "epoch": 9}})
    tasks = {task.id: task for task in plan(spec)}
    assert tasks["train:late"].needs == ("train:sgd",)
    assert tasks["train:early"].needs == ()
    state = "work/sgd/fork-000009.pt"
    assert is_output(tasks["train:sgd"], state)
    assert is_input(spec, tasks["train:late"], state)
    assert not is_input(spec, tasks["train:late"], "sgd.safetensors")


def test_a_fork_costs_the_epochs_that_it_trains_itself() -> None:
    whole, shared = spec_with(b={"seed": 3}), spec_with(b={"fork": {"from": "sgd", "epoch": 30}})
    one, two = (estimate(spec).pieces["minima"][1] for spec in (whole, shared))
    assert two.steps * 4 == one.steps
    assert two.multiply_adds * 4 == pytest.approx(one.multiply_adds)


def test_a_sweep_makes_forks_of_each_kind_for_each_epoch_and_seed() -> None:
    spec = parse_spec(SWEEP)
    made = [name for name in spec.minima if "_e" in name]
    assert made == [f"{kind}_e{epoch}{s}" for s in ("", "_s2") for kind in ("sgd", "altsdp") for epoch in (0, 5, 20)]
    fork = spec.minimum("altsdp_e5_s2")
    assert fork.fork is not None
    assert (fork.fork.start, fork.fork.epoch, fork.lr, fork.target) == ("sgd_s2", 5, 0.2, 1.6)
    assert (fork.initialisation, fork.order, spec.minimum("sgd_s2").order) == (5, 1005, 5)
    assert (spec.between, spec.control) == (("sgd", "altsdp_e20"), "sgd_s2")
    assert parse_spec(spec.to_json()) == spec


def test_a_sweep_measures_the_lines_from_each_trunk_to_its_forks() -> None:
    lines = parse_spec(SWEEP).lines
    assert {("sgd", "sgd_s2"), ("sgd", "sgd_e0"), ("sgd_s2", "altsdp_e20_s2")} <= set(lines)
    assert not any("sgd_e" in start for start, _ in lines)
    assert len(lines) == 2 * 6 + 2  # the judged fork has a line to the control, too
    assert len([task for task in plan(parse_spec(SWEEP)) if task.kind is Kind.LINE]) == len(lines)


def test_the_order_of_the_trunk_is_kept_where_the_sweep_says_so() -> None:
    each = [{"name": "late", "optimizer": "altsdp", "order": "same"}]
    spec = parse_spec(SWEEP | {"forks": {"epochs": [5], "each": each}})
    assert spec.minimum("late_e5").order == spec.minimum("sgd").order


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"minima": {"a": {"checkpoint": "x"}, "b": {"fork": {"from": "a", "epoch": 1}}}},
         r"minima.b.fork.from: 'a' is a checkpoint, which has no epochs to fork from"),
        ({"minima": {"a": {"fork": {"from": "a", "epoch": 1}}}}, r"minima.a.fork.from: 'a' would fork from itself"),
        ({"minima": {"a": {"fork": {"from": "b", "epoch": 1}}, "b": {"fork": {"from": "a", "epoch": 1}}}},
         r"minima.b.fork.from: 'b' would fork from itself"),
        ({"minima": {"a": {"fork": {"from": "c", "epoch": 1}}}}, r"minima.a.fork.from: 'c' is not a minimum"),
        ({"minima": {"a": {}, "b": {"epochs": 200, "fork": {"from": "a", "epoch": 150}}}},
         r"minima.b.fork.epoch: epoch 150 is beyond 'a', which is trained for 120 epochs"),
        ({"minima": {"a": {}, "b": {"fork": {"from": "a", "epoch": 9}}, "c": {"fork": {"from": "b", "epoch": 5}}}},
         r"minima.c.fork.epoch: 'b' itself starts at epoch 9 of 'a'"),
        ({"minima": {"a": {}, "b": {"init_seed": 1, "fork": {"from": "a", "epoch": 9}}}}, r"minima.b.init_seed"),
        ({"minima": {"a": {}}, "training": {"fork": {"from": "a", "epoch": 1}}}, r"training.fork"),
        ({"forks": {"epochs": [0, 150]}, "training": {"epochs": 100}}, r"forks.epochs.1: epoch 150 is beyond 'sgd'"),
        ({"forks": {"epochs": [0, 40]}, "training": {"epochs": 40}}, r"forks.epochs.1: fork.epoch=40 leaves nothing"),
        ({"forks": {"epochs": [5, 5]}}, r"forks.epochs: \[5, 5\] must be ascending"),
        ({"forks": {"epochs": [1], "of": "x"}}, r"forks.of: 'x' is not a minimum"),
        ({"forks": {"epochs": [1], "each": [{}, {"lr": 1.0}]}}, r"two entries are called 'sgd'"),
        ({"forks": {"epochs": [1], "each": [{"fork": {}}]}}, r"'sgd' has fork, which the sweep sets"),
        ({"forks": {"epochs": [1]}, "methods": ["sfp"], "sparsities": [0.5]}, "forks and methods both make minima"),
        ({"forks": {"epochs": [1, 2]}, "minima": {"sgd": {}, "sgd_e1": {}}}, "forks make sgd_e1: remove it"),
    ],
)  # fmt: skip
def test_wrong_forks_are_named_before_work_starts(content: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        parse_spec(content)
