"""The spec of an experiment: what it accepts, how minima inherit, and how it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from valleyscope.app.experiments.recipes import DEMO, describe_recipe, load_recipe, recipe_names
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec, read_spec

TWO: dict[str, Any] = {"minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "c": 1e-4}}}


def test_a_spec_survives_a_round_trip_through_json() -> None:
    for name in recipe_names():
        spec = load_recipe(name)
        assert parse_spec(json.loads(json.dumps(spec.to_json()))) == spec


def test_every_recipe_has_a_description() -> None:
    assert DEMO in recipe_names()
    assert all(len(describe_recipe(name)) > 20 for name in recipe_names())


def test_a_minimum_inherits_from_training_and_seed() -> None:
    spec = parse_spec(
        {
            "seed": 7,
            "training": {"epochs": 3, "lr": 0.5},
            "minima": {"a": {}, "b": {"lr": 0.25, "seed": 1}, "c": {"checkpoint": "c.safetensors"}},
        }
    )
    a, b = spec.minimum("a"), spec.minimum("b")
    assert (a.epochs, a.lr, a.seed) == (3, 0.5, 7)
    assert (b.epochs, b.lr, b.seed) == (3, 0.25, 1)
    assert spec.minimum("c").checkpoint == "c.safetensors"


def test_a_minimum_may_replace_the_c_of_training_by_a_target() -> None:
    spec = parse_spec({"training": {"c": 1e-6}, "minima": {"a": {"optimizer": "altsdp", "target": 1.6}}})
    assert spec.minimum("a").c is None
    assert spec.minimum("a").target == 1.6


def test_minima_alone_get_curves_and_planes_that_compare_them() -> None:
    spec = parse_spec({"minima": {"sgd": {}, "altsdp": {}, "control": {}}})
    assert [(curve.start, curve.end) for curve in spec.all_curves.values()] == [("sgd", "altsdp"), ("sgd", "control")]
    assert [plane.through for plane in spec.all_planes.values()] == [
        ("sgd", "altsdp", "valley.bend"),
        ("sgd", "altsdp", "control"),
    ]
    assert (spec.between, spec.control) == (("sgd", "altsdp"), "control")
    assert spec.lines == [("sgd", "altsdp"), ("sgd", "control"), ("altsdp", "control")]


def test_default_curves_and_planes_follow_the_judged_pair_and_its_control() -> None:
    minima = {"sgd": {}, "altsdp": {}, "other": {}, "far": {}}
    spec = parse_spec({"minima": minima, "verdict": {"control": "far"}})
    assert (spec.between, spec.control) == (("sgd", "altsdp"), "far")
    assert [(curve.start, curve.end) for curve in spec.all_curves.values()] == [("sgd", "altsdp"), ("sgd", "far")]
    assert spec.all_planes["basins"].through == ("sgd", "altsdp", "far")
    spec = parse_spec({"minima": minima, "verdict": {"between": ["other", "far"]}})
    assert [(curve.start, curve.end) for curve in spec.all_curves.values()] == [("other", "far"), ("other", "sgd")]
    assert [plane.through for plane in spec.all_planes.values()] == [
        ("other", "far", "valley.bend"),
        ("other", "far", "sgd"),
    ]


def test_a_control_is_not_one_of_the_judged_pair_by_default() -> None:
    spec = parse_spec({"minima": {"a": {}, "b": {}, "c": {}}, "verdict": {"control": "b"}})
    assert (spec.between, spec.control) == (("a", "c"), "b")
    assert spec.all_planes["basins"].through == ("a", "c", "b")


def test_a_network_may_be_a_plain_name() -> None:
    spec = parse_spec(TWO | {"model": "lenet"})
    assert spec == parse_spec(TWO | {"model": {"name": "lenet"}})
    assert spec.to_json()["model"] == {"name": "lenet"}


def test_a_resolved_spec_says_the_same_whether_defaults_are_given_or_not() -> None:
    given = {
        "model": {"name": "cnn", "channels": [16, 32]},
        "training": {"lr": 0.1},
        "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 30}},
        "verdict": {"between": ["sgd", "altsdp"]},
    }
    resolved = parse_spec(TWO | given).resolved()
    assert resolved == parse_spec(TWO).resolved()
    assert resolved["minima"]["altsdp"]["c"] == 1e-4
    assert resolved["planes"]["valley"]["through"] == ["sgd", "altsdp", "valley.bend"]
    assert resolved["verdict"]["between"] == ["sgd", "altsdp"]
    assert parse_spec(TWO | {"seed": 3}).resolved()["minima"]["sgd"]["seed"] == 3


def test_one_minimum_alone_gets_a_plane_around_it_and_no_verdict() -> None:
    spec = parse_spec({"minima": {"only": {}}})
    assert spec.all_planes["around"].around == "only"
    assert spec.between is None


def test_empty_curves_and_planes_mean_none() -> None:
    spec = parse_spec(TWO | {"curves": {}, "planes": {}})
    assert spec.all_curves == {}
    assert spec.all_planes == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, ["minima is missing"]),
        ([], ["object", "list"]),
        ({"minima": {}}, ["minima"]),
        ({"minima": {"a": {"lr": -1}}}, ["minima.a.lr", "-1", "greater than 0"]),
        ({"minima": {"a": {"lr": float("nan")}}}, ["minima.a.lr", "finite"]),
        ({"minima": {"a": {"c": -1e-6}}}, ["minima.a.c", "-1e-06"]),
        ({"minima": {"a": {"c": float("inf")}}}, ["minima.a.c", "finite"]),
        ({"minima": {"a": {"mu": -0.5}}}, ["minima.a.mu", "-0.5"]),
        ({"minima": {"a": {"mu": "nan"}}}, ["minima.a.mu", "finite"]),
        ({"minima": {"a": {"optimizer": "adam"}}}, ["minima.a.optimizer", "adam", "altsdp"]),
        ({"minima": {"a": {"structure": "row"}}}, ["minima.a.structure", "row", "filter"]),
        ({"minima": {"a": {"mode": "primal"}}}, ["minima.a.mode", "primal", "prox"]),
        ({"minima": {"a": {"c": 1, "target": 1}}}, ["c=1", "target=1"]),
        ({"minima": {"a": {"epochs": 0}}}, ["minima.a.epochs", "0"]),
        ({"minima": {"a": {"momentum": 1}}}, ["minima.a.momentum", "1"]),
        ({"minima": {"a": {"schedule": {"kind": "cosine"}}}}, ["minima.a.schedule", "cosine", "halving"]),
        ({"minima": {"a": {"checkpoint": "x", "lr": 1}}}, ["checkpoint", "lr"]),
        ({"minima": {"a/b": {}}}, ["a/b"]),
        ({"minima": {"a": {}}, "model": {"name": "alexnet"}}, ["alexnet", "cnn"]),
        ({"minima": {"a": {}}, "model": {"name": "cnn", "width": 3}}, ["width", "channels"]),
        ({"minima": {"a": {}}, "colour": 1}, ["colour", "unknown field"]),
        ({"minima": {"a": {}}, "training": {"colour": 1}}, ["training.colour", "unknown field"]),
        ({"minima": {"a": {}}, "splits": ["valid"]}, ["splits", "valid"]),
        ({"minima": {"a": {}}, "splits": ["test"]}, ["splits", "train"]),
        (TWO | {"curves": {"v": {"from": "sgd", "to": "sgd"}}}, ["sgd", "different"]),
        (TWO | {"curves": {"v": {"from": "sgd", "to": "x"}}}, ["curves.v.to", "'x'", "altsdp"]),
        (TWO | {"curves": {"sgd": {"from": "sgd", "to": "altsdp"}}}, ["curves.sgd"]),
        (TWO | {"planes": {"p": {"through": ["sgd", "altsdp", "v.bend"]}}}, ["planes.p.through", "v.bend"]),
        (TWO | {"planes": {"p": {"through": ["sgd", "sgd", "altsdp"]}}}, ["through", "different"]),
        (TWO | {"planes": {"p": {}}}, ["planes.p", "exactly one"]),
        (TWO | {"planes": {"p": {"around": "sgd", "resolution": 2}}}, ["planes.p.resolution", "2"]),
        (TWO | {"planes": {"p": {"around": "sgd", "resolution": 402}}}, ["planes.p.resolution", "402"]),
        (TWO | {"planes": {"p": {"trajectory": "x"}}}, ["planes.p.trajectory", "'x'", "altsdp"]),
        ({"minima": {"a": {"epochs": 2}}, "planes": {"p": {"trajectory": "a"}}}, ["planes.p.trajectory", "have 2 of"]),
        (TWO | {"training": {"snapshots": 100}, "planes": {"p": {"trajectory": "sgd"}}}, ["p.trajectory", "have 2 of"]),
        (TWO | {"model": 5}, ["model", "5", "use a name such as 'cnn'"]),
        (TWO | {"model": "cnm"}, ["model.name", "'cnm'", "lenet"]),
        (TWO | {"verdict": {"control": "nobody"}}, ["verdict", "nobody"]),
        (TWO | {"verdict": {"tolerance": 0}}, ["verdict.tolerance", "0"]),
    ],
)
def test_a_bad_spec_is_refused_with_field_and_value(content: Any, words: list[str]) -> None:
    with pytest.raises(BadSpec) as refused:
        parse_spec(content)
    assert all(word in str(refused.value) for word in words), str(refused.value)


@pytest.mark.parametrize(("epochs", "snapshots"), [(3, 0), (3, 1), (5, 2), (120, 0), (120, 59)])
def test_a_training_path_of_three_points_spans_a_plane(epochs: int, snapshots: int) -> None:
    training = {"epochs": epochs, "snapshots": snapshots}
    spec = parse_spec({"training": training, "minima": {"a": {}}, "planes": {"p": {"trajectory": "a"}}})
    assert spec.minimum("a").snapshot_count >= 3


def test_unreadable_spec_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match=r"missing\.yaml does not exist"):
        read_spec(tmp_path / "missing.yaml")
    (tmp_path / "torn.yaml").write_text("minima: {a: [")
    with pytest.raises(BadSpec, match="neither JSON nor YAML"):
        read_spec(tmp_path / "torn.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(BadSpec, match=r"binary\.yaml"):
        read_spec(tmp_path / "binary.yaml")


def test_numbers_in_yaml_without_a_dot_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("minima: {a: {optimizer: altsdp, c: 1e-6}}")
    assert read_spec(tmp_path / "spec.yaml").minimum("a").c == 1e-6


def pruned(**minimum: object) -> dict[str, object]:
    return {"minima": {"sgd": {}, "small": {"method": "one-shot", "of": "sgd", "sparsity": 0.6} | minimum}}


def test_a_minimum_starts_from_another_one_and_takes_its_method_from_the_training() -> None:
    spec = parse_spec(pruned())
    assert spec.minimum("small").main_epochs == 0
    assert spec.minimum("sgd").main_epochs == 120
    shared = {
        "training": {"method": "hesso", "sparsity": 0.6, "periods": 4},
        "minima": {"a": {}, "sgd": {"optimizer": "sgd"}},
    }
    assert parse_spec(shared).minimum("a").periods == 4
    assert parse_spec(shared).minimum("sgd").method_name is None
    other = {"training": {"mode": "dual", "sparsity": 0.6}, "minima": {"a": {"method": "sfp"}}}
    assert parse_spec(other).minimum("a").method == "sfp"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pruned(of="nobody"), "minima.small.of: 'nobody' is not a minimum of this spec: use one of sgd, small"),
        (pruned(of="small"), "minima.small.of: 'small' would start from itself"),
        (
            pruned(periods=3),
            "minima.small: periods=3: method 'one-shot' has no such option; it has score, scope, retrain",
        ),
        (pruned(method="wizard"), "minima.small.method"),
        (pruned(sparsity=None), "minima.small.method: method 'one-shot' must know how much to prune"),
        (pruned(sparsity=1.0), "minima.small.sparsity"),
        (
            pruned(score="gamma"),
            "minima.small.score: score 'gamma' is the factor of BatchNorm, and the network has none",
        ),
        (pruned(method="ns"), "minima.small.method: method 'ns' prunes by the factors of BatchNorm"),
        (pruned(floor=0.5), "sparsity=0.6 cannot be reached: floor=0.5"),
        (pruned(retrain={"epochs": 3}), "minima.small.retrain.lr"),
        (
            {"training": {"floor": 0.5}, "minima": {"a": {"method": "sfp", "sparsity": 0.6}}},
            "minima.a: together with training: sparsity=0.6 cannot be reached: floor=0.5",
        ),
        ({"minima": {"sgd": {"penalty": 0.1}}}, "minima.sgd.penalty: penalty belongs to pruning methods"),
        ({"minima": {"sgd": {}}, "training": {"of": "sgd"}}, "training.of: training cannot have it"),
    ],
)
def test_a_method_that_cannot_work_is_refused_by_its_field(content: dict[str, object], message: str) -> None:
    with pytest.raises(BadSpec) as refused:
        parse_spec(content)
    assert message in str(refused.value)


def compared(**fields: Any) -> Spec:
    return parse_spec({"methods": ["altsdp", "one-shot"], "sparsities": [0.5], **fields})


def test_methods_make_the_minima_of_every_seed_with_two_controls() -> None:
    spec = compared(seeds=2, seed=7)
    names = ["sgd", "altsdp_50", "one-shot_50", "control", "reordered"]
    assert list(spec.minima) == [*names, *(f"{name}_s2" for name in names)]
    assert [spec.minimum(name).seed for name in ("sgd", "altsdp_50", "sgd_s2", "altsdp_50_s2")] == [7, 7, 8, 8]
    assert spec.minimum("reordered").initialisation == spec.minimum("sgd").initialisation
    assert spec.minimum("reordered").order != spec.minimum("sgd").order
    assert spec.minimum("control").initialisation != spec.minimum("sgd").initialisation
    assert (spec.minimum("one-shot_50").of, spec.minimum("one-shot_50_s2").of) == ("sgd", "sgd_s2")
    assert (spec.between, spec.control) == (("sgd", "altsdp_50"), "control")
    assert parse_spec(spec.to_json()) == spec


def test_methods_and_controls_can_be_limited_to_the_first_seeds() -> None:
    spec = compared(
        methods=["one-shot", {"method": "altsdp", "seeds": 1}, {"method": "altsdp", "mode": "dual"}], seeds=2
    )
    names = ["sgd", "one-shot_50", "altsdp_50", "altsdp-dual_50", "control", "reordered"]
    assert list(spec.minima) == [*names, *(f"{name}_s2" for name in names if name != "altsdp_50")]
    alone = compared(seeds=2, controls=0)
    assert not {"control", "reordered"} & set(alone.minima)
    assert alone.control is None
    assert parse_spec(spec.to_json()) == spec


def test_a_comparison_of_methods_has_lines_from_sgd_to_each_network_of_its_seed() -> None:
    spec = compared(seeds=2)
    assert len(spec.lines) == 8
    assert all(start.endswith("_s2") == end.endswith("_s2") for start, end in spec.lines)
    other = compared(verdict={"between": ["altsdp_50", "one-shot_50"], "control": "control"})
    assert {("altsdp_50", "one-shot_50"), ("altsdp_50", "control")} <= set(other.lines)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"methods": ["altspd"]}, "methods.0: method 'altspd' is unknown: use one of altsdp"),
        ({"methods": ["dcp"]}, "methods.0: method 'dcp' is not built here, only its published numbers are shown"),
        ({"methods": []}, "methods: must be a list of methods"),
        ({"sparsities": 0.5}, "sparsities: 0.5 is not a list of shares: write it as [0.5]"),
        ({"sparsities": [1.5]}, "sparsities.0: 1.5 is not a share above 0 and below 1"),
        ({"sparsities": None}, "sparsities: give shares"),
        ({"macs": [0.5]}, "sparsities: give shares"),
        ({"methods": None, "minima": {"sgd": {}}}, "sparsities needs methods"),
        ({"minima": {"sgd": {}}}, "minima: methods make the minima sgd, altsdp_50"),
        ({"methods": ["ns"]}, "minima.ns_50.method: method 'ns' prunes by the factors of BatchNorm"),
        ({"seeds": 0}, "seeds: 0 is not a whole number from 1 to 20"),
        ({"controls": -1}, "controls: -1 is not a whole number from 0 to 20"),
        ({"methods": [{"method": "ls", "seeds": 0}]}, "methods.0.seeds: 0 is not a whole number from 1 to 20"),
        ({"methods": ["ls", {"method": "ls", "retrain": None}]}, "methods.1: 'ls' is there twice"),
        ({"sparsities": [0.5, 0.501]}, "sparsities.1: another share is 50 %, too"),
        ({"training": {"floor": 0.6}}, "cannot be reached: floor=0.6"),
    ],
)
def test_a_wrong_comparison_of_methods_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSpec, match=re.escape(message)):
        compared(**fields)
