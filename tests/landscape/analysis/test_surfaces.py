"""Surfaces: the grid, the splits, progress, stopping, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from valleyscope.landscape import Evaluator, Plane, evaluate, flatten, surface
from valleyscope.landscape.cancellation import Cancelled

DATA = {
    "train": (torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 3),
    "test": (torch.randn(20, 4, generator=torch.Generator().manual_seed(1)), torch.arange(20) % 3),
}


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


@pytest.fixture(scope="module")
def plane() -> Plane:
    return Plane.through(*(flatten(network(seed)) for seed in range(3)))


def test_rows_are_y_and_columns_are_x(plane: Plane) -> None:
    values = surface(network(0), plane, DATA, resolution=(7, 5))
    assert values["train"].loss.shape == values["test"].error.shape == (len(values.y), len(values.x))
    assert (len(values.x), len(values.y)) == (7, 5)
    alone = evaluate(network(0), plane.point(values.x[6], values.y[1]), DATA)
    assert values["train"].loss[1, 6] == pytest.approx(alone["train"].loss, rel=1e-6)
    assert values["test"].error[1, 6] == alone["test"].error


def test_lines_of_ones_own_and_some_of_the_splits(plane: Plane) -> None:
    values = surface(network(0), plane, DATA, x=[-1.0, 0.0, 2.0], y=[0.0, 1.0, 3.0, 4.0], splits=["test"])
    assert list(values) == ["test"]
    assert values["test"].loss.shape == (4, 3)
    with pytest.raises(KeyError, match="no split 'train'"):
        values["train"]


def test_tile_size_changes_no_bit_and_an_evaluator_can_be_shared(plane: Plane) -> None:
    evaluator = Evaluator(network(0), DATA)
    whole = surface(network(0), plane, evaluator=evaluator, resolution=9)
    cut = surface(network(0), plane, evaluator=evaluator, resolution=9, tile_size=4)
    for split in DATA:
        np.testing.assert_array_equal(whole[split].loss, cut[split].loss)
        np.testing.assert_array_equal(whole[split].error, cut[split].error)


def test_progress_rises_to_the_whole(plane: Plane) -> None:
    told: list[tuple[int, int]] = []
    surface(
        network(0), plane, DATA, resolution=9, tile_size=10, progress=lambda done, total: told.append((done, total))
    )
    assert told == sorted(told)
    assert told[-1] == (81, 81)


def test_it_stops_when_asked(plane: Plane) -> None:
    asked = iter([False, False, True])
    with pytest.raises(Cancelled):
        surface(network(0), plane, DATA, resolution=9, cancelled=lambda: next(asked))


def test_a_caller_without_gradients_gets_the_same_values(plane: Plane) -> None:
    expected = surface(network(0), plane, DATA, resolution=5)
    with torch.inference_mode():
        found = surface(
            network(0), plane, {split: (x.clone(), y.clone()) for split, (x, y) in DATA.items()}, resolution=5
        )
    np.testing.assert_array_equal(found["test"].loss, expected["test"].loss)


@pytest.mark.filterwarnings("ignore:.*torch.jit.* is deprecated")
def test_networks_in_torchscript_have_surfaces(plane: Plane) -> None:
    expected = surface(network(0), plane, DATA, resolution=5)
    for scripted in (torch.jit.script(network(0)), torch.jit.trace(network(0), DATA["train"][0])):
        found = surface(scripted, plane, DATA, resolution=5)
        np.testing.assert_allclose(found["train"].loss, expected["train"].loss, rtol=1e-5)


@pytest.mark.parametrize("first", [nn.Linear(6, 6), nn.Conv1d(8, 8, 3, padding=1)])
def test_pooling_over_samples_that_are_no_images_is_left_to_torch(first: nn.Module) -> None:
    """Max-pooling takes samples of shape (N, H, W) as one image of N channels."""
    torch.manual_seed(0)
    model = nn.Sequential(first, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3))
    x, y = torch.randn(30, 8, 6), torch.arange(30) % 3
    found = evaluate(model, flatten(model), (x, y))["train"].loss
    assert found == pytest.approx(float(nn.functional.cross_entropy(model(x), y).detach()), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resolution": 2}, "resolution"),
        ({"resolution": 402}, "resolution is 402; at most 401"),
        ({"resolution": (5, 500)}, "at most 401"),
        ({"x": [0.0, 1.0, 2.0]}, "only one of x and y"),
        ({"x": [0.0, 1.0], "y": [0.0, 1.0, 2.0]}, r"x has shape \(2,\)"),
        ({"x": [0.0, 1.0, np.inf], "y": [0.0, 1.0, 2.0]}, "x has shape"),
        ({"splits": ["training"]}, "split is 'training'; the data has 'train', 'test'"),
        ({"batch_norm": "none"}, "batch_norm is 'none'"),
        ({"data": None}, "data is missing"),
        ({"data": {}}, "data has no splits"),
        ({"data": {"train": (torch.zeros(3, 4), torch.zeros(2, dtype=torch.int64))}}, "split 'train' has x of shape"),
        ({"data": {"train": (torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64))}}, "split 'train' has no samples"),
        ({"data": {"train": (torch.zeros(2, 4), torch.tensor([0, 3]))}}, "labels of split 'train' run from 0 to 3"),
        ({"data": {"train": (torch.zeros(2, 4), torch.zeros(2))}}, "labels of split 'train' have data type"),
        ({"data": {"train": (torch.zeros(2, 4), "ab")}}, "split 'train' is not a pair"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(plane: Plane, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        surface(network(0), plane, **{"data": DATA, "resolution": 3, **options})  # type: ignore[arg-type]


def test_a_plane_of_another_network_is_refused() -> None:
    other = Plane.through(*(torch.randn(7) for _ in range(3)))
    with pytest.raises(ValueError, match=r"basis has shape \(3, 7\); expected flat vectors of the network's 67"):
        surface(network(0), other, DATA, resolution=3)


class _Wrong(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.flatten(0), self.layer(x)


def test_a_network_that_returns_something_else_than_logits_is_refused() -> None:
    with pytest.raises(ValueError, match=r"loss 'cross_entropy': the network returns shape \(8,\)"):
        Evaluator(_Wrong(), DATA)
