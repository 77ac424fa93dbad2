"""Everything about given networks in one call."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from valleyscope.landscape import Landscape, compare, flatten, pair_matrix, pair_verdict, write_report

X = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
Y = (X @ torch.randn(6, 3, generator=torch.Generator().manual_seed(1))).argmax(1)
DATA = {"train": (X, Y), "test": (X[:50], Y[:50])}


def trained(seed: int, steps: int = 400) -> nn.Module:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X), Y).backward()
        optimizer.step()
    return model


def permuted(model: nn.Module) -> nn.Module:
    """The same function at another place: hidden units in another order."""
    other = copy.deepcopy(model)
    order = torch.arange(8).roll(3)
    for layer, dim in ((other[0], 0), (other[2], 1)):
        layer.weight.data = layer.weight.data.index_select(dim, order)
    other[0].bias.data = other[0].bias.data[order]
    return other


def test_two_networks_and_a_control_become_a_landscape_with_a_verdict(tmp_path: Path) -> None:
    model = trained(0)
    longer = trained(0, steps=500)
    result = compare(
        model,
        {"early": model.state_dict(), "late": flatten(longer), "control": permuted(model).state_dict()},
        DATA,
        resolution=9,
        epochs=3,
        batch_size=50,
    )
    assert result.verdict is not None
    assert result.verdict["kind"] == "level valley"
    assert result.verdict["control"]["line"]["barrier"] > 0.05
    assert set(result.planes) == {"valley", "basins"}
    assert set(result.lines) == {"early-late", "early-control", "late-control"}
    result.save(tmp_path / "landscape.h5")
    again = Landscape.open(tmp_path / "landscape.h5")
    assert again.verdict == result.verdict
    write_report(again, tmp_path / "report.html")


def test_a_permuted_copy_is_the_same_function_in_another_basin() -> None:
    model = trained(0)
    result = compare(model, {"a": model.state_dict(), "b": permuted(model).state_dict()}, DATA, resolution=5, epochs=2)
    assert result.verdict is not None
    assert result.verdict["kind"] not in ("level valley", "one basin, sloping")
    a, b = result.minima["a"].final, result.minima["b"].final
    assert a["train_loss"] == pytest.approx(b["train_loss"], rel=1e-5)


def test_two_networks_without_training_are_not_said_to_lie_in_one_basin() -> None:
    first, second = trained(0, steps=0), trained(1, steps=0)
    for model in (first, second):
        model[2].weight.data.mul_(0.1)
    result = compare(first, {"a": flatten(first), "b": flatten(second)}, DATA, resolution=5, epochs=1)
    assert result.verdict is not None
    assert result.verdict["line"]["high"] <= 0.05
    assert result.verdict["kind"] == "undecided"
    assert "better than guessing" in result.verdict["sentence"]


def test_a_single_pair_is_the_training_split() -> None:
    model = trained(0)
    minima = {"a": model.state_dict(), "b": flatten(trained(0, steps=450))}
    pair, named = (compare(model, minima, data, resolution=5, epochs=1) for data in ((X, Y), {"train": (X, Y)}))
    assert pair.verdict == named.verdict
    assert list(pair.planes["valley"].splits) == ["train"]


def test_a_caller_without_gradients_gets_the_same_landscape() -> None:
    model = trained(0)
    minima = {"a": flatten(model), "b": flatten(trained(0, steps=450))}
    expected = compare(model, minima, DATA, resolution=5, epochs=1)
    with torch.inference_mode():
        found = compare(trained_copy(model), minima, DATA, resolution=5, epochs=1)
    assert found.verdict == expected.verdict
    assert (found.planes["valley"].splits["test"].loss == expected.planes["valley"].splits["test"].loss).all()


def trained_copy(model: nn.Module) -> nn.Module:
    """The same network, made where no gradients are."""
    other = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    other.load_state_dict(model.state_dict())
    return other


def test_names_that_cannot_be_saved_are_refused_before_any_work() -> None:
    model = trained(0, steps=1)
    with pytest.raises(ValueError, match="minima: a network has the name 'my net'; use 1 to 64 letters"):
        compare(model, {"my net": model.state_dict(), "b": model.state_dict()}, DATA)
    with pytest.raises(ValueError, match="data: a split has the reserved name 'done'"):
        compare(model, {"a": model.state_dict(), "b": model.state_dict()}, {**DATA, "done": DATA["test"]})


def test_one_network_or_no_training_data_are_refused() -> None:
    model = trained(0, steps=1)
    with pytest.raises(ValueError, match="1 networks"):
        compare(model, {"a": model.state_dict()}, DATA)
    with pytest.raises(ValueError, match="'train'"):
        compare(model, {"a": model.state_dict(), "b": model.state_dict()}, {"test": DATA["test"]})


def test_networks_whose_lines_would_share_a_name_are_refused() -> None:
    model = trained(0, steps=1)
    with pytest.raises(ValueError, match="would have the name 'sgd-adam-sgd'; rename a network"):
        compare(model, dict.fromkeys(("sgd-adam", "sgd", "adam-sgd"), model.state_dict()), DATA)
    with pytest.raises(ValueError, match=r"'valley\.bend', which ends like that of a curve's bend"):
        compare(model, dict.fromkeys(("a", "valley.bend"), model.state_dict()), DATA)


def test_of_five_networks_any_two_can_be_judged_from_the_saved_file(tmp_path: Path) -> None:
    model = trained(0)
    minima = {
        "far": flatten(permuted(model)),
        "a": flatten(model),
        "b": flatten(trained(0, steps=450)),
        "c": flatten(trained(0, steps=500)),
        "other": flatten(trained(1)),
    }
    result = compare(model, minima, DATA, resolution=5, epochs=1, between=("b", "a"), control="other")
    assert result.verdict is not None
    assert (result.verdict["between"], result.verdict["control"]["name"]) == (["b", "a"], "other")
    assert len(result.lines) == 10
    assert {name: (path.start, path.end) for name, path in result.curves.items()} == {
        "valley": ("b", "a"),
        "contrast": ("b", "other"),
    }
    assert result.planes["basins"].defining == ("b", "a", "other")
    result.save(tmp_path / "landscape.h5")
    again = Landscape.open(tmp_path / "landscape.h5")
    matrix = pair_matrix(again)
    assert matrix.minima == tuple(minima)
    pairs = {(first, second): line for first, second, line in matrix}
    near, apart = pairs["a", "c"], pairs["far", "a"]
    assert near is not None
    assert apart is not None
    assert near.surely_within(0.05)
    assert apart.surely_above(0.05)
    assert pair_verdict(again, "a", "c")["kind"] == "level valley"
    found = pair_verdict(again, "a", "far")
    assert found["kind"] == "separate"
    assert (found["line"]["low"], found["line"]["high"]) == (apart.low, apart.high)
    alone = compare(model, {"a": minima["a"], "far": minima["far"]}, DATA, resolution=5, epochs=1)
    assert alone.verdict is not None
    for key in ("barrier", "low", "high"):
        assert found["line"][key] == pytest.approx(alone.verdict["line"][key], abs=1e-6)


def test_a_question_about_networks_that_are_not_there_is_refused() -> None:
    model = trained(0, steps=1)
    minima = dict.fromkeys("abc", model.state_dict())
    with pytest.raises(ValueError, match="between names 'x', which is not in minima; use one of a, b, c"):
        compare(model, minima, DATA, between=("a", "x"))
    with pytest.raises(ValueError, match="must be different networks"):
        compare(model, minima, DATA, between=("a", "b"), control="a")


def test_a_permuted_copy_is_separate_as_given_and_the_same_when_aligned() -> None:
    model = trained(0)
    minima = {"one": model.state_dict(), "same": permuted(model).state_dict(), "other": trained(1).state_dict()}
    result = compare(model, minima, DATA, resolution=5, epochs=1, batch_size=50, align="weights")
    assert result.verdict is not None
    assert result.verdict["line"]["barrier"] > 0.05
    assert result.verdict["alignment"]["kind"] == "one basin up to permutation"
    assert result.verdict["alignment"]["line"]["barrier"] == pytest.approx(0, abs=1e-6)
    aligned = pair_matrix(result, aligned=True).values("barrier")
    assert aligned[0][2] == pytest.approx(aligned[1][2], abs=1e-5)
    assert set(result.aligned) == {"one-same", "one-other", "same-other"}
