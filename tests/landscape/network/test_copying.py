"""Networks that hold on to tensors with a history of gradients."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import prune, vector_to_parameters, weight_norm

from tests.landscape.reference import samples
from valleyscope.landscape import Evaluator, evaluate, fit_curve, flatten
from valleyscope.landscape.geometry.vectors import views
from valleyscope.landscape.network.copying import copied

pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")

DATA = samples((2, 6, 6), 30, 3)


class Remembering(nn.Module):
    """Keeps what it saw last: by itself, in containers, and in a buffer."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Conv2d(2, 4, 3)
        self.last = nn.Linear(64, 3)
        self.features: Tensor | None = None
        self.history: dict[str, list[Tensor]] = {"features": []}
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.features = self.layer(x)
        self.history["features"] = [self.features]
        self.mean = 0.9 * self.mean + 0.1 * self.features.mean()
        return self.last(self.features.flatten(1))


def pruned() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))
    prune.l1_unstructured(model[0], "weight", 0.5)
    prune.ln_structured(model[2], "weight", 0.5, n=2, dim=0)
    prune.random_unstructured(model[5], "weight", 0.3)
    return model


def weight_normed() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(weight_norm(nn.Conv2d(2, 4, 3)), nn.ReLU(), nn.Flatten(), weight_norm(nn.Linear(64, 3)))


NETWORKS = {"remembering": Remembering, "pruned": pruned, "weight norm": weight_normed}


def after_a_pass(name: str) -> nn.Module:
    model = NETWORKS[name]()
    F.cross_entropy(model(DATA[0]), DATA[1]).backward()
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(model)
    return model


@pytest.mark.parametrize("name", NETWORKS)
def test_a_copy_is_the_same_network_apart(name: str) -> None:
    model = after_a_pass(name)
    twin = copied(model)
    assert torch.equal(twin(DATA[0]), model(DATA[0]))
    assert [key for key, _ in twin.named_parameters()] == [key for key, _ in model.named_parameters()]
    before = flatten(model)
    vector_to_parameters(2 * before, twin.parameters())
    assert torch.equal(flatten(model), before)
    assert not torch.allclose(twin(DATA[0]), model(DATA[0]))


@pytest.mark.parametrize("name", NETWORKS)
def test_its_landscape_is_that_of_the_network_with_other_weights(name: str) -> None:
    model = after_a_pass(name)
    origin = flatten(model)
    basis = torch.stack([origin, torch.randn(origin.shape, generator=torch.Generator().manual_seed(1))])
    steps = [0.0, 0.05, -0.1]
    found = Evaluator(model, DATA).at(basis, [[1.0, step] for step in steps])["train"].loss
    for step, loss in zip(steps, found, strict=True):
        vector_to_parameters(origin + step * basis[1], model.parameters())
        expected = F.cross_entropy(model(DATA[0]), DATA[1]).item()
        assert loss == pytest.approx(expected, rel=1e-5)
        assert evaluate(model, model.state_dict(), DATA)["train"].loss == pytest.approx(expected, rel=1e-5)


def test_the_curve_of_a_pruned_network_leaves_masked_weights_alone() -> None:
    model = after_a_pass("pruned")
    start = flatten(model)
    bend = fit_curve(model, start, 2 * start, DATA, epochs=2, batch_size=10).bend
    moved = views(model, bend - 1.5 * start)
    for name in ("0", "2", "5"):
        change, mask = moved[f"{name}.weight_orig"], model.get_buffer(f"{name}.weight_mask")
        assert not change[mask == 0].any()
        assert change[mask == 1].any()
