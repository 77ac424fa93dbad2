"""The spec of an experiment, as submitted, executed and recorded in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from valleyscope.app.experiments.curvature_spec import Curvature
from valleyscope.app.experiments.families import Pairs, judged_pairs, wanted_lines
from valleyscope.app.experiments.fork_sweep import ForkSweep, label_of, with_forks
from valleyscope.app.experiments.forks import inherited_from_trunk, start_of, trunk_of
from valleyscope.app.experiments.method_comparison import star, with_methods
from valleyscope.app.experiments.spec_checks import reference_errors
from valleyscope.app.experiments.spec_errors import InvalidField, raise_errors
from valleyscope.app.experiments.spec_parts import (
    STRICT,
    Curve,
    Judgement,
    Minimum,
    Model,
    Name,
    Plane,
    Precision,
    Seed,
    Text,
)
from valleyscope.training.losses import IN_NATS, LossName
from valleyscope.training.methods.catalog import METHODS, OPTIONS
from valleyscope.training.models import describe_models
from valleyscope.training.optimizers import OPTIMIZER_OPTIONS, optimizer_info
from valleyscope.training.settings import STRENGTHS, Training

_AS_JSON: Any = {"x-form": "json"}
"""The form offers one input with JSON for the field."""


class BadSpec(ValueError):
    """The spec is invalid; the message names each field with its value."""


class Spec(BaseModel):
    """An experiment: minima, curves between them, surfaces around them, and the verdict."""

    model_config = STRICT
    name: Text = Field("experiment", min_length=1, max_length=120, description="what people call it")
    dataset: Text = Field(
        "digits",
        min_length=1,
        max_length=400,
        description="digits, mnist, ..., npz:PATH, folder:PATH@SIZE, hf:NAME@SIZE, or package.module:factory",
    )
    model: Model = Field(Model(), description="the network")
    loss: LossName = Field(
        "cross_entropy",
        description="cross_entropy for classes; mse, l1 or bce where npz: or own data have numbers as y",
    )
    seed: Seed = Field(0, description="seed of everything without a seed")
    training: Training = Field(Training(), description="settings of all minima, unless a minimum overrides them")
    minima: dict[Name, Minimum] = Field(
        min_length=1,
        max_length=256,
        description="the trained networks, by name; every pair gets its line, unless pairs chooses",
    )
    methods: tuple[str | dict[str, Any], ...] | None = Field(
        None, max_length=32, description="pruning methods to compare, instead of minima; or objects with their options"
    )
    sparsities: tuple[float, ...] | None = Field(None, max_length=8, description="shares of zero groups for `methods`")
    macs: tuple[float, ...] | None = Field(None, max_length=8, description="shares of multiply-adds left, instead")
    seeds: int | None = Field(None, ge=1, le=20, description="repetitions of `methods`, each from another seed")
    pairs: Pairs | None = Field(
        None,
        description="pairs of minima that get a line: all (the default), star from the first one, or a list",
        json_schema_extra=_AS_JSON,
    )
    ensembles: dict[Name, tuple[Name, ...]] | None = Field(
        None,
        max_length=32,
        description="sets of minima, evaluated as the mean of weights and the mean of predictions",
        json_schema_extra=_AS_JSON,
    )
    forks: ForkSweep | None = Field(
        None, description="forks of one minimum at several epochs, beside minima", json_schema_extra=_AS_JSON
    )
    controls: int | None = Field(
        None, ge=0, le=20, description="seeds of `methods` that have the two controls; by default all"
    )
    curves: dict[Name, Curve] | None = Field(
        None, max_length=32, description="curves by name; by default from the first minimum"
    )
    planes: dict[Name, Plane] | None = Field(
        None, max_length=32, description="planes by name; by default valley and basins"
    )
    splits: tuple[Literal["train", "test"], ...] = Field(("train", "test"), min_length=1, description="data evaluated")
    batch_norm: Literal["population", "running", "frozen"] = Field(
        "population", description="BatchNorm statistics at a point: of all training data, running averages, or stored"
    )
    precision: Precision = Field(
        "float32", description="float32 throughout, or faster and less exact matrix products on GPUs (tf32)"
    )
    align: Literal["none", "weights", "activations"] = Field(
        "none", description="lines also with the hidden units of their end in the order of their start, matched by this"
    )
    samples: int | None = Field(
        None, ge=1, le=10**9, description="evaluate on this many samples of each split; by default all"
    )
    points: int = Field(61, ge=3, le=10_001, description="values of t along curves and lines")
    verdict: Judgement = Field(Judgement(), description="what is judged, and how")
    curvature: Curvature | None = Field(
        None, description="eigenvalues and direction factors of minima; none by default"
    )

    @model_validator(mode="before")
    @classmethod
    def _check_minima(cls, values: Any) -> Any:
        if isinstance(values, dict):
            values = with_forks(with_methods(values))
        if isinstance(values, dict) and values.get("minima") is None:
            message = "minima is missing: name at least one, as {'sgd': {'optimizer': 'sgd'}}"
            raise_errors([InvalidField(("minima",), None, message)])
        return values

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        raise_errors(reference_errors(self))
        return self

    @property
    def loss_unit(self) -> str:
        """The unit of losses: nats, or empty for their own."""
        return "nats" if self.loss in IN_NATS else ""

    @property
    def tolerance(self) -> float | None:
        """That of the verdict; None where it follows the loss, which has a unit of its own."""
        given = "tolerance" in self.verdict.model_fields_set
        return self.verdict.tolerance if given or self.loss_unit == "nats" else None

    def sources(self, name: str) -> list[str]:
        """The minima whose weights or runs a minimum starts from, one through the other."""
        found: list[str] = []
        source = start_of(self, name)
        while source in self.minima and source not in found:
            found.append(source)
            source = start_of(self, source)
        return found

    def minimum(self, name: str) -> Minimum:
        """A minimum with all its settings: its own, else those of `training`, else the spec's seed."""
        own = self.minima[name]
        if own.checkpoint is not None:
            return own
        inherited = self.training.model_dump(exclude_unset=True)
        if (trunk := trunk_of(self, name)) is not None:
            inherited = inherited_from_trunk(self, name, trunk)
        if own.model_fields_set & {"optimizer", "method"}:  # another method than that of `training`
            inherited = {field: value for field, value in inherited.items() if field not in ("optimizer", "method")}
        merged = {"seed": self.seed} | inherited | own.model_dump(exclude_unset=True)
        # Options that `training` has for other methods are not this one's; plain SGD never minded AltSDP's.
        options = set(METHODS[merged.get("method") or "altsdp"].options)
        if merged.get("method") is None and merged.get("optimizer", "sgd") != "altsdp":
            options.discard("retrain")
        for field in OPTIONS - options - own.model_fields_set:
            merged.pop(field, None)
        info = optimizer_info(merged.get("optimizer", "sgd"))
        for field in OPTIMIZER_OPTIONS - set(info.options) - own.model_fields_set:
            merged.pop(field, None)
        if not info.momentum and "momentum" not in own.model_fields_set:
            merged.pop("momentum", None)
        strengths = own.model_fields_set.intersection(STRENGTHS)
        for name in strengths and set(STRENGTHS) - strengths:
            merged.pop(name, None)
        wanted = [plane for plane in (self.planes or {}).values() if plane.trajectory == name]
        if wanted and not merged.get("snapshots"):
            merged["snapshots"] = max(1, merged.get("epochs", 120) // 60)
        return Minimum(**merged)

    @property
    def all_curves(self) -> dict[str, Curve]:
        """The curves given, or one that joins the judged pair and one from its first minimum to the control."""
        if self.curves is not None:
            return self.curves
        if self.between is None or self.forks is not None:
            return {}
        start, end = self.between
        ends = {"valley": end, "contrast": self.control}
        return {
            name: Curve.model_validate({"from": start, "to": other})
            for name, other in ends.items()
            if other is not None and other != start
        }

    @property
    def all_planes(self) -> dict[str, Plane]:
        """The planes given, or those of the judged pair: with its bend, and with the control; around a lone minimum."""
        if self.planes is not None:
            return self.planes
        if self.between is None:
            return {"around": Plane(around=next(iter(self.minima)))}
        start, end = self.between
        planes = {}
        if self.forks is not None and len(self.forks.epochs) > 1:
            first = f"{label_of(self.forks.each[-1])}_e{self.forks.epochs[0]}"
            if first in self.minima and {start, end} == set(self.forks.judged):
                planes["forks"] = Plane(through=(start, end, first), complete="random")
        joining = [name for name, curve in self.all_curves.items() if {curve.start, curve.end} == {start, end}]
        if joining:
            planes["valley"] = Plane(through=(start, end, self.bends(joining[0])[0]), complete="random")
        if self.control is not None and self.control not in self.between:
            planes["basins"] = Plane(through=(start, end, self.control))
        return planes

    def bends(self, curve: str) -> list[str]:
        """The names of a curve's free points."""
        count = self.all_curves[curve].bends
        return [f"{curve}.bend"] if count == 1 else [f"{curve}.bend{number}" for number in range(1, count + 1)]

    def curves_on(self, plane: str) -> list[str]:
        """The curves that lie on a plane; others, projected, would seem to cross hills that they avoid."""
        through = set(self.all_planes[plane].through or ())
        return [
            name for name, curve in self.all_curves.items() if {curve.start, curve.end, *self.bends(name)} <= through
        ]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Every pair of minima, in the order of the spec; of a comparison of methods, SGD and each other network."""
        if self.forks is not None:
            known = self.forks.lines(list(self.minima))
            return [*known, *(pair for pair in judged_pairs(self) if not {pair, pair[::-1]} & set(known))]
        if self.methods is None:
            return wanted_lines(self)
        start, end = self.between or (None, None)
        judged = [(start, other) for other in (end, self.control) if start in self.minima and other in self.minima]
        return list(dict.fromkeys([*star(list(self.minima)), *judged]))

    @property
    def between(self) -> tuple[str, str] | None:
        """The two minima that the verdict compares."""
        if self.verdict.between is not None or len(self.minima) < 2:
            return self.verdict.between
        if self.forks is not None and {*self.forks.judged} <= self.minima.keys():
            return self.forks.judged
        others = [name for name in self.minima if name != self.verdict.control]
        start, end = (others if len(others) > 1 else list(self.minima))[:2]
        return start, end

    @property
    def control(self) -> str | None:
        """The unrelated minimum beside them."""
        rest = [name for name in self.minima if name not in (self.between or ())]
        if self.forks is not None:  # a fork is no unrelated minimum
            rest = [name for name in rest if name not in self.forks.made]
        if self.methods is not None:
            return self.verdict.control or ("control" if "control" in rest else None)
        return self.verdict.control or (rest[0] if rest else None)

    def resolved(self) -> dict[str, Any]:
        """Every field as it is used, defaults included: what two specs are compared by."""
        known = describe_models().get(self.model.name)
        return self.model_dump(mode="json", by_alias=True) | {
            "model": {"name": self.model.name, **(known.options if known else {}), **self.model.options},
            "minima": {name: _settings(self.minimum(name)) for name in self.minima},
            "curves": {name: curve.model_dump(mode="json", by_alias=True) for name, curve in self.all_curves.items()},
            "planes": {name: plane.model_dump(mode="json") for name, plane in self.all_planes.items()},
            "verdict": self.verdict.model_dump(mode="json")
            | {"between": None if self.between is None else list(self.between), "control": self.control}
            | {"tolerance": self.tolerance},
        }

    def to_json(self) -> dict[str, Any]:
        """The fields given, as plain values; parsing them gives an equal spec."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _settings(minimum: Minimum) -> dict[str, Any]:
    """What makes a minimum: its checkpoint, or the settings of its training."""
    if minimum.checkpoint is not None:
        return {"checkpoint": minimum.checkpoint}
    return minimum.model_dump(mode="json", by_alias=True, exclude={"checkpoint"})


def read_spec(path: str | Path) -> Spec:
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadSpec(f"spec {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadSpec(f"spec {path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise BadSpec(f"spec {path} is neither JSON nor YAML: {error}") from error
    return parse_spec(content, source=str(path))


def parse_spec(content: Any, *, source: str = "spec") -> Spec:
    if not isinstance(content, dict):
        raise BadSpec(f"{source} must be an object with named fields, not {type(content).__name__}")
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        raise BadSpec(f"{source}: " + "; ".join(_explain(error))) from error


def _explain(error: ValidationError) -> Iterator[str]:
    for detail in error.errors():
        field = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            message = "unknown field"
        value = detail["input"]
        plain = isinstance(value, str | int | float | bool)
        shown = f" (got {value!r})" if plain and repr(value) not in message else ""
        yield f"{field}: {message}{shown}" if not message.startswith(field) else f"{message}{shown}"
