"""The plan of an experiment is complete and ordered."""

from __future__ import annotations

import numpy as np

from valleyscope.app.experiments.cost import estimate
from valleyscope.app.experiments.plan import Kind, PlanState, plan, plane_tiles
from valleyscope.app.experiments.recipes import DEMO, load_recipe, recipe_names
from valleyscope.app.experiments.spec import parse_spec
from valleyscope.app.experiments.task_files import is_input


def test_every_need_is_an_earlier_task() -> None:
    for name in recipe_names():
        seen: set[str] = set()
        for task in plan(load_recipe(name)):
            assert {*task.needs, *task.after} <= seen, task
            assert task.id not in seen
            seen.add(task.id)


def test_the_tiles_of_a_plane_cover_each_grid_point_once() -> None:
    spec = load_recipe(DEMO)
    for name, plane in spec.all_planes.items():
        counts = np.zeros((plane.resolution, plane.resolution), dtype=int)
        for tile in plane_tiles(spec, name):
            np.add.at(counts, (tile.rows, tile.columns), 1)
        assert (counts == 1).all()


def test_coarse_tiles_of_all_planes_come_before_fine_ones() -> None:
    spec = load_recipe(DEMO)
    tasks = [task for task in plan(spec) if task.kind is Kind.SURFACE]
    levels = [plane_tiles(spec, task.subject)[task.index].level for task in sorted(tasks, key=lambda t: t.priority)]
    assert levels == sorted(levels)
    first = [
        plane_tiles(spec, "valley")[task.index] for task in tasks if task.subject == "valley" and task.priority == 40
    ]
    assert sum(len(tile.rows) for tile in first) == 81


def test_the_verdict_waits_for_all_its_inputs() -> None:
    spec = parse_spec({"minima": {"a": {}, "b": {}, "c": {}}, "planes": {}})
    verdict = plan(spec)[-1]
    assert verdict.kind is Kind.VERDICT
    assert verdict.needs == ("line:a-b",)
    assert set(verdict.after) == {
        "line:a-b", "line:a-c", "line:b-c", "curve:valley", "curve:contrast",
        "sharpness:a", "sharpness:b", "sharpness:c",
    }  # fmt: skip


def test_what_can_be_computed_without_a_failed_minimum_is_ready() -> None:
    spec = parse_spec(
        {
            "minima": {"a": {}, "b": {}, "c": {}},
            "planes": {"valley": {"through": ["a", "b", "valley.bend"]}, "basins": {"through": ["a", "b", "c"]}},
        }
    )
    state = PlanState(plan(spec), done={"train:a", "train:b"})
    state.failed["train:c"] = "why"
    assert {name for name in state.blocked if not name.startswith("surface:basins")} == {
        "train:c", "fit:contrast", "frame:basins", "line:a-c", "line:b-c", "curve:contrast", "sharpness:c",
    }  # fmt: skip
    assert "frame:valley" not in {task.id for task in state.ready()}
    state.done.add("fit:valley")
    assert "frame:valley" in {task.id for task in state.ready()}
    assert "frame:valley" not in {task.id for task in state.ready({"frame:valley"})}
    state.done |= {task.id for task in state.tasks.values() if task.kind is not Kind.VERDICT} - state.blocked
    assert [task.id for task in state.ready()] == ["verdict:experiment"]


def test_a_single_minimum_has_no_verdict() -> None:
    assert all(task.kind is not Kind.VERDICT for task in plan(parse_spec({"minima": {"a": {}}})))


def test_an_expensive_network_has_small_tiles() -> None:
    minima = {"minima": {"a": {}}}
    small = plane_tiles(parse_spec(minima), "around")
    large = plane_tiles(parse_spec(minima | {"dataset": "cifar10", "model": {"name": "vgg16"}}), "around")
    assert len(large) > len(small)


def test_a_minimum_that_starts_from_another_waits_for_it() -> None:
    spec = parse_spec({"minima": {"small": {"method": "one-shot", "of": "sgd", "sparsity": 0.6}, "sgd": {}}})
    tasks = {task.id: task for task in plan(spec)}
    assert tasks["train:small"].needs == ("train:sgd",)
    assert tasks["train:sgd"].needs == ()
    assert is_input(spec, tasks["train:small"], "sgd.safetensors")
    assert not is_input(spec, tasks["train:sgd"], "small.safetensors")
    assert list(tasks).index("train:sgd") < list(tasks).index("train:small")
    state = PlanState(plan(spec))
    state.failed["train:sgd"] = "why"
    assert "train:small" in state.blocked


def test_every_two_minima_get_their_line_and_the_estimate_counts_them() -> None:
    spec = parse_spec({"minima": {f"run{number}": {"seed": number} for number in range(24)}})
    lines = [task for task in plan(spec) if task.kind is Kind.LINE]
    assert len(lines) == len({task.id for task in lines}) == 24 * 23 // 2
    few = parse_spec({"minima": {"a": {}, "b": {}}})
    found = estimate(spec)
    assert (found.lines, estimate(few).lines) == (276, 1)
    assert found.stages["profiles"].multiply_adds > 50 * estimate(few).stages["profiles"].multiply_adds
