"""The spec of an experiment, as submitted, executed and recorded in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from valleyscope.app.experiments.curvature_spec import Curvature, Direction, curvature_errors
from valleyscope.app.experiments.families import Pairs, family_errors, judged_pairs, wanted_lines
from valleyscope.app.experiments.fork_sweep import ForkSweep, label_of, with_forks
from valleyscope.app.experiments.forks import fork_errors, inherited_from_trunk, start_of, trunk_of
from valleyscope.app.experiments.method_comparison import star, with_methods
from valleyscope.app.experiments.spec_errors import InvalidField, raise_errors
from valleyscope.app.experiments.spec_errors import Path as FieldPath
from valleyscope.landscape.storage.records import coinciding_lines, line_name
from valleyscope.training.dataset_sources import SOURCES
from valleyscope.training.losses import IN_NATS, LossName
from valleyscope.training.methods.catalog import METHODS, OPTIONS
from valleyscope.training.methods.requirements import missing_requirement
from valleyscope.training.models import describe_models
from valleyscope.training.optimizers import OPTIMIZER_OPTIONS, optimizer_info
from valleyscope.training.settings import LARGEST_SEED, STRENGTHS, Training

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,47}")
_MIN_SNAPSHOTS = 3
_AS_JSON: Any = {"x-form": "json"}
"""The form offers one input with JSON for the field."""
_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid name: use a letter, then letters, digits, '-' or '_', 48 at most")
    return name


def _check_text(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text!r} has unprintable characters: use letters, digits, punctuation and spaces")
    return text


Name = Annotated[str, AfterValidator(_check_name)]
Text = Annotated[str, AfterValidator(_check_text)]
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Precision = Literal["float32", "tf32"]


class BadSpec(ValueError):
    """The spec is invalid; the message names each field with its value."""


class Model(BaseModel):
    """A network by name, with the options of its architecture."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    name: str = Field(
        "cnn",
        description="cnn, lenet, mlp, vgg16, ...; torchvision:NAME, timm:NAME, hf:NAME; or package.module:factory",
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_name(cls, given: Any) -> Any:
        """`model: cnn` means `model: {name: cnn}`."""
        if isinstance(given, str):
            return {"name": given}
        if isinstance(given, dict | Model):
            return given
        raise ValueError(f"{given!r} is not a network: use a name such as 'cnn', or {{'name': 'cnn'}} with its options")

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if ":" in self.name:
            return self
        known = describe_models()
        if self.name not in known:
            message = f"model {self.name!r} is unknown: use one of {', '.join(known)}"
            raise_errors([InvalidField(("name",), self.name, message)])
        options = ", ".join(known[self.name].options) or "none"
        raise_errors(
            InvalidField((option,), value, f"model {self.name!r} has no option {option}: its options are {options}")
            for option, value in self.options.items()
            if option not in known[self.name].options
        )
        return self

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})

    def __str__(self) -> str:
        shown = (f"{key}={value}" for key, value in self.options.items())
        return " ".join([self.name, *shown])


class Minimum(Training):
    """One trained network: fields that are not given come from the spec's `training` and `seed`."""

    checkpoint: str | None = Field(None, max_length=200, description="a checkpoint to use instead of training")

    @model_validator(mode="after")
    def _check_checkpoint(self) -> Self:
        others = self.model_fields_set - {"checkpoint"}
        if self.checkpoint is not None and others:
            unused = ", ".join(sorted(others))
            raise ValueError(f"checkpoint={self.checkpoint!r} is not trained: remove {unused}")
        return self


class Curve(BaseModel):
    """A path of low loss fitted between two minima."""

    model_config = _STRICT
    kind: Literal["bezier", "polychain"] = Field("bezier", description="bezier, or polychain for straight pieces")
    start: Name = Field(alias="from", description="minimum at which it starts")
    end: Name = Field(alias="to", description="minimum at which it ends")
    bends: int = Field(1, ge=1, le=8, description="free points between the two ends")
    epochs: int = Field(30, ge=1, le=100_000, description="passes over the training set")
    batch_size: int | None = Field(None, ge=1, le=1_000_000, description="batch size, if not that of the training")
    lr: float = Field(0.05, gt=0, le=1000, description="base learning rate; falls linearly in the second half")
    momentum: float = Field(0.9, ge=0, lt=1, description="momentum of the gradient")
    weight_decay: float = Field(0.0, ge=0, le=1000, description="L2 penalty on the points of the curve")
    seed: Seed | None = Field(None, description="seed of order and of t, if not the spec's")

    @model_validator(mode="after")
    def _check_ends(self) -> Self:
        if self.start == self.end:
            raise ValueError(f"from and to are both {self.start!r}: a curve joins two different minima")
        return self


class Plane(BaseModel):
    """A plane in weight space with a grid on it, defined by exactly one of through, around and trajectory."""

    model_config = _STRICT
    through: tuple[str, str, str] | None = Field(None, description="three points: minima, or bends such as valley.bend")
    around: Name | None = Field(None, description="minimum around which two random directions are taken")
    aligned: bool = Field(
        False, description="the minima of `through` with their hidden units in the order of the first, as `align` says"
    )
    trajectory: Name | None = Field(None, description="minimum whose training path gives the principal directions")
    resolution: int = Field(41, ge=3, le=401, description="grid points along each axis")
    margin: float = Field(0.2, ge=0, le=10, description="space around the named points, as a share of their extent")
    complete: Literal["random"] | None = Field(None, description="what replaces a missing direction; else refused")
    seed: Seed = Field(0, description="seed of random directions")
    accuracy: float | None = Field(
        None, gt=0, le=1, description="estimate the surface to this relative error of the loss; by default it is exact"
    )
    directions: tuple[Direction, Direction] | None = Field(
        None,
        description="of `around`, instead of random ones: sharpest, flattest, or eigenvectors by number from 1, "
        "the largest; they need `curvature`",
    )

    @model_validator(mode="after")
    def _check_plane(self) -> Self:
        given = [way for way in ("through", "around", "trajectory") if getattr(self, way) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of through, around and trajectory, not {' and '.join(given) or 'none'}")
        if self.through is not None and len(set(self.through)) < 3:
            raise ValueError(f"through={list(self.through)} needs three different points")
        if self.directions is not None and self.around is None:
            raise ValueError("directions belong to a plane around a minimum: give around, too")
        if self.directions is not None:
            first, second = (1 if direction == "sharpest" else direction for direction in self.directions)
            if first == second or any(isinstance(number, int) and number < 1 for number in (first, second)):
                raise ValueError(f"directions={list(self.directions)}: give two different ones, numbers from 1")
        return self


class Judgement(BaseModel):
    """What the verdict compares, and when a path counts as flat."""

    model_config = _STRICT
    between: tuple[Name, Name] | None = Field(None, description="the two minima in question; by default the first two")
    control: Name | None = Field(None, description="unrelated minimum beside them; by default the third")
    tolerance: float = Field(
        0.05,
        gt=0,
        le=100,
        description="rise in nats up to which a path is flat; by default 5 % of a loss with its own unit",
    )
    error_tolerance: float = Field(0.01, gt=0, lt=1, description="the same for the test error, as a fraction")
    level: float = Field(0.95, gt=0.5, lt=1, description="level of the bootstrap interval")
    resamples: int = Field(1000, ge=100, le=20_000, description="bootstrap resamplings")
    radius: float = Field(0.1, gt=0, le=10, description="relative distance at which sharpness is measured")


class Spec(BaseModel):
    """An experiment: minima, curves between them, surfaces around them, and the verdict."""

    model_config = _STRICT
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
        raise_errors(
            [
                *self._loss_errors(),
                *self._split_errors(),
                *self._method_errors(),
                *fork_errors(self),
                *family_errors(self),
                *self._curve_errors(),
                *self._plane_errors(),
                *self._verdict_errors(),
                *curvature_errors(self),
            ]
        )
        return self

    def _loss_errors(self) -> Iterator[InvalidField]:
        if self.loss != "cross_entropy" and (self.dataset in SOURCES or self.dataset.startswith(("folder:", "hf:"))):
            message = (
                f"{self.loss!r} needs numbers as targets, and {self.dataset!r} has class numbers: use cross_entropy, "
                "or npz:PATH with numbers as y_train and y_test"
            )
            yield InvalidField(("loss",), self.loss, message)

    @property
    def loss_unit(self) -> str:
        """The unit of losses: nats, or empty for their own."""
        return "nats" if self.loss in IN_NATS else ""

    @property
    def tolerance(self) -> float | None:
        """That of the verdict; None where it follows the loss, which has a unit of its own."""
        given = "tolerance" in self.verdict.model_fields_set
        return self.verdict.tolerance if given or self.loss_unit == "nats" else None

    def _method_errors(self) -> Iterator[InvalidField]:
        if self.training.of is not None:
            yield InvalidField(("training", "of"), self.training.of, "training cannot have it: give `of` in a minimum")
        for name, own in self.minima.items():
            path: FieldPath = ("minima", name, "of")
            if own.of is not None and own.of not in self.minima:
                yield self._unknown_minimum(path, own.of)
            elif own.of is not None and name in self.sources(name):
                yield InvalidField(
                    path, own.of, f"{name!r} would start from itself: use the weights of another minimum"
                )
            if own.checkpoint is not None:
                continue
            yield from self._merged_errors(name)

    def _merged_errors(self, name: str) -> Iterator[InvalidField]:
        """What is wrong with a minimum's settings together with those that it takes from `training`."""
        try:
            merged = self.minimum(name)
        except ValidationError as error:
            for detail in error.errors():
                message = detail["msg"].removeprefix("Value error, ")
                yield InvalidField(("minima", name), None, f"together with training: {message}")
            return
        architecture = describe_models().get(self.model.name)
        batch_norm = None if architecture is None else architecture.batch_norm
        missing = missing_requirement(merged, batch_norm, self.minima[name].model_fields_set)
        if missing is not None:
            field, message = missing
            yield InvalidField(("minima", name, field), getattr(merged, field), message)

    def sources(self, name: str) -> list[str]:
        """The minima whose weights or runs a minimum starts from, one through the other."""
        found: list[str] = []
        source = start_of(self, name)
        while source in self.minima and source not in found:
            found.append(source)
            source = start_of(self, source)
        return found

    def _split_errors(self) -> Iterator[InvalidField]:
        given = list(self.splits)
        if "train" not in given:
            yield InvalidField(("splits",), given, f"{given} lacks 'train', on which barriers are measured: add it")
        if len(set(given)) != len(given):
            yield InvalidField(("splits",), given, f"{given} names a split twice: remove one")

    def _curve_errors(self) -> Iterator[InvalidField]:
        lines = [line_name(*pair) for pair in self.lines]
        if (line := coinciding_lines(self.minima)) is not None:
            yield InvalidField(
                ("minima",), list(self.minima), f"two lines would have the name {line!r}: rename a minimum"
            )
        for name, curve in (self.curves or {}).items():
            if name in self.minima:
                yield InvalidField(("curves", name), name, "a minimum already has this name: rename the curve")
            if name in lines:
                yield InvalidField(
                    ("curves", name), name, "the line between two minima already has this name: rename the curve"
                )
            for field, end in (("from", curve.start), ("to", curve.end)):
                if end not in self.minima:
                    yield self._unknown_minimum(("curves", name, field), end)

    def _plane_errors(self) -> Iterator[InvalidField]:
        points = set(self.minima) | {bend for name in self.all_curves for bend in self.bends(name)}
        for name, plane in (self.planes or {}).items():
            for index, point in enumerate(plane.through or ()):
                if point not in points:
                    message = f"{point!r} is unknown: use one of {', '.join(sorted(points))}"
                    yield InvalidField(("planes", name, "through", index), point, message)
            if plane.aligned:
                yield from self._aligned_plane_errors(name, plane)
            for field in ("around", "trajectory"):
                centre = getattr(plane, field)
                if centre is not None and centre not in self.minima:
                    yield self._unknown_minimum(("planes", name, field), centre)
            if plane.trajectory in self.minima:
                yield from self._trajectory_errors(("planes", name, "trajectory"), plane.trajectory)

    def _aligned_plane_errors(self, name: str, plane: Plane) -> Iterator[InvalidField]:
        path: FieldPath = ("planes", name, "aligned")
        if self.align == "none":
            yield InvalidField(path, True, "an aligned plane needs `align: weights` or `activations` in the spec")
        if not set(plane.through or ("",)) <= set(self.minima):
            yield InvalidField(path, True, "an aligned plane goes through three minima, not through bends")

    def _trajectory_errors(self, path: FieldPath, name: str) -> Iterator[InvalidField]:
        """Principal directions need three points; without this check training would run first."""
        if self.minima[name].checkpoint is not None:
            yield InvalidField(
                path, name, f"{name!r} is a checkpoint without a training path: choose a minimum that is trained"
            )
            return
        run = self.minimum(name)
        if (kept := run.snapshot_count) < _MIN_SNAPSHOTS:
            message = (
                f"the training path of {name!r} would have {kept} of the {_MIN_SNAPSHOTS} points that a plane "
                f"needs (epochs={run.epochs}, snapshots={run.snapshots}): train for more epochs, or keep more snapshots"
            )
            yield InvalidField(path, name, message)

    def _verdict_errors(self) -> Iterator[InvalidField]:
        between, control = self.verdict.between, self.verdict.control
        for index, name in enumerate(between or ()):
            if name not in self.minima:
                yield self._unknown_minimum(("verdict", "between", index), name)
        if control is not None and control not in self.minima:
            yield self._unknown_minimum(("verdict", "control"), control)
        if between is not None and len({*between, control}) < 3:
            yield InvalidField(
                ("verdict", "between"), list(between), f"{list(between)} and control={control!r} must differ"
            )

    def _unknown_minimum(self, path: FieldPath, name: str) -> InvalidField:
        return InvalidField(path, name, f"{name!r} is not a minimum of this spec: use one of {', '.join(self.minima)}")

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
