"""Blueprints of networks: names and shapes of tensors, size, cost and initial norms, without torch in this process.

A process with torch draws a model_info (`valleyscope.app.experiments.model_inspector`); it is kept for the next
question, and on the disk
(`valleyscope.app.experiments.model_info_cache`) for the time after a restart.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from valleyscope.app.experiments.json_subprocess import JsonSubprocess, SubprocessFailed
from valleyscope.app.experiments.model_info_cache import DiskCache
from valleyscope.app.experiments.spec import Model

log = logging.getLogger(__name__)

_KEPT = 256
_PATIENCE = 60.0
_LARGE = 5_000_000


class BadModel(ValueError):
    """A network that cannot be built as described; the message says why."""


@dataclass(frozen=True)
class Norms:
    """The smallest and the median norm of a network's groups before training."""

    smallest: float
    median: float


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a network without having it: `tensors` are the shape and the safetensors type of each by name.

    `norms` are by structure and by whether biases are in the group; empty for networks that are too large to build.
    """

    parameters: int
    multiply_adds: int
    tensors: dict[str, tuple[tuple[int, ...], str]]
    norms: dict[tuple[str, bool], Norms]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ModelInfo:
        return cls(
            parameters=values["parameters"],
            multiply_adds=values["multiply_adds"],
            tensors={name: (tuple(shape), kind) for name, shape, kind in values["tensors"]},
            norms={(structure, bias): Norms(low, middle) for structure, bias, low, middle in values["norms"]},
        )


class ModelInfoCache:
    """Draws model_info_cache on demand, one at a time, and keeps the latest. Who asks for one that is known never
    waits."""

    def __init__(self, data_root: Path | None, largest: int, album: DiskCache | None = None) -> None:
        self._data_root = data_root
        self._largest = largest
        self._disk_cache = album
        self._kept: OrderedDict[str, ModelInfo | BadModel] = OrderedDict()
        self._keeping = threading.Lock()
        self._drawing = threading.Lock()
        self._subprocess = JsonSubprocess("valleyscope.app.experiments.model_inspector")

    def prepare(self) -> None:
        """Get ready for the first drawing, which would take seconds otherwise."""
        self._subprocess.prepare()

    def close(self) -> None:
        self._subprocess.close()

    def known(self, model: Model, dataset: str) -> ModelInfo | None:
        """The model_info, if it was drawn before."""
        found = self._recall(model, dataset)
        return found if isinstance(found, ModelInfo) else None

    def draw(self, model: Model, dataset: str) -> ModelInfo:
        """The model_info of a network for a data set; raises BadModel."""
        found = self._recall(model, dataset)
        if found is None:
            with self._drawing:
                # Somebody else may have asked for the same one meanwhile.
                found = self._recall(model, dataset) or self._keep(model, dataset, self._ask(model, dataset))
        if isinstance(found, BadModel):
            raise BadModel(str(found))
        return found

    def _recall(self, model: Model, dataset: str) -> ModelInfo | BadModel | None:
        key = _key(model, dataset)
        with self._keeping:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        drawn = None if self._disk_cache is None else self._disk_cache.find(model, dataset)
        if drawn is None or drawn["parameters"] > self._largest:
            return None
        return self._keep(model, dataset, ModelInfo.from_json(drawn))

    def _keep(self, model: Model, dataset: str, found: ModelInfo | BadModel) -> ModelInfo | BadModel:
        with self._keeping:
            self._kept[_key(model, dataset)] = found
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    def _ask(self, model: Model, dataset: str) -> ModelInfo | BadModel:
        question = {
            "model": model.model_dump(),
            "dataset": dataset,
            "data_root": None if self._data_root is None else str(self._data_root),
            "largest": self._largest,
        }
        try:
            answer = self._subprocess.request(question, _PATIENCE)
        except SubprocessFailed as error:
            log.warning("drawing %s failed: %s", model, error)
            raise BadModel(f"model {model} cannot be built here ({error}): choose a smaller one") from error
        if answer.get("parameters", 0) > _LARGE:  # what a large network took is not given back otherwise
            self._subprocess.close()
            self._subprocess.prepare()
        if "error" in answer:
            return BadModel(answer["error"])
        if self._disk_cache is not None:
            self._disk_cache.add(model, dataset, answer)
        return ModelInfo.from_json(answer)


def _key(model: Model, dataset: str) -> str:
    return json.dumps([model.model_dump(), dataset], sort_keys=True, default=str)
