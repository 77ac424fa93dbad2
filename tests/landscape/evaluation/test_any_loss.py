"""Any loss, data, output and module, against a plain loop in float64 at random points."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from valleyscope import Evaluator, Plane, along, compare, evaluate, fit_curve, flatten, line, sharpness, surface
from valleyscope.landscape.evaluation import generic_evaluation
from valleyscope.landscape.geometry.vectors import unflatten

POINTS = [[1.0, 0.0, 0.0], [1.0, 0.3, -0.2], [1.0, -1.0, 0.5]]
SAMPLES = 150


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def numbers(top: int, *shape: int, seed: int = 1) -> Tensor:
    return torch.randint(0, top, shape, generator=torch.Generator().manual_seed(seed))


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return build()


def mlp(inputs: int = 4, outputs: int = 2) -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs)))


class Gpt(nn.Module):
    """A small transformer with its output layer tied to its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        mask = torch.full((ids.shape[1], ids.shape[1]), -torch.inf, dtype=self.head.weight.dtype).triu(1)
        return self.head(self.block(self.embed(ids), src_mask=mask))


class Masked(nn.Module):
    """Ids and mask in, an object with logits out, as HuggingFace's models have it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        weights = attention_mask.to(self.embed.weight.dtype).unsqueeze(-1)
        pooled = (self.embed(input_ids) * weights).sum(1) / weights.sum(1)
        return SimpleNamespace(logits=self.head(pooled), hidden_states=None)


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 6), nn.BatchNorm1d(6))
        self.head = nn.Linear(6, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"output": self.head(self.layers(x))}


def ignoring() -> Tensor:
    targets = numbers(11, SAMPLES, 5, seed=2)
    return targets.masked_fill(noise(SAMPLES, 5, seed=4) > 0.5, -100)


def token_loop(model: nn.Module, batch: Any) -> Tensor:
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten(), ignore_index=-100)


CASES: dict[str, tuple[Callable[[], nn.Module], Any, Any, Callable[[nn.Module, Any], Tensor]]] = {
    "regression": (
        mlp,
        (noise(SAMPLES, 4), noise(SAMPLES, 2, seed=9)),
        "mse",
        lambda model, batch: F.mse_loss(model(batch[0]), batch[1]),
    ),
    "absolute": (
        mlp,
        (noise(SAMPLES, 4), noise(SAMPLES, 2, seed=9)),
        "l1",
        lambda model, batch: F.l1_loss(model(batch[0]), batch[1]),
    ),
    "own function": (
        mlp,
        (noise(SAMPLES, 4), noise(SAMPLES, 2, seed=9)),
        lambda model, batch: F.huber_loss(model(batch[0]), batch[1], reduction="none").mean(1),
        lambda model, batch: F.huber_loss(model(batch[0]), batch[1]),
    ),
    "language model, tied weights, ignored tokens": (
        lambda: seeded(Gpt),
        (numbers(11, SAMPLES, 5), ignoring()),
        "token_cross_entropy",
        token_loop,
    ),
    "several labels": (
        mlp,
        (noise(SAMPLES, 4), numbers(2, SAMPLES, 2).float()),
        "bce",
        lambda model, batch: F.binary_cross_entropy_with_logits(model(batch[0]), batch[1]),
    ),
    "segmentation": (
        lambda: seeded(lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 3, padding=1))),
        (noise(SAMPLES, 2, 5, 5), numbers(3, SAMPLES, 5, 5)),
        "cross_entropy",
        lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]),
    ),
    "autoencoder": (
        lambda: mlp(4, 4),
        noise(SAMPLES, 4),
        "mse",
        lambda model, batch: F.mse_loss(model(batch), batch),
    ),
    "ids and mask": (
        lambda: seeded(Masked),
        {
            "input_ids": numbers(11, SAMPLES, 5),
            "attention_mask": torch.ones(SAMPLES, 5, dtype=torch.int64).tril(2),
            "labels": numbers(3, SAMPLES),
        },
        "cross_entropy",
        lambda model, batch: F.cross_entropy(
            model(batch["input_ids"], batch["attention_mask"]).logits, batch["labels"]
        ),
    ),
    "recurrent, one of several outputs": (
        lambda: seeded(lambda: nn.LSTM(3, 2, batch_first=True, bidirectional=True)),
        (noise(SAMPLES, 5, 3), noise(SAMPLES, 5, 4, seed=7)),
        "mse",
        lambda model, batch: F.mse_loss(model(batch[0])[0], batch[1]),
    ),
}


def double(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: double(value) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(double(value) for value in batch)
    return batch.double() if batch.is_floating_point() else batch


def basis_around(model: nn.Module) -> Tensor:
    centre = flatten(model)
    return torch.stack([centre, 0.2 * noise(len(centre), seed=5), 0.2 * noise(len(centre), seed=6)])


def plain_losses(model: nn.Module, basis: Tensor, data: Any, loss: Callable[[nn.Module, Any], Tensor]) -> list[float]:
    found = []
    for row in POINTS:
        vector = (torch.tensor(row, dtype=torch.float64) @ basis.double()).float()
        network = copy.deepcopy(model).eval()
        network.load_state_dict(unflatten(network, vector))
        with torch.no_grad():
            found.append(float(loss(network.double(), double(data))))
    return found


@pytest.mark.parametrize("case", CASES)
def test_losses_equal_a_plain_loop_in_float64(case: str) -> None:
    build, data, loss, plain = CASES[case]
    model = build()
    basis = basis_around(model)
    found = Evaluator(model, data, loss=loss).at(basis, POINTS, samples=True)["train"]
    np.testing.assert_allclose(found.loss, plain_losses(model, basis, data, plain), rtol=1e-5)
    assert found.samples is not None
    np.testing.assert_allclose(found.samples.mean(axis=1, dtype=np.float64), found.loss, rtol=1e-5)


@pytest.mark.parametrize("case", ["regression", "own function", "ids and mask", "segmentation"])
def test_streamed_data_give_the_same_bits_as_data_in_memory(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, data, loss, _ = CASES[case]
    model = build()
    basis = basis_around(model)
    in_memory = Evaluator(model, data, loss=loss, block=40).at(basis, POINTS, samples=True)["train"]
    monkeypatch.setattr(generic_evaluation, "_GROUP_BYTES", 1)  # all points see a block before the next one is read
    keys = list(data) if isinstance(data, dict) else None
    parts = data.values() if isinstance(data, dict) else data
    pieces = [tuple(part[start : start + 32] for part in parts) for start in range(0, SAMPLES, 32)]
    batches = pieces if keys is None else [dict(zip(keys, piece, strict=True)) for piece in pieces]
    streamed = Evaluator(model, batches, loss=loss, block=40, memory_limit=100).at(basis, POINTS, samples=True)["train"]
    assert np.array_equal(streamed.loss, in_memory.loss)
    assert np.array_equal(streamed.error, in_memory.error, equal_nan=True)
    np.testing.assert_array_equal(streamed.samples, in_memory.samples)


def test_a_loader_and_a_data_set_of_a_classifier_give_the_bits_of_its_tensors() -> None:
    model, x, y = mlp(4, 3), noise(SAMPLES, 4), numbers(3, SAMPLES)
    basis = basis_around(model)
    expected = Evaluator(model, (x, y)).at(basis, POINTS)["train"]
    pairs = TensorDataset(x, y)
    for data in (pairs, DataLoader(pairs, batch_size=17), list(DataLoader(pairs, batch_size=40))):
        for limit in (None, 100):
            found = Evaluator(model, {"train": data}, memory_limit=limit).at(basis, POINTS)["train"]
            assert np.array_equal(found.loss, expected.loss)
            assert np.array_equal(found.error, expected.error)
            assert found.guessing == expected.guessing


def test_population_statistics_of_any_network_are_those_of_one_batch_of_all_samples() -> None:
    model, x, y = seeded(Normalised), noise(SAMPLES, 4), noise(SAMPLES, 1, seed=8)
    in_one_batch = copy.deepcopy(model).double().train()
    expected = float(F.mse_loss(in_one_batch(x.double())["output"], y.double()))
    for limit in (None, 100):
        found = evaluate(model, model, [(x[:70], y[:70]), (x[70:], y[70:])], loss="mse", memory_limit=limit)
        assert found["train"].loss == pytest.approx(expected, rel=1e-5)


def test_half_precision_is_exact_to_its_precision() -> None:
    build, data, loss, plain = CASES["regression"]
    model = build().bfloat16()
    found = evaluate(model, model, data, loss=loss)["train"]
    expected = plain_losses(model, torch.stack([flatten(model)] * 3), data, plain)[0]
    assert found.loss == pytest.approx(expected, rel=2e-2)
    assert found.error is None


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(4, 3).requires_grad_(False)
        self.lora_a = nn.Linear(4, 2, bias=False)
        self.lora_b = nn.Linear(2, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.lora_b(self.lora_a(x))


@pytest.mark.parametrize("parameters", [None, "lora_*"])
def test_adapters_move_and_frozen_weights_keep_every_bit(parameters: str | None) -> None:
    model = seeded(Adapted)
    if parameters is not None:
        model.requires_grad_(True)
    before = copy.deepcopy(model.state_dict())
    other = {name: value + 0.1 for name, value in before.items() if "lora" in name}
    data = noise(SAMPLES, 4), numbers(3, SAMPLES)
    seen: list[Tensor] = []

    def watched(network: nn.Module, batch: Any) -> Tensor:
        seen.append(network.base.weight.detach().clone())  # type: ignore[union-attr]
        return F.cross_entropy(network(batch[0]), batch[1], reduction="none")

    curve = fit_curve(model, model, other, data, loss=watched, epochs=2, parameters=parameters)
    assert curve.points.shape[1] == 4 * 2 + 2 * 3
    along(model, curve, data, points=5, loss=watched, parameters=parameters)
    sharpness(model, model, data, loss=watched, directions=1, parameters=parameters)
    assert all(torch.equal(weight, before["base.weight"]) for weight in seen)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    fast = along(model, curve, data, points=5, parameters=parameters)["train"].loss
    np.testing.assert_allclose(
        fast, along(model, curve, data, points=5, loss=watched, parameters=parameters)["train"].loss, rtol=1e-5
    )


def test_frozen_weights_that_differ_are_refused_with_the_remedy() -> None:
    model = seeded(Adapted)
    other = {name: value + 0.1 for name, value in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"frozen parameter 'base.weight'.*parameters='\*'"):
        compare(model, {"a": model, "b": other}, (noise(20, 4), numbers(3, 20)))
    assert flatten(model, other, parameters="*").numel() == sum(value.numel() for value in other.values())


def test_weights_are_modules_and_files_with_any_prefix_everywhere(tmp_path: Path) -> None:
    models = [mlp(4, 3) for _ in range(3)]
    with torch.no_grad():
        for number, model in enumerate(models):
            for parameter in model.parameters():
                parameter.add_(noise(*parameter.shape, seed=number))
    save_file(models[0].state_dict(), tmp_path / "a.safetensors")
    torch.save(
        {"state_dict": {f"module._orig_mod.{k}": v for k, v in models[1].state_dict().items()}}, tmp_path / "b.pt"
    )
    a, b, c = tmp_path / "a.safetensors", str(tmp_path / "b.pt"), torch.compile(models[2])
    wrapped = nn.DataParallel(mlp(4, 3))
    vectors = [flatten(model) for model in models]
    assert all(torch.equal(flatten(wrapped, w), v) for w, v in zip((a, b, c), vectors, strict=True))
    plane = Plane.through(a, b, c, model=wrapped)
    assert torch.equal(plane.origin, vectors[0])
    assert torch.equal(line(a, b, model=wrapped).end, vectors[1])
    assert torch.equal(Plane.through(*models).u, plane.u)
    data = noise(30, 4), numbers(3, 30)
    values = surface(wrapped, plane, data, resolution=3)
    assert np.array_equal(values["train"].loss, surface(models[0], plane, data, resolution=3)["train"].loss)
    assert evaluate(wrapped, b, data)["train"] == evaluate(models[1], vectors[1], data)["train"]
    with pytest.raises(ValueError, match=r"point 'a' is a path; .* model="):
        Plane.through(a, b, c)
    with pytest.raises(FileNotFoundError, match=r"weights: there is no file 'none.pt'"):
        evaluate(wrapped, "none.pt", data)


class Shuffled:
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield torch.randn(4, 4), torch.zeros(4, 2)


def trains(model: nn.Module, batch: Any) -> Tensor:
    return F.mse_loss(model.train()(batch[0]), batch[1], reduction="none").mean(1)


X, Y = noise(8, 4), noise(8, 2)


@pytest.mark.parametrize(
    ("data", "loss", "message"),
    [
        ((X, Y), lambda model, batch: F.mse_loss(model(batch[0]), batch[1]), "loss returns shape .* reduction='none'"),
        ((X, Y), lambda model, batch: model(batch[0]).log().sum(1), "inf.*must be finite"),
        ((X, Y), lambda model, batch: model(batch[0]).sum(1) * torch.rand(1), "remove what is random"),
        ((X, Y), lambda _, batch: batch[0].sum(1), "does not call the model"),
        ((X, Y), trains, "training mode"),
        ((X, Y), "rmse", "loss is 'rmse'; use one of cross_entropy"),
        ((X, Y), nn.MSELoss(), "loss is the module MSELoss"),
        ((X, Y[:, :1]), "mse", "they must be equal"),
        ((X, Y), "bce", "loss 'bce': targets run from"),
        ((X, Y), None, "labels of shape .* loss='mse'"),
        ((X, Y[:, 0]), None, "data type torch.float32; give class numbers .* loss='mse'"),
        ((noise(8, 7), Y), "mse", r"cannot run on the first samples, float32 \(2, 7\)"),
        ((noise(8, 7), Y), lambda model, batch: model(batch[0]).sum(1), r"float32 \(2, 7\), float32 \(2, 2\)"),
        ((X / (torch.arange(8) != 3)[:, None], numbers(2, 8)), None, "sample 3 has values in x that are not finite"),
        ((X, numbers(2, 8) + 1), None, "labels of split 'train' run from 1 to 2"),
        ({"x": X, "labels": numbers(2, 8) + 2}, None, "targets run from .* the network has 2 classes"),
        ((X, Y[:5]), "mse", "first dimension must count the same samples"),
        (iter([(X, Y)]), "mse", "is an iterator"),
        (DataLoader(TensorDataset(X, Y), shuffle=True), "mse", "the DataLoader shuffles.*shuffle=False"),
        (Shuffled(), "mse", "gives other samples when it is walked again"),
        ([], "mse", "split 'train' has no samples"),
        ("data", "mse", "split 'train' is not a pair .* but a str"),
        ({"a": X, "b": Y}, "mse", "none is the target"),
    ],
)
def test_what_makes_no_sense_is_named(data: Any, loss: Any, message: str) -> None:
    class Model(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)

    with pytest.raises(ValueError, match=f"(?s){message}"):
        Evaluator(seeded(lambda: Model(nn.Linear(4, 2))), data, loss=loss)


def test_a_regression_is_compared_in_its_own_unit_without_errors(tmp_path: Path) -> None:
    x = noise(60, 4)
    y = 1e-3 * x[:, :2]
    a, b = mlp(), mlp()
    with torch.no_grad():
        b[2].bias.add_(0.02)  # type: ignore[index, union-attr, operator]
    found = compare(
        a, {"a": a, "b": b}, {"train": (x, y), "test": (x, y)}, loss="mse", resolution=5, epochs=1, state=tmp_path
    )
    verdict = found.verdict
    assert verdict is not None
    ends = [minimum.final["train_loss"] for minimum in found.minima.values()]
    assert verdict["tolerance"] == pytest.approx(0.05 * max(ends))
    assert verdict["unit"] == ""
    assert not {"nats", "error"} & set(verdict["sentence"].split())
    assert verdict["test_error_verdict"] is None
    assert found.provenance["parameters"] == f"all {flatten(a).numel()} weights"
    assert found.provenance["fitting"] == {"epochs": 1}
    assert found.minima["a"].final["sparsity"] == 0.0
    saved = (tmp_path / "valley.fit").read_bytes()
    continued = compare(
        a, {"a": a, "b": b}, {"train": (x, y), "test": (x, y)}, loss="mse", resolution=5, epochs=1, state=tmp_path
    )
    assert (tmp_path / "valley.fit").read_bytes() == saved
    assert continued.verdict == verdict
    found.save(tmp_path / "landscape.h5")
    again = type(found).open(tmp_path / "landscape.h5")
    assert again.planes["valley"].loss_unit == ""
    from valleyscope.landscape.report import report_html

    page = report_html(again)
    shown = page[page.index("<body") : page.index("What the words mean")]
    assert not {"error", "nats"} & set(re.findall(r"\w+", shown))
    assert "mse" in shown
    assert "nats" not in str(again._repr_html_()[:4000])
    assert repr(again).startswith("Landscape('comparison', ")


def test_resnet18_of_torchvision_with_population_statistics_equals_one_batch_in_float64() -> None:
    from torchvision.models import resnet18

    model = seeded(lambda: resnet18(num_classes=5))
    x, y = noise(20, 3, 16, 16), numbers(5, 20)
    centre = flatten(model)
    basis = torch.stack([centre, 0.01 * noise(len(centre), seed=5)])
    found = Evaluator(model, (x, y)).at(basis, [[1.0, 0.0], [1.0, -1.0]])["train"].loss
    for shift, loss in zip((0.0, -1.0), found, strict=True):
        network = copy.deepcopy(model).train()
        network.load_state_dict({**network.state_dict(), **unflatten(network, centre + shift * basis[1])})
        with torch.no_grad():
            assert loss == pytest.approx(float(F.cross_entropy(network.double()(x.double()), y)), rel=1e-5)


def test_a_vision_transformer_and_a_model_of_transformers_with_ids_and_mask() -> None:
    from torchvision.models import VisionTransformer

    transformers = pytest.importorskip("transformers")
    vit = seeded(lambda: VisionTransformer(8, 4, 1, 2, 8, 16, dropout=0.1, num_classes=4))
    with torch.no_grad():
        for name, parameter in vit.named_parameters():
            if "heads" in name:  # zero at first
                parameter.add_(0.1 * noise(*parameter.shape))
    images = noise(SAMPLES, 3, 8, 8), numbers(4, SAMPLES)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, num_labels=3
    )
    bert = seeded(lambda: transformers.BertForSequenceClassification(config))
    tokens = {
        "input_ids": numbers(20, SAMPLES, 6),
        "attention_mask": torch.ones(SAMPLES, 6, dtype=torch.int64).tril(3),
        "labels": numbers(3, SAMPLES),
    }

    def plain_bert(model: nn.Module, batch: Any) -> Tensor:
        return F.cross_entropy(
            model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits, batch["labels"]
        )

    cases: list[tuple[nn.Module, Any, Callable[[nn.Module, Any], Tensor]]] = [
        (vit, images, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1])),
        (bert, tokens, plain_bert),
    ]
    for model, data, plain in cases:
        basis = basis_around(model)
        found = Evaluator(model, data).at(basis, POINTS)["train"]
        np.testing.assert_allclose(found.loss, plain_losses(model, basis, data, plain), rtol=1e-5)


MEMORY = """
import resource, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from valleyscope import Evaluator, flatten

class Images(Dataset):
    def __len__(self): return 50_000
    def __getitem__(self, n):
        return torch.full((3, 32, 32), (n % 7) / 7) + torch.linspace(0, n % 3, 3072).view(3, 32, 32), n % 10

torch.set_num_threads(1)
block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())
model = nn.Sequential(block(3, 16), block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = Evaluator(model, DataLoader(Images(), batch_size=500), memory_limit=2**28).at(flatten(model)[None], [[1.0]])
print(float(found["train"].loss[0]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.mark.drill
def test_fifty_thousand_images_go_through_a_network_with_batch_norm_inside_two_gigabytes() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loss, gigabytes = map(float, done.stdout.split())
    assert np.isfinite(loss)
    assert gigabytes < 2.0


def test_an_evaluator_measures_in_evaluation_mode_and_leaves_the_module_in_its_own() -> None:
    model = seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))).train()
    data = noise(30, 4), noise(30, 2, seed=3)
    value = evaluate(model, model, data, loss="mse")["train"].loss
    assert model.training
    assert value == evaluate(model.eval(), model, data, loss="mse")["train"].loss
