"""Sets of networks as one: mean weights and mean predictions, against torch itself and the laws that bind them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import nll_loss

from valleyscope import Evaluator, Landscape, ensemble
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.landscape.storage.records import MinimumRecord


def network(batch_norm: bool) -> nn.Module:
    middle = [nn.BatchNorm1d(6)] if batch_norm else []
    return nn.Sequential(nn.Linear(4, 6), *middle, nn.ReLU(), nn.Linear(6, 3))


def case(batch_norm: bool) -> tuple[nn.Module, dict[str, dict[str, Tensor]], dict[str, tuple[Tensor, Tensor]]]:
    generator = torch.Generator().manual_seed(3)
    data = {
        split: (torch.randn(count, 4, generator=generator), torch.randint(3, (count,), generator=generator))
        for split, count in (("train", 70), ("test", 30))
    }
    weights = {}
    for name in ("a", "b", "c"):
        with torch.random.fork_rng():
            torch.manual_seed(ord(name))
            weights[name] = network(batch_norm).state_dict()
    return network(batch_norm), weights, data


def probabilities(model: nn.Module, state: dict[str, Tensor], x: Tensor, train: Tensor) -> Tensor:
    """By torch alone, with BatchNorm statistics of the whole training set."""
    model.load_state_dict(state)
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]
    with torch.no_grad():
        if norms:
            hidden = model[0](train)
            norms[0].running_mean, norms[0].running_var = hidden.mean(0), hidden.var(0, unbiased=False)
        return functional_call(model.eval(), {}, (x,)).double().softmax(-1)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_scores_are_those_that_torch_computes(batch_norm: bool) -> None:
    model, weights, data = case(batch_norm)
    found = ensemble(model, weights, data)
    mean = {key: torch.stack([state[key] for state in weights.values()]).double().mean(0) for key in weights["a"]}
    soup = {key: value.to(weights["a"][key].dtype) for key, value in mean.items()}
    for split, (x, y) in data.items():
        single = {name: probabilities(model, state, x, data["train"][0]) for name, state in weights.items()}
        for name, p in single.items():
            assert found.members[name][split].loss == pytest.approx(float(nll_loss(p.log(), y)), rel=1e-5)
        together = torch.stack(list(single.values())).mean(0)
        average = probabilities(model, soup, x, data["train"][0])
        for score, p in ((found.ensemble[split], together), (found.average[split], average)):
            assert score.loss == pytest.approx(float(nll_loss(p.log(), y)), rel=1e-5)
            assert score.error == pytest.approx(float((p.argmax(-1) != y).double().mean()))


def test_the_mean_prediction_is_no_worse_than_the_mean_of_its_members() -> None:
    """Jensen: -log of a mean is at most the mean of -log."""
    model, weights, data = case(False)
    found = ensemble(model, weights, data)
    for split in data:
        losses = [scores[split].loss for scores in found.members.values()]
        assert found.ensemble[split].loss <= sum(losses) / len(losses)


def test_equal_networks_are_their_own_average_and_ensemble() -> None:
    model, weights, data = case(True)
    found = ensemble(model, {"a": weights["a"], "again": weights["a"]}, data)
    for split in data:
        alone = found.members["a"][split]
        for score in (found.average[split], found.ensemble[split]):
            assert (score.loss, score.error) == (pytest.approx(alone.loss, rel=1e-6), alone.error)


def test_losses_without_classes_have_no_mean_prediction() -> None:
    model, weights, _ = case(False)
    data = (torch.zeros(5, 4), torch.zeros(5, 3))
    evaluator = Evaluator(model, data, loss="mse")
    with pytest.raises(ValueError, match="loss 'mse' on these data has no probabilities"):
        ensemble(model, weights, evaluator=evaluator)
    with pytest.raises(ValueError, match="give two or more"):
        ensemble(model, {"a": weights["a"]}, data)


def test_a_file_keeps_the_sets(tmp_path: Path) -> None:
    model, weights, data = case(False)
    landscape = Landscape("sets", minima={name: MinimumRecord(name, "sgd") for name in weights})
    landscape.ensembles["all"] = ensemble(model, weights, data).to_record("all")
    landscape.save(tmp_path / "landscape.h5")
    assert Landscape.open(tmp_path / "landscape.h5").ensembles["all"].to_json() == landscape.ensembles["all"].to_json()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ensembles": {"all": ["a", "x"]}}, "ensembles.all.1: 'x' is not a minimum"),
        ({"ensembles": {"all": ["a", "a"]}}, "ensembles.all: .* needs two or more different minima"),
        ({"pairs": [["a", "x"]]}, "pairs.0.1: 'x' is not a minimum"),
        ({"pairs": [["a", "a"]]}, "pairs.0: .* names one minimum twice"),
        ({"pairs": "ring"}, "pairs"),
    ],
)
def test_wrong_sets_and_pairs_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        parse_spec({"minima": {"a": {}, "b": {}, "c": {}}, **fields})


def test_pairs_choose_the_lines_and_the_verdict_keeps_its_own() -> None:
    minima: dict[str, object] = {name: {} for name in "abcdef"}
    lines = [parse_spec({"minima": minima, **pairs}).lines for pairs in ({}, {"pairs": "all"}, {"pairs": "star"})]
    assert [len(found) for found in lines] == [15, 15, 6]  # the star, and the line from b to c for the verdict
    chosen: Spec = parse_spec({"minima": minima, "pairs": [["f", "d"]]})
    assert set(chosen.lines) == {("d", "f"), ("a", "b"), ("a", "c"), ("b", "c")}
    with pytest.raises(BadSpec, match="65 minima have too many lines between them: give 64 at most, or choose pairs"):
        parse_spec({"minima": {f"m{index}": {} for index in range(65)}})
