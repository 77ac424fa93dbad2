"""The reproductions of parts.yaml: their specs, what they cost, and the files that they need."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml

from valleyscope.app.experiments.cost import Estimate, Work, estimate, split_sizes
from valleyscope.app.experiments.model_info import ModelInfo
from valleyscope.app.experiments.spec import Spec, read_spec
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.training.dataset_sources import SOURCES
from valleyscope.training.models import build_model
from valleyscope.training.models.operation_count import count_parameters, multiply_adds

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Part:
    """One reproduction: its spec, the photographs that it needs, and what of the paper stands beside it."""

    name: str
    title: str
    size: str
    spec_path: str
    data: dict[str, Any] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def spec(self) -> Spec:
        return read_spec(FOLDER / self.spec_path)

    def landscape(self) -> Landscape | None:
        """What was computed and kept; None if nothing was yet."""
        path = self.folder / "landscape.h5"
        return Landscape.open(path) if path.exists() else None


@cache
def parts() -> dict[str, Part]:
    listed = yaml.safe_load((FOLDER / "parts.yaml").read_text(encoding="utf-8"))
    return {name: Part(name, spec_path=values.pop("spec"), **values) for name, values in listed.items()}


def cost(spec: Spec, data: dict[str, Any] | None = None) -> Estimate:
    """The estimate for a spec, with the multiply-adds of its own network, and for photographs their own number."""
    source = SOURCES["cifar10" if data else spec.dataset]
    with torch.device("meta"):
        model = build_model(spec.model.model_dump(), source)
        operations = multiply_adds(model, source.shape)
    tensors = {name: (tuple(tensor.shape), "F32") for name, tensor in model.state_dict().items()}
    found = estimate(spec, ModelInfo(count_parameters(model), operations, tensors, norms={}))
    if not data:
        return found
    share = (data["train"] + data["test"]) / sum(split_sizes(spec.dataset))
    pieces = {
        stage: tuple(Work(work.multiply_adds * share, round(work.steps * share)) for work in works)
        for stage, works in found.pieces.items()
    }
    return Estimate(found.parameters, found.multiply_adds, pieces, found.minima, found.lines, found.notes)
