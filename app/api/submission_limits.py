"""The limits of this server on valid specs: data sets, models, uploads, epochs, resolution and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from valleyscope.app.experiments.cost import Estimate, estimate
from valleyscope.app.experiments.curvature_spec import size_errors
from valleyscope.app.experiments.model_info import BadModel, ModelInfo, ModelInfoCache
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.spec_errors import InvalidField, Path, raise_errors
from valleyscope.app.experiments.spec_parts import Model
from valleyscope.app.experiments.wishes import wish_errors
from valleyscope.app.settings import Settings
from valleyscope.app.storage.checkpoint_table import CheckpointRow
from valleyscope.training.dataset_sources import SOURCES
from valleyscope.training.losses import LossName
from valleyscope.training.models import describe_models
from valleyscope.training.optimizers import OPTIMIZERS

_LARGEST_OPTION = 16_384
_LONGEST_OPTION = 64


class TooExpensive(ValueError):
    """A spec that costs more than the limit of this server."""

    def __init__(self, cost: Estimate, limit: float) -> None:
        super().__init__(
            f"the experiment takes about {cost.gpu_hours:.3g} GPU-hours ({cost.core_hours:.3g} core-hours), "
            f"the limit is {limit:g}: lower epochs, resolution or samples, or submit with force: true"
        )
        self.cost = cost
        self.limit = limit


class SubmissionLimits:
    """Checks submitted specs. `find_checkpoint` returns an uploaded checkpoint by its id, or None."""

    def __init__(
        self,
        settings: Settings,
        model_info_cache: ModelInfoCache,
        find_checkpoint: Callable[[str], CheckpointRow | None],
    ) -> None:
        self._settings = settings
        self._model_info_cache = model_info_cache
        self._find_checkpoint = find_checkpoint

    def check(self, spec: Spec, *, force: bool = False) -> Estimate:
        """The cost of a spec; raises a ValidationError with each error at its field, or TooExpensive.

        A network with non-default options is built once to see whether that works.
        """
        self._check_fields(spec)
        usual = spec.dataset in SOURCES and _has_defaults(spec.model) and spec.curvature is None
        find_info = self._model_info_cache.cached if usual else self._model_info
        info = find_info(spec.model, spec.dataset, spec.loss)
        raise_errors(wish_errors(spec, self._model_info_cache))
        if info is not None:
            raise_errors(size_errors(spec, info.parameters))
        cost = estimate(spec, info)
        if cost.gpu_hours > self._settings.max_gpu_hours and not force:
            raise TooExpensive(cost, self._settings.max_gpu_hours)
        return cost

    def estimate(self, spec: Spec) -> Estimate:
        """The cost of a spec, however high, with the initial norms of its groups."""
        self._check_fields(spec)
        info = self._model_info(spec.model, spec.dataset, spec.loss)
        raise_errors(size_errors(spec, info.parameters))
        return estimate(spec, info)

    def check_source(self, dataset: str, model: Model, loss: LossName) -> ModelInfo:
        """The facts about a network on a data set; raises a ValidationError unless this server offers both."""
        raise_errors(self._source_errors(dataset, model))
        return self._model_info(model, dataset, loss)

    def _check_fields(self, spec: Spec) -> None:
        raise_errors(
            [
                *self._source_errors(spec.dataset, spec.model),
                *self._optimizer_errors(spec),
                *self._limit_errors(spec),
                *self._checkpoint_errors(spec),
            ]
        )

    def _model_info(self, model: Model, dataset: str, loss: LossName) -> ModelInfo:
        try:
            return self._model_info_cache.inspect(model, dataset, loss)
        except BadModel as error:
            raise_errors([InvalidField(("model",), str(model), str(error))])
            raise

    def _source_errors(self, dataset: str, model: Model) -> Iterator[InvalidField]:
        allowed = (*SOURCES, *self._settings.allowed_datasets)
        if dataset not in allowed:
            message = f"data set {dataset!r} is not available here: use one of {', '.join(allowed)}"
            yield InvalidField(("dataset",), dataset, message)
        if ":" in model.name:
            if model.name not in self._settings.allowed_models:
                offered = ", ".join((*describe_models(), *self._settings.allowed_models))
                message = f"model {model.name!r} is not available here: use one of {offered}"
                yield InvalidField(("model", "name"), model.name, message)
            return
        yield from _option_errors(model)
        if dataset in SOURCES:
            try:
                describe_models()[model.name].check_input(SOURCES[dataset].shape)
            except ValueError as error:
                yield InvalidField(("model", "name"), model.name, str(error))

    def _optimizer_errors(self, spec: Spec) -> Iterator[InvalidField]:
        allowed = (*OPTIMIZERS, *self._settings.allowed_optimizers)
        given: dict[Path, str] = {("training", "optimizer"): spec.training.optimizer}
        given |= {("minima", name, "optimizer"): own.optimizer for name, own in spec.minima.items()}
        for path, name in given.items():
            if name not in allowed:
                message = f"optimizer {name!r} is not available here: use one of {', '.join(allowed)}"
                yield InvalidField(path, name, message)

    def _limit_errors(self, spec: Spec) -> Iterator[InvalidField]:
        epochs, resolution = self._settings.max_epochs, self._settings.max_resolution
        asked: dict[Path, int] = {}
        for name, own in spec.minima.items():
            if own.checkpoint is None:
                place: Path = ("minima", name) if "epochs" in own.model_fields_set else ("training",)
                asked[(*place, "epochs")] = spec.minimum(name).total_epochs
        asked |= {("curves", name, "epochs"): curve.epochs for name, curve in spec.all_curves.items()}
        for path, value in asked.items():
            if value > epochs:
                yield InvalidField(path, value, f"{value} epochs are too many: this server allows {epochs}")
        for name, plane in spec.all_planes.items():
            if plane.resolution > resolution:
                message = f"resolution {plane.resolution} is too high: this server allows {resolution}"
                yield InvalidField(("planes", name, "resolution"), plane.resolution, message)

    def _checkpoint_errors(self, spec: Spec) -> Iterator[InvalidField]:
        for name, minimum in spec.minima.items():
            if minimum.checkpoint is None:
                continue
            path: Path = ("minima", name, "checkpoint")
            found = self._find_checkpoint(minimum.checkpoint)
            if found is None:
                message = f"checkpoint {minimum.checkpoint!r} does not exist: upload it to /api/checkpoints"
                yield InvalidField(path, minimum.checkpoint, message)
                continue
            model = Model.model_validate(found.model)
            if (_resolved(model), found.dataset, found.loss) != (_resolved(spec.model), spec.dataset, spec.loss):
                message = (
                    f"checkpoint {minimum.checkpoint!r} is for {model} on {found.dataset} with loss {found.loss}, "
                    f"the spec is for {spec.model} on {spec.dataset} with loss {spec.loss}"
                )
                yield InvalidField(path, minimum.checkpoint, message)


def _resolved(model: Model) -> tuple[str, dict[str, Any]]:
    """The name and all options of a model, including defaults."""
    known = describe_models().get(model.name)
    return model.name, {**(known.options if known else {}), **model.options}


def _has_defaults(model: Model) -> bool:
    return ":" not in model.name and _resolved(model) == _resolved(Model(name=model.name))


def _option_errors(model: Model) -> Iterator[InvalidField]:
    """Options of a wrong type, judged by their defaults; building the model finds the other errors."""
    for option, value in model.options.items():
        default = describe_models()[model.name].options[option]
        if isinstance(default, list):
            listed = isinstance(value, list | tuple) and 0 < len(value) <= _LONGEST_OPTION
            wrong = not listed or not all(map(_is_size, value))
            needed = f"a list of whole numbers from 1 to {_LARGEST_OPTION}, {_LONGEST_OPTION} at most"
        elif isinstance(default, int):
            wrong, needed = not _is_size(value), f"a whole number from 1 to {_LARGEST_OPTION}"
        elif isinstance(default, float):
            wrong, needed = isinstance(value, bool) or not isinstance(value, int | float), "a number"
        else:
            wrong, needed = not isinstance(value, str) or len(value) > _LONGEST_OPTION, f"a word such as {default!r}"
        if wrong:
            yield InvalidField(("model", option), value, f"{option} of {model.name!r} must be {needed}")


def _is_size(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _LARGEST_OPTION
