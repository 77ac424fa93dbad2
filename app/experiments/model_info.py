"""What is known of a network without building it: tensors, size, cost and initial norms, without torch in this process.

A subprocess with torch (`model_inspector`) inspects a network; the result is kept in memory and on disk
(`model_info_cache`).
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from valleyscope.app.experiments.json_subprocess import JsonSubprocess, SubprocessFailed
from valleyscope.app.experiments.model_info_cache import DiskCache
from valleyscope.app.experiments.spec_parts import Model
from valleyscope.training.losses import LossName
from valleyscope.training.settings import Training

log = logging.getLogger(__name__)

_MAX_ENTRIES = 256
_TIMEOUT_SECONDS = 60.0
_RESTART_PARAMETERS = 5_000_000


class BadModel(ValueError):
    """The network cannot be built; the message says why."""


@dataclass(frozen=True)
class ModelInfo:
    """Facts about a network: `tensors` has the shape and the safetensors type of each tensor by name.

    `norms` are the smallest and the median norm of the groups before training, by structure and by whether biases
    belong to the group; empty if the network is too large to build. `groups` are the numbers of filters of its layers
    but the output.
    """

    parameters: int
    multiply_adds: int
    tensors: dict[str, tuple[tuple[int, ...], str]]
    norms: dict[tuple[str, bool], tuple[float, float]]
    groups: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ModelInfo:
        return cls(
            parameters=values["parameters"],
            multiply_adds=values["multiply_adds"],
            tensors={name: (tuple(shape), kind) for name, shape, kind in values["tensors"]},
            norms={(structure, bias): (low, middle) for structure, bias, low, middle in values["norms"]},
            groups=tuple(values.get("groups", ())),
        )


class ModelInfoCache:
    """Inspects networks on demand, one at a time, and keeps the results. Cached results never wait."""

    def __init__(self, data_root: Path | None, max_parameters: int, disk_cache: DiskCache | None = None) -> None:
        self._data_root = data_root
        self._max_parameters = max_parameters
        self._disk_cache = disk_cache
        self._entries: dict[str, ModelInfo | BadModel] = {}
        self._fewest: dict[str, float] = {}
        self._inspect_lock = threading.Lock()
        self._subprocess = JsonSubprocess("valleyscope.app.experiments.model_inspector")

    def prepare(self) -> None:
        """Start the subprocess, which takes seconds, ahead of the first inspection."""
        self._subprocess.prepare()

    def close(self) -> None:
        self._subprocess.close()

    def cached(self, model: Model, dataset: str, loss: LossName = "cross_entropy") -> ModelInfo | None:
        found = self._find(model, dataset, loss)
        return found if isinstance(found, ModelInfo) else None

    def inspect(self, model: Model, dataset: str, loss: LossName = "cross_entropy") -> ModelInfo:
        """The facts about a network for a data set; raises BadModel."""
        found = self._find(model, dataset, loss)
        if found is None:
            with self._inspect_lock:
                # Another thread may have inspected the same network meanwhile.
                key = (model, dataset, loss)
                found = self._find(*key) or self._keep(*key, self._request(*key))
        if isinstance(found, BadModel):
            raise BadModel(str(found))
        return found

    def fewest_share(self, model: Model, dataset: str, loss: LossName, run: Training) -> float:
        """The smallest share of multiply-adds that the settings of a run can leave; raises BadModel."""
        fields = ("bias", "skip_output", "tie_residual")
        request = self._request_for(model, dataset, loss) | {
            "floor": run.floor,
            "partition": {field: getattr(run, field) for field in fields},
        }
        key = json.dumps(request, sort_keys=True, default=str)
        if key not in self._fewest:
            with self._inspect_lock:
                answer = self._ask(model, request)
            if "error" in answer:
                raise BadModel(answer["error"])
            if len(self._fewest) >= _MAX_ENTRIES:
                self._fewest.clear()
            self._fewest[key] = answer["fewest"]
        return self._fewest[key]

    def _find(self, model: Model, dataset: str, loss: LossName) -> ModelInfo | BadModel | None:
        known = self._entries.get(_key(model, dataset, loss))
        if known is not None:
            return known
        stored = None if self._disk_cache is None else self._disk_cache.get(model, dataset)
        if stored is None or stored["parameters"] > self._max_parameters:
            return None
        return self._keep(model, dataset, loss, ModelInfo.from_json(stored))

    def _keep(self, model: Model, dataset: str, loss: LossName, found: ModelInfo | BadModel) -> ModelInfo | BadModel:
        if len(self._entries) >= _MAX_ENTRIES:
            self._entries.clear()
        self._entries[_key(model, dataset, loss)] = found
        return found

    def _request(self, model: Model, dataset: str, loss: LossName) -> ModelInfo | BadModel:
        answer = self._ask(model, self._request_for(model, dataset, loss))
        if answer.get("parameters", 0) > _RESTART_PARAMETERS:  # frees the memory of a large network
            self._subprocess.close()
            self._subprocess.prepare()
        if "error" in answer:
            return BadModel(answer["error"])
        if self._disk_cache is not None:
            self._disk_cache.put(model, dataset, answer)
        return ModelInfo.from_json(answer)

    def _request_for(self, model: Model, dataset: str, loss: LossName) -> dict[str, Any]:
        return {
            "model": model.model_dump(),
            "dataset": dataset,
            "loss": loss,
            "data_root": None if self._data_root is None else str(self._data_root),
            "max_parameters": self._max_parameters,
        }

    def _ask(self, model: Model, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._subprocess.request(request, _TIMEOUT_SECONDS)
        except SubprocessFailed as error:
            log.warning("inspecting %s failed: %s", model, error)
            raise BadModel(f"model {model} cannot be built here ({error}): choose a smaller one") from error


def _key(model: Model, dataset: str, loss: LossName) -> str:
    return json.dumps([model.model_dump(), dataset, loss], sort_keys=True, default=str)
