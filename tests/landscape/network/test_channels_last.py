"""Networks that cut images by ``view``, which the fast order of images in memory does not allow."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.landscape.reference import assert_exact, samples
from valleyscope.landscape import Evaluator, compare, evaluate, fit_curve, flatten


class OldMnist(nn.Module):
    """The network of PyTorch's first MNIST example, smaller."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(1, 4, 3)
        self.second = nn.Conv2d(4, 6, 3)
        self.drop = nn.Dropout2d()
        self.last = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(F.max_pool2d(self.first(x), 2))
        x = F.relu(self.drop(self.second(x)))
        x = F.dropout(x.view(-1, 24), training=self.training)
        return F.log_softmax(self.last(x), dim=1)


class Wide(nn.Module):
    """Wide enough for Winograd's filtering, with colours that are viewed first."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Conv2d(3, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1))
        self.skip = nn.Linear(192, 3)
        self.last = nn.Linear(128 * 64, 3)

    def forward(self, x: Tensor) -> Tensor:
        images = self.layers(x)
        return self.last(images.view_as(images).view(x.size(0), -1)) + self.skip(x.view(len(x), -1))


class Forked(nn.Module):
    """A network whose path depends on values, so that it cannot be traced."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits if float(x.sum()) > -1e9 else -logits


class Standardised(nn.Conv2d):
    """Weight standardisation: the weight itself is viewed."""

    def forward(self, x: Tensor) -> Tensor:
        rows = self.weight.view(self.out_channels, -1)
        rows = (rows - rows.mean(1, keepdim=True)) / rows.std(1, keepdim=True)
        return F.conv2d(x, rows.view(self.weight.size()), self.bias)


class WritesThroughAView(nn.Module):
    """A view is overwritten, and means the images behind it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(2, 4, 3)
        self.last = nn.Linear(4 * 16, 3)

    def forward(self, x: Tensor) -> Tensor:
        images = self.first(x)
        images.view(len(x), -1).relu_()
        return self.last(images.flatten(1))


def standardised() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(Standardised(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3))


NETWORKS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "old mnist": (OldMnist(), (1, 10, 10)),
    "old mnist, not traced": (Forked(OldMnist()), (1, 10, 10)),
    "wide": (Wide(), (3, 8, 8)),
    "wide, not traced": (Forked(Wide()), (3, 8, 8)),
    "viewed weight": (standardised(), (2, 6, 6)),
    "view that is written into": (WritesThroughAView(), (2, 6, 6)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_views_images_equals_the_plain_loop(name: str) -> None:
    model, shape = NETWORKS[name]
    assert_exact(model, {"train": samples(shape, 30, 3), "test": samples(shape, 11, 3, seed=1)})


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
def test_a_scripted_network_that_views_images_equals_the_one_it_was_made_from() -> None:
    model, data = OldMnist(), samples((1, 10, 10), 30, 3)
    scripted = torch.jit.script(model)
    found, expected = (evaluate(network, flatten(model), data)["train"] for network in (scripted, model))
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    start, end = flatten(model), 0.5 * flatten(model)
    curves = [fit_curve(network, start, end, data, epochs=2, batch_size=16, seed=3) for network in (model, scripted)]
    torch.testing.assert_close(curves[0].bend, curves[1].bend)
    assert not torch.allclose(curves[0].bend, 0.75 * start)


def test_shortcuts_stay_on_for_a_network_that_views_images() -> None:
    evaluator = Evaluator(Wide(), samples((3, 8, 8), 10, 3))
    assert len(evaluator._layers) == 1


@pytest.mark.parametrize("name", ["old mnist", "viewed weight", "view that is written into"])
def test_curves_are_fitted_and_networks_compared_that_view_images(name: str) -> None:
    model, shape = NETWORKS[name]
    start = flatten(model)
    result = compare(model, {"a": start, "b": 1.1 * start}, {"train": samples(shape, 20, 3)}, resolution=5, epochs=1)
    assert result.verdict is not None


def test_a_fit_takes_the_same_steps_as_with_reshape() -> None:
    class Reshaping(WritesThroughAView):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x).relu().reshape(len(x), -1))

    models = WritesThroughAView(), Reshaping()
    start = flatten(models[0])
    data = samples((2, 6, 6), 40, 3)
    bends = [fit_curve(model, start, -start, data, epochs=3, batch_size=10, seed=1).bend for model in models]
    torch.testing.assert_close(*bends)
    assert bends[0].norm() > 0.01


def test_a_network_that_does_not_take_these_images_is_named_with_their_shape() -> None:
    with pytest.raises(ValueError, match=r"Sequential cannot run on .* float32 \(2, 2, 6, 6\): .* multiplied"):
        Evaluator(nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(5, 3)), samples((2, 6, 6), 4, 3))
