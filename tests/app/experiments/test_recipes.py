"""The recipes: each one is valid, can be estimated, and has the settings of the paper's tables."""

from __future__ import annotations

import json
import re

import pytest

from valleyscope.app.experiments.cost import estimate, split_sizes
from valleyscope.app.experiments.recipes import describe_recipe, load_recipe, merge, recipe_names
from valleyscope.app.experiments.spec import BadSpec
from valleyscope.app.experiments.spec_parts import Minimum
from valleyscope.training.schedules import Halving, Milestones, Piecewise
from valleyscope.training.settings import steps_an_epoch

# As the paper prints them (appendix), with the errata applied: name, c, mu.
MNIST = {"mnist-mu51": 0.51, "mnist-mu55": 0.55, "mnist-mu60": 0.60}
VGG = {
    "vgg16-cifar10-c5e-7-mu40": (5e-7, 0.40),
    "vgg16-cifar10-c5e-7-mu51": (5e-7, 0.51),
    "vgg16-cifar10-c5e-7-mu55": (5e-7, 0.55),
    "vgg16-cifar10-c5e-7-mu60": (5e-7, 0.60),
    "vgg16-cifar10-c8e-7-mu40": (8e-7, 0.40),
    "vgg16-cifar10-c8e-7-mu51": (8e-7, 0.51),
    "vgg16-cifar10-c8e-7-mu55": (8e-7, 0.55),
}
# Sparsities of the hyper-parameter table, in the same order; 5e-7/.60 has two values, .7190 and .6197.
VGG_SPARSITY = (0.0, 0.0090, 0.1242, 0.7190, 0.0084, 0.4391, 0.6767)
TABLES = {
    "resnet56-cifar10": ("resnet56", "cifar10", 0.55),
    "vgg16bn-cifar10": ("vgg16_bn", "cifar10", 0.55),
    "resnet56-cifar100": ("resnet56", "cifar100", 0.53),
    "vgg16bn-cifar100": ("vgg16_bn", "cifar100", 0.60),
}


def altsdp(name: str) -> Minimum:
    return load_recipe(name).minimum("altsdp")


def reach(name: str) -> float:
    settings = altsdp(name)
    train, _ = split_sizes(load_recipe(name).dataset)
    return settings.reach(steps_an_epoch(train, settings.batch_size))


def test_there_are_recipes_for_the_demo_and_every_experiment_of_the_paper() -> None:
    expected = {"digits", *MNIST, *VGG, "wrn28x10-cifar10", *TABLES, "resnet56-cifar10-large"}
    assert set(recipe_names()) == expected


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_can_be_estimated_and_compares_sgd_with_altsdp(name: str) -> None:
    spec = load_recipe(name)
    assert spec.name == name
    assert spec.between == ("sgd", "altsdp")
    assert spec.minimum("sgd").optimizer == "sgd"
    assert spec.minimum("altsdp").optimizer == "altsdp"
    cost = estimate(spec)
    assert 0 < cost.gpu_hours < cost.core_hours
    if name == "digits":  # gives the share to prune, so c is chosen on the way
        assert cost.minima == {}
    else:
        assert cost.minima["altsdp"].reach == pytest.approx(reach(name), rel=1e-9)
    assert json.loads(json.dumps(spec.to_json()))


@pytest.mark.parametrize("name", [name for name in recipe_names() if name != "digits"])
def test_a_recipe_of_the_paper_says_where_it_comes_from_and_what_is_not_stated(name: str) -> None:
    head = describe_recipe(name)
    assert re.search(r"table[s]? ", head)
    assert "neither momentum nor weight decay" in head
    assert "are ours" in head
    settings = altsdp(name)
    assert (settings.momentum, settings.weight_decay, settings.bias, settings.mode) == (0, 0, False, "prox")


@pytest.mark.parametrize(("name", "mu"), MNIST.items())
def test_mnist_is_as_in_the_appendix(name: str, mu: float) -> None:
    spec, settings = load_recipe(name), altsdp(name)
    assert (spec.dataset, spec.model.name) == ("mnist", "lenet")
    assert (settings.c, settings.mu, settings.epochs, settings.batch_size, settings.lr) == (1e-6, mu, 200, 64, 0.1)
    assert settings.schedule == Halving(every=30)


@pytest.mark.parametrize(("name", "setting"), VGG.items())
def test_vgg16_has_the_seven_settings_of_the_hyper_parameter_table(name: str, setting: tuple[float, float]) -> None:
    spec, settings = load_recipe(name), altsdp(name)
    assert (spec.dataset, spec.model.name) == ("cifar10", "vgg16")
    assert (settings.c, settings.mu) == setting
    assert (settings.epochs, settings.batch_size, settings.lr) == (360, 128, 0.1)
    assert settings.schedule == Piecewise(hold=0.5, until=0.9, final=0.01)


def test_the_reach_orders_the_published_sparsities() -> None:
    """What the paper prunes grows with G: of VGG16's settings all but the two last places are in that order."""
    by_reach = sorted(VGG, key=reach)
    by_sparsity = sorted(VGG, key=dict(zip(VGG, VGG_SPARSITY, strict=True)).__getitem__)
    swapped = [a for a, b in zip(by_reach, by_sparsity, strict=True) if a != b]
    assert len(swapped) <= 4
    assert reach("mnist-mu51") < reach("mnist-mu55") < reach("mnist-mu60")


def test_the_wide_network_follows_its_table_and_not_the_caption() -> None:
    settings = altsdp("wrn28x10-cifar10")
    assert (settings.c, settings.mu, settings.epochs, settings.batch_size) == (8e-6, 0.55, 200, 128)
    assert load_recipe("wrn28x10-cifar10").dataset == "cifar10"
    assert "caption" in describe_recipe("wrn28x10-cifar10")


@pytest.mark.parametrize(("name", "setting"), TABLES.items())
def test_the_pruning_tables_have_their_settings(name: str, setting: tuple[str, str, float]) -> None:
    spec, settings = load_recipe(name), altsdp(name)
    assert (spec.model.name, spec.dataset, settings.mu) == setting
    assert (settings.c, settings.epochs, settings.batch_size, settings.lr, settings.floor) == (1e-5, 260, 64, 0.05, 0.3)
    assert settings.schedule == Milestones(at=(60, 160, 200, 220, 240), factors=(0.2, 0.2, 0.2, 0.2, 0.4))


def test_the_large_reduction_has_its_own_schedule() -> None:
    settings = altsdp("resnet56-cifar10-large")
    assert (settings.c, settings.mu, settings.epochs, settings.floor) == (1e-5, 0.58, 280, 0.25)
    assert settings.schedule == Milestones(at=(100, 200, 220, 240, 260), factors=(0.2, 0.2, 0.2, 0.2, 0.4))


def test_overrides_replace_alternatives() -> None:
    spec = load_recipe("digits", {"minima": {"altsdp": {"target": 1.2}}, "planes": {"basins": {"around": "sgd"}}})
    assert (spec.minimum("altsdp").c, spec.minimum("altsdp").target) == (None, 1.2)
    assert spec.all_planes["basins"].around == "sgd"
    assert load_recipe("digits", {"minima": {"sgd": {"checkpoint": "x"}}}).minima["sgd"].checkpoint == "x"


def test_an_override_does_not_change_the_recipe() -> None:
    before = load_recipe("digits").to_json()
    merge(before, {"training": {"epochs": 1}})
    load_recipe("digits", {"training": {"epochs": 1}})
    assert load_recipe("digits").to_json() == before


def test_an_unknown_recipe_is_named_with_those_that_exist() -> None:
    with pytest.raises(BadSpec, match=r"'nope' is unknown: use one of digits"):
        load_recipe("nope")
