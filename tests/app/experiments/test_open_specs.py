"""Specs with a loss of numbers, other optimisers, and networks and data of other libraries."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from valleyscope.app.api.submission_limits import SubmissionLimits
from valleyscope.app.experiments.experiment_writer import ExperimentWriter
from valleyscope.app.experiments.model_info import ModelInfoCache
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.app.settings import Settings
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.tasks.tasks import run_task
from valleyscope.landscape.json_encoding import path_json, plane_json
from valleyscope.landscape.report import report_html
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.training import build_model, load_dataset
from valleyscope.training.checkpoints import read_checkpoint


def momentum_sgd(parameters: list[torch.Tensor], lr: float, beta: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr, momentum=beta)


def run_here(spec: Spec, directory: Path) -> Landscape:
    """All tasks of a spec in this process."""
    writer = ExperimentWriter(spec, directory)
    try:
        for task in writer.tasks:
            writer.add_result(
                task, run_task(Assignment(task, spec, directory, None, {}), lambda *_: None, lambda: False)
            )
        writer.snapshot()
    finally:
        writer.close()
    return Landscape.open(directory / "landscape.h5")


def regression(path: Path) -> str:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(90, 4)).astype("f4")
    y = x[:, :2] ** 2 - x[:, 1:3]
    np.savez(path, x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    return f"npz:{path}"


def test_a_regression_runs_with_any_optimiser_and_is_shown_in_its_own_unit(tmp_path: Path) -> None:
    own = f"{__name__}:momentum_sgd"
    spec = parse_spec(
        {
            "dataset": regression(tmp_path / "data.npz"),
            "model": {"name": "mlp", "hidden": [6]},
            "loss": "mse",
            "training": {"epochs": 2, "batch_size": 20, "lr": 0.05, "momentum": 0.5},
            "minima": {
                "adamw": {"optimizer": "adamw", "lr": 0.01},
                "sam": {"optimizer": "sam", "rho": 0.1},
                "own": {"optimizer": own, "options": {"beta": 0.5}, "seed": 0},
                "sgd": {},
                "pruned": {"optimizer": "altsdp", "sparsity": 0.3},
            },
            "curves": {"valley": {"from": "adamw", "to": "sam", "epochs": 1}},
            "planes": {"valley": {"through": ["adamw", "sam", "valley.bend"], "resolution": 3}},
            "points": 3,
            "verdict": {"resamples": 100},
        }
    )
    found = run_here(spec, tmp_path / "out")
    data = load_dataset(spec.dataset, loss="mse")
    for name, minimum in found.minima.items():
        model = build_model(spec.model.model_dump(), data)
        model.load_state_dict(read_checkpoint(tmp_path / "out" / f"{name}.safetensors").state)
        with torch.no_grad():
            expected = float(((model.double()(data.x_test.double()) - data.y_test.double()) ** 2).mean())
        assert minimum.final["test_loss"] == pytest.approx(expected, rel=1e-5)
        assert not any("accuracy" in key for key in (*minimum.final, *minimum.epochs))
    one, two = (read_checkpoint(tmp_path / "out" / f"{name}.safetensors").state for name in ("own", "sgd"))
    assert all(torch.equal(one[key], two[key]) for key in one), "the operator's optimizer is SGD with momentum"
    assert found.minima["pruned"].final["zero_groups"] > 0

    plane, line = found.planes["valley"], found.lines["adamw-sam"]
    assert plane.loss_unit == line.loss_unit == ""
    assert plane_json(plane)["loss_unit"] == path_json(line)["loss_unit"] == ""
    assert np.isnan(plane.splits["test"].error).all()
    assert found.verdict is not None
    assert found.verdict["unit"] == ""
    assert found.verdict["tolerance"] == pytest.approx(0.05 * max(line.splits["train"].loss[[0, -1]]))
    page = report_html(found)
    shown = page[page.index("<body") : page.index("What the words mean")]
    assert not {"error", "nats", "accuracy"} & set(re.findall(r"\w+", shown))


def images(folder: Path) -> None:
    """Two classes: bright and dark pictures, wider than high."""
    from PIL import Image

    generator = np.random.default_rng(1)
    for split, count in (("train", 6), ("val", 3)):
        for label, low in (("bright", 150), ("dark", 0)):
            (folder / split / label).mkdir(parents=True)
            for number in range(count):
                pixels = generator.integers(low, low + 100, (10, 14, 3)).astype("u1")
                Image.fromarray(pixels).save(folder / split / label / f"{number}.png")


def test_a_folder_of_images_is_cut_normalised_and_mapped_from_its_cache(tmp_path: Path) -> None:
    from PIL import Image

    images(tmp_path / "photos")
    name = f"folder:{tmp_path / 'photos'}@10"
    found = load_dataset(name, root=tmp_path / "cache")
    assert (found.shape, found.classes, len(found.x_train), len(found.x_test)) == ((3, 10, 10), 2, 12, 6)
    files = sorted((tmp_path / "photos" / "train").rglob("*.png"))
    raw = np.stack([np.asarray(Image.open(file))[:, 2:12] for file in files]) / 255.0  # the middle square
    expected = (raw - raw.mean((0, 1, 2))) / raw.std((0, 1, 2))
    np.testing.assert_allclose(found.x_train.permute(0, 2, 3, 1).numpy(), expected, atol=1e-5)
    assert found.y_train.tolist() == [0] * 6 + [1] * 6
    assert found.x_train.is_contiguous(memory_format=torch.channels_last), "no copy for convolutions"
    again = load_dataset(name, root=tmp_path / "cache")
    assert again.fingerprint == found.fingerprint
    assert len(list((tmp_path / "cache" / "prepared-images").iterdir())) == 1
    assert load_dataset(name.replace("@10", "@6"), root=tmp_path / "cache").shape == (3, 6, 6)
    with pytest.raises(ValueError, match=r"write folder:NAME@64"):
        load_dataset(f"folder:{tmp_path / 'photos'}")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_dataset("folder:/nowhere@32")


def test_a_data_set_of_the_library_datasets_has_the_images_of_the_folder_it_was_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("VALLEY_ALLOW_DOWNLOADS", raising=False)
    import datasets
    from PIL import Image

    images(tmp_path / "photos")
    features = datasets.Features(
        {
            "picture": datasets.Image(),
            "kind": datasets.ClassLabel(names=["bright", "dark"]),
            "note": datasets.Value("string"),
        }
    )
    splits = {}
    for split in ("train", "val"):
        files = sorted((tmp_path / "photos" / split).rglob("*.png"))
        columns = {
            "picture": [Image.open(file) for file in files],
            "kind": [file.parent.name for file in files],
            "note": [file.stem for file in files],
        }
        splits["validation" if split == "val" else split] = datasets.Dataset.from_dict(columns, features=features)
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")

    found = load_dataset(f"hf:{tmp_path / 'saved'}@10", root=tmp_path / "cache")
    folder = load_dataset(f"folder:{tmp_path / 'photos'}@10", root=tmp_path / "cache")
    assert (found.classes, found.fingerprint) == (folder.classes, folder.fingerprint)
    for (x, y), (same_x, same_y) in zip(found.splits.values(), folder.splits.values(), strict=True):
        assert torch.equal(x, same_x)
        assert torch.equal(y, same_y)
    asked: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: asked.append(address))
    with pytest.raises(FileNotFoundError, match="Give a folder of save_to_disk"):
        load_dataset("hf:no-such-data-set@10", root=tmp_path / "cache")
    assert asked == [], "the hub is not asked"
    datasets.DatasetDict({"train": splits["train"]}).save_to_disk(tmp_path / "half")
    with pytest.raises(ValueError, match="has the splits train; it needs train and test"):
        load_dataset(f"hf:{tmp_path / 'half'}@10", root=tmp_path / "cache")
    plain = {split: rows.remove_columns("picture") for split, rows in splits.items()}
    datasets.DatasetDict(plain).save_to_disk(tmp_path / "plain")
    with pytest.raises(ValueError, match="has the columns kind, note; it needs one of images"):
        load_dataset(f"hf:{tmp_path / 'plain'}@10", root=tmp_path / "cache")


def test_networks_of_other_libraries_fit_the_data_and_name_what_does_not(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    config.patch_size = 4
    config.architectures = ["ViTForImageClassification"]
    config.save_pretrained(tmp_path / "vit")
    digits = load_dataset("digits")
    names = [{"name": "torchvision:squeezenet1_1"}, {"name": f"hf:{tmp_path / 'vit'}"}]
    if "timm" in __import__("sys").modules or __import__("importlib").util.find_spec("timm"):
        names.append({"name": "timm:test_vit", "img_size": 8, "patch_size": 4})
    wide = torch.nn.functional.interpolate(digits.x_train[:4], size=32)
    for name in names:
        samples = digits if name["name"] != "torchvision:squeezenet1_1" else None
        shape = (1, 8, 8) if samples is not None else (1, 32, 32)
        model = build_model(name, input_shape=shape, classes=10, seed=0).eval()
        same = build_model(name, input_shape=shape, classes=10, seed=0).eval()
        x = digits.x_train[:4] if samples is not None else wide
        assert model(x).shape == (4, 10)
        assert torch.equal(model(x), same(x))
    for wrong, message in {
        "torchvision:resnet19": "torchvision has no such network",
        "torchvision:vit_b_16": "does not fit samples of shape",
        "hf:/nowhere": "Only files of this machine are read",
    }.items():
        with pytest.raises(ValueError, match=message):
            build_model(wrong, digits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "mse"}, "needs numbers as targets"),
        ({"minima": {"a": {"optimizer": "adam"}}}, "optimizer 'adam' is unknown: use one of sgd, altsdp, adamw, sam"),
        ({"minima": {"a": {"optimizer": "adamw", "rho": 0.1}}}, "has no such option; it has betas, eps"),
        ({"minima": {"a": {"optimizer": "adamw", "momentum": 0.9}}}, "has no such option: give betas"),
        ({"minima": {"a": {"optimizer": "sam", "betas": [0.9, 0.99]}}}, "has no such option; it has rho"),
        ({"minima": {"a": {"optimizer": "adamw", "betas": [0.9, 1.0]}}}, "less than 1"),
        ({"minima": {"a": {"optimizer": "sam", "method": "ns", "sparsity": 0.5}}}, "contradicts method"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_work_starts(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSpec, match=re.escape(message)):
        parse_spec({"minima": {"a": {}}} | change)


def test_a_server_offers_only_what_its_operator_allows(tmp_path: Path) -> None:
    settings = Settings.load(
        home=tmp_path, allowed_models="torchvision:resnet18", allowed_optimizers=f"{__name__}:momentum_sgd"
    )
    limits = SubmissionLimits(settings, ModelInfoCache(None, 10**9), lambda _: None)

    def fields(**changes: Any) -> set[str]:
        try:
            limits._check_fields(parse_spec({"minima": {"a": {}}} | changes))
        except ValidationError as error:
            return {".".join(map(str, detail["loc"])) for detail in error.errors()}
        return set()

    assert fields(model="torchvision:resnet18", minima={"a": {"optimizer": f"{__name__}:momentum_sgd"}}) == set()
    assert fields(model="torchvision:resnet34") == {"model.name"}
    assert fields(dataset="folder:/etc@32") == {"dataset"}
    assert fields(minima={"a": {"optimizer": "os:system"}}) == {"minima.a.optimizer"}
