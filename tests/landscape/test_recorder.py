"""Snapshots of a training of one's own, and the common plane of several runs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from valleyscope import Landscape, Recorder, flatten, lightning_callback, surface, trajectories, transformers_callback
from valleyscope.landscape.figures import contour
from valleyscope.landscape.importers import NotImportable, import_files
from valleyscope.landscape.recorder import about_snapshot, snapshots_in
from valleyscope.landscape.report import report_html


def trained(folder: Path, seed: int) -> tuple[Recorder, list[torch.Tensor]]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        x = torch.randn(40, 3)
    recorder = Recorder(model, folder, every=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    weights = []
    for step in range(9):
        nn.functional.mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()
        optimizer.zero_grad()
        weights.append(flatten(model))
        recorder.record(step=step)
    return recorder, weights


def test_snapshots_are_the_weights_of_every_second_call(tmp_path: Path) -> None:
    recorder, weights = trained(tmp_path / "a", 0)
    files = recorder.snapshots()
    assert len(files) == 5
    for file, expected in zip(files, weights[::2], strict=True):
        assert torch.equal(flatten(recorder.model, file), expected)
    assert about_snapshot(files[1]) == {"call": "3", "step": "2"}
    Recorder(recorder.model, tmp_path / "a").record()
    assert len(snapshots_in(tmp_path / "a")) == 6


def test_several_runs_share_the_plane_of_their_leading_singular_vectors(tmp_path: Path) -> None:
    (first, one), (_, two) = trained(tmp_path / "a", 0), trained(tmp_path / "b", 1)
    found = first.trajectories(other=tmp_path / "b")
    offsets = (torch.stack([*one[::2], *two[::2]]) - one[-1]).double().numpy()
    left, sizes, _ = np.linalg.svd(offsets, full_matrices=False)
    np.testing.assert_allclose(found.plane.explained, (sizes[:2] ** 2 / (sizes**2).sum()), rtol=1e-5)
    projected = np.concatenate([found.paths["run"], found.paths["other"]])
    np.testing.assert_allclose(np.abs(projected), np.abs(left[:, :2] * sizes[:2]), atol=1e-5)
    distances = np.concatenate([found.distances["run"], found.distances["other"]])
    whole = (offsets**2).sum(axis=1)
    np.testing.assert_allclose(distances**2 + (projected**2).sum(axis=1), whole, atol=1e-6)
    x = torch.randn(20, 3)
    values = surface(first.model, found.plane, (x, x[:, :1]), resolution=5, loss="mse")
    figure = found.figure(values)
    names = [trace.name for trace in figure.data]
    assert {"trajectory:run", "trajectory:other"} <= set(names)
    assert f"{100 * found.plane.explained[0]:.1f} %" in figure.layout.xaxis.title.text
    assert len(found.figure().data) == 2


def test_a_folder_without_snapshots_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run 'a': there are no snapshots"):
        trajectories(nn.Linear(2, 1), {"a": tmp_path})


def test_imported_folders_are_the_runs_of_the_recorder_in_the_same_plane(tmp_path: Path) -> None:
    """The importer reads files piece by piece and knows no network; the recorder stacks vectors."""
    (first, _), _ = trained(tmp_path / "a", 0), trained(tmp_path / "b", 1)
    expected = first.trajectories(b=tmp_path / "b")
    (run,) = import_files([tmp_path / "a", tmp_path / "b"])
    run.landscape.save(tmp_path / "landscape.h5")
    plane = Landscape.open(tmp_path / "landscape.h5").planes["trajectories"]
    np.testing.assert_allclose(plane.explained, expected.plane.explained, rtol=1e-5)  # type: ignore[arg-type]
    for name, wanted in (("a", "run"), ("b", "b")):
        places, path = plane.paths[f"trajectory:{name}"], expected.paths[wanted]
        signs = np.sign(plane.paths["trajectory:b"][0] * expected.paths["b"][0])
        np.testing.assert_allclose(places * signs, path, atol=1e-5)
        np.testing.assert_allclose(plane.offsets[f"trajectory:{name}"], expected.distances[wanted], atol=1e-4)
    assert run.landscape.minima["a"].epochs == {}
    page = report_html(run.landscape)
    share = f"{100 * expected.plane.explained[0]:.1f}"  # type: ignore[index]
    assert "Snapshots lie up to" in page
    assert f'"explained":[{expected.plane.explained[0]:.4f}'[:18] in page  # type: ignore[index]
    title = contour(plane).layout.xaxis.title.text
    assert f"{share} % of the squared distances" in title
    again = expected.landscape()
    again.save(tmp_path / "again.h5")
    assert Landscape.open(tmp_path / "again.h5").planes["trajectories"].explained == expected.plane.explained


def test_damaged_or_foreign_snapshots_are_refused(tmp_path: Path) -> None:
    recorder, _ = trained(tmp_path / "a", 0)
    file = recorder.snapshots()[2]
    content = file.read_bytes()
    for damaged in (content[:-8], b"\xff" * 40, (10**9).to_bytes(8, "little") + b"{}", content.replace(b"F32", b"I32")):
        file.write_bytes(damaged)
        with pytest.raises(NotImportable, match=file.name):
            import_files([tmp_path / "a"])


def test_the_trainer_of_lightning_records_its_epochs(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(3, 1)

        def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
            loss = self.net(batch[0]).square().mean()
            self.log("train_loss", loss, on_epoch=True)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Module()
    recorder = Recorder(module, tmp_path / "run")
    start = flatten(module)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 3)), batch_size=4)
    trainer = lightning.Trainer(
        max_epochs=3, callbacks=[lightning_callback(recorder)], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(module, loader)
    files = recorder.snapshots()
    assert torch.equal(flatten(module, files[0]), start)
    assert torch.equal(flatten(module, files[-1]), flatten(module))
    assert [about_snapshot(file)["epoch"] for file in files] == ["0", "1", "2", "3"]
    (imported,) = import_files([tmp_path / "run"])
    assert imported.landscape.minima["run"].epochs["epoch"].tolist() == [0, 1, 2, 3]


def test_the_trainer_of_transformers_records_its_steps(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(3, 1)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": (self.net(x) - labels).square().mean()}

    model = Model()
    recorder = Recorder(model, tmp_path / "run", every=2)
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), num_train_epochs=2, per_device_train_batch_size=2, report_to=[],
        save_strategy="no", use_cpu=True, disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    samples = [{"x": torch.randn(3), "labels": torch.ones(1)} for _ in range(8)]
    callback = transformers_callback(recorder, when="step")
    transformers.Trainer(model, options, train_dataset=samples, callbacks=[callback]).train()
    assert [about_snapshot(file)["step"] for file in recorder.snapshots()] == ["0", "2", "4", "6", "8"]
    assert torch.equal(flatten(model, recorder.snapshots()[-1]), flatten(model))


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(nn.Linear(2, 2), tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError, match="pip install transformers"):
        transformers_callback(recorder)
    with pytest.raises(ValueError, match="use 'epoch' or 'step'"):
        lightning_callback(recorder, when="batch")  # type: ignore[arg-type]
