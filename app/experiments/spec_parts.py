"""The parts of a spec: the network, a minimum, a curve, a plane, and what the verdict compares."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from valleyscope.app.experiments.curvature_spec import Direction
from valleyscope.app.experiments.spec_errors import InvalidField, raise_errors
from valleyscope.training.models import describe_models
from valleyscope.training.settings import LARGEST_SEED, Training

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,47}")
STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


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

    model_config = STRICT
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

    model_config = STRICT
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

    model_config = STRICT
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
