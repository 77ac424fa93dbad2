"""The validated settings of a training run, also part of an experiment's spec."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from valleyscope.training.methods.catalog import IMPLIED, METHODS, OPTIONS, MethodInfo, MethodName
from valleyscope.training.optimizers import OPTIMIZER_OPTIONS, OPTIMIZERS, optimizer_info
from valleyscope.training.schedules import Halving, Schedule, step_rates
from valleyscope.training.thresholds import Mode, accumulated_threshold, c_for_sparsity, c_for_target

Structure = Literal["filter", "kernel", "vector", "element"]
STRUCTURES: tuple[Structure, ...] = ("filter", "kernel", "vector", "element")
STRENGTHS = ("c", "target", "sparsity", "macs", "strength")
LARGEST_SEED = 2**63 - 1


class _ThresholdOptions(TypedDict):
    mode: Mode
    momentum: float
    before: int


def _check_optimizer(name: str) -> str:
    optimizer_info(name)
    return name


Share = Annotated[float, Field(ge=0, lt=1)]
Optimizer = Annotated[str, AfterValidator(_check_optimizer)]


class Retraining(BaseModel):
    """SGD after a cut, at a constant rate; groups that are zero stay zero."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    epochs: int = Field(ge=1, le=100_000, description="passes over the training set after the cut")
    lr: float = Field(gt=0, le=1000, description="learning rate; a high one leaves the valley of the start")


class Fork(BaseModel):
    """Where a run leaves another one: it starts from the state that the trunk had after an epoch."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)
    start: str = Field(alias="from", min_length=1, max_length=48, description="the trunk: minimum whose run is left")
    epoch: int = Field(ge=0, le=100_000, description="epochs that trunk and fork share; 0 for the initialisation only")


class Training(BaseModel):
    """Settings of one training run by SGD, AltSDP or another pruning method."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    optimizer: Optimizer = Field(
        "sgd",
        max_length=200,
        description="sgd, altsdp for group-sparse training, adamw, sam, or package.module:factory",
        json_schema_extra={"examples": [*OPTIMIZERS]},
    )
    epochs: int = Field(120, ge=1, le=100_000, description="passes over the training set")
    batch_size: int = Field(32, ge=1, le=1_000_000, description="images in a gradient step")
    lr: float = Field(0.1, gt=0, le=1000, description="base learning rate")
    schedule: Schedule = Field(Halving(), description="how the learning rate falls")
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum of the gradient; also scales AltSDP's thresholds")
    weight_decay: float = Field(
        0.0, ge=0, le=1000, description="L2 penalty added to the gradient; with adamw decoupled from it"
    )
    betas: tuple[Share, Share] | None = Field(None, description="decay of adamw's averages, by default 0.9 and 0.999")
    eps: float | None = Field(None, gt=0, le=1, description="term of adamw's denominator, by default 1e-8")
    rho: float | None = Field(None, gt=0, le=100, description="radius of sam, by default 0.05")
    options: dict[str, bool | int | float | str] | None = Field(
        None, max_length=32, description="arguments of your own optimizer's factory, besides lr"
    )
    mode: Mode = Field("prox", description="how AltSDP's threshold acts: prox, dual or cumulative")
    mu: float = Field(0.51, ge=0, le=10, description="exponent of AltSDP's threshold")
    c: float | None = Field(None, ge=0, le=1e6, description="scale of AltSDP's threshold; or give target")
    target: float | None = Field(None, ge=0, le=1e6, description="accumulated threshold G to reach, instead of c")
    sparsity: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="share of groups to prune, instead of c: the threshold ends when it is reached",
    )
    method: MethodName | None = Field(
        None,
        description="pruning method; altsdp is the same as the optimizer. See docs/pruning.md",
        json_schema_extra={"options": {name: list(info.options) for name, info in METHODS.items()}},
    )
    macs: float | None = Field(None, gt=0, lt=1, description="share of multiply-adds to leave, instead of sparsity")
    of: str | None = Field(
        None, max_length=48, description="minimum whose weights the method starts from; a post hoc one cuts at once"
    )
    fork: Fork | None = Field(
        None, description="start where another minimum was after an epoch, and continue its schedule. See docs/forks.md"
    )
    retrain: Retraining | None = Field(None, description="SGD after the cut")
    penalty: float | None = Field(None, ge=0, le=1e6, description="strength of the method's penalty")
    averaging: float | None = Field(None, gt=0, le=1, description="β of rmda: weight of the newest point")
    polarization: float | None = Field(
        None, ge=0, le=100, description="t of pr: weight of the size of a factor beside its distance from the mean"
    )
    score: Literal["norm", "gamma", "taylor"] | None = Field(
        None, description="by what the least important groups are found"
    )
    scope: Literal["network", "layer"] | None = Field(
        None, description="cut the lowest scores of the whole network, or the same share of each layer"
    )
    periods: int | None = Field(None, ge=1, le=10_000, description="periods in which hesso prunes")
    cost_weight: float | None = Field(None, ge=0, le=100, description="weight of the cost of a filter in cop")
    strength: float | None = Field(None, ge=0, le=1e9, description="λ of sdp, instead of sparsity")
    factors: Literal["hessian", "ones"] | None = Field(
        None, description="direction factors of sdp: from the Hessian, or all 1 (soft-thresholding)"
    )
    curvature_cut: float | None = Field(
        None, gt=0, le=1e9, description="eigenvalue above which a direction is not flat, for sdp"
    )
    curvature_samples: int | None = Field(
        None, ge=1, le=10**9, description="training samples of the Hessian, for sdp; by default all"
    )
    structure: Structure = Field("filter", description="what a group is: filter, kernel, vector or element")
    bias: bool = Field(True, description="keep a filter's bias and BatchNorm parameters in its group")
    skip_output: bool = Field(True, description="leave the output layer out of pruning")
    tie_residual: bool = Field(False, description="make filters that a residual addition joins one group")
    floor: float = Field(0.0, ge=0, le=1, description="share of each layer's groups that is always kept")
    seed: int = Field(0, ge=0, le=LARGEST_SEED, description="seed of initialisation, order and augmentation")
    init_seed: int | None = Field(None, ge=0, le=LARGEST_SEED, description="seed of the initialisation, if not seed")
    order_seed: int | None = Field(None, ge=0, le=LARGEST_SEED, description="seed of the batch order, if not seed")
    augment_seed: int | None = Field(None, ge=0, le=LARGEST_SEED, description="seed of the augmentation, if not seed")
    augment: bool | None = Field(None, description="random crops and flips; by default for CIFAR only")
    measure_every: int | None = Field(
        None, ge=1, le=100_000, description="epochs between measurements of both sets; by default each, always the last"
    )
    snapshots: int = Field(0, ge=0, le=100_000, description="epochs between kept snapshots of the weights; 0 for none")

    @model_validator(mode="before")
    @classmethod
    def _fill_implied(cls, values: Any) -> Any:
        """`method: altsdp` means `optimizer: altsdp`, too; grda is its mode `dual` on single weights."""
        if not isinstance(values, dict):
            return values
        known = OPTIMIZERS.get(str(values.get("optimizer")))
        if known is not None and known.lr is not None:
            values = {"lr": known.lr} | values
        if values.get("method") not in IMPLIED:
            return values
        usual = {"structure": "element"} if values["method"] == "grda" else {}
        return usual | IMPLIED[values["method"]] | values

    @model_validator(mode="after")
    def _check_method(self) -> Training:
        info, name = self.method_info, self.method_name
        if name is None or info is None:
            return self
        implied = IMPLIED.get(name, {"optimizer": "sgd"})
        if self.optimizer != implied["optimizer"]:
            raise ValueError(f"optimizer={self.optimizer!r} contradicts method={name!r}: remove one of them")
        for option in sorted(self.model_fields_set & OPTIONS - set(info.options)):
            value = getattr(self, option)
            if value is not None and implied.get(option) != value:
                known = ", ".join(info.options) or "none of its own"
                raise ValueError(f"{option}={value}: method {name!r} has no such option; it has {known}")
        if info.filters_only and self.structure != "filter":
            raise ValueError(f"structure={self.structure!r}: method {name!r} prunes filters only")
        if self.tie_residual and (not info.ties or self.score == "gamma"):
            able = ", ".join(name for name, other in METHODS.items() if other.ties)
            raise ValueError(
                f"tie_residual: {name if self.score is None else f'score {self.score!r}'} prunes layers by "
                f"themselves; methods that prune filters of several layers together are {able} (by norm or taylor)"
            )
        return self

    @model_validator(mode="after")
    def _check_optimizer_options(self) -> Training:
        info = optimizer_info(self.optimizer)
        for option in sorted(self.model_fields_set & OPTIMIZER_OPTIONS - set(info.options)):
            if (value := getattr(self, option)) is not None:
                known = ", ".join(info.options) or "none of its own"
                raise ValueError(f"{option}={value}: optimizer {self.optimizer!r} has no such option; it has {known}")
        if self.momentum and not info.momentum:
            instead = "give betas" if "betas" in info.options else "give it in options"
            raise ValueError(f"momentum={self.momentum}: optimizer {self.optimizer!r} has no such option: {instead}")
        return self

    @model_validator(mode="after")
    def _check_macs(self) -> Training:
        if self.macs is not None and self.structure != "filter":
            raise ValueError(
                f"macs={self.macs}: only whole filters save multiply-adds, but structure is {self.structure!r}; "
                "give sparsity instead"
            )
        return self

    @model_validator(mode="after")
    def _check_fork(self) -> Training:
        if self.fork is not None and self.of is not None:
            raise ValueError(f"of={self.of!r} and fork={self.fork.start!r} both say where to start: remove one of them")
        return self

    @model_validator(mode="after")
    def _one_strength(self) -> Training:
        given = [f"{name}={value}" for name in STRENGTHS if (value := getattr(self, name)) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: give one of them, target, sparsity and macs determine c")
        if self.sparsity is not None and self.sparsity > 1 - self.floor:
            raise ValueError(f"sparsity={self.sparsity} cannot be reached: floor={self.floor} of each layer is kept")
        if self.tie_residual and self.structure != "filter":
            raise ValueError(f"tie_residual ties filters: use structure filter, not {self.structure}")
        return self

    @property
    def method_name(self) -> str | None:
        """The pruning method, by its field or by the optimiser; None for SGD."""
        return self.method or ("altsdp" if self.optimizer == "altsdp" else None)

    @property
    def method_info(self) -> MethodInfo | None:
        return None if self.method_name is None else METHODS[self.method_name]

    def option(self, name: str) -> Any:
        """An option of the method: as given, else the method's default."""
        given = getattr(self, name)
        return METHODS[self.method_name].options[name] if given is None and self.method_name else given

    def optimizer_option(self, name: str) -> Any:
        """An option of the optimiser: as given, else its default."""
        given = getattr(self, name)
        return optimizer_info(self.optimizer).options[name] if given is None else given

    @property
    def wish(self) -> str | None:
        """The share that is wanted, as text; None if the strength alone decides."""
        if self.sparsity is not None:
            return f"sparsity={self.sparsity}"
        return None if self.macs is None else f"macs={self.macs}"

    @property
    def main_epochs(self) -> int:
        """Epochs before the cut: none if a post hoc method is given a trained network."""
        info = self.method_info
        return 0 if self.of is not None and info is not None and info.post_hoc else self.epochs

    @property
    def total_epochs(self) -> int:
        """All epochs, with those after the cut."""
        return self.main_epochs + (0 if self.retrain is None else self.retrain.epochs)

    @property
    def first_epoch(self) -> int:
        """Epochs that are trained already: those that a fork shares with its trunk."""
        return 0 if self.fork is None else self.fork.epoch

    @property
    def own_epochs(self) -> int:
        """Epochs that this run trains itself."""
        return self.total_epochs - self.first_epoch

    @property
    def initialisation(self) -> int:
        return self.seed if self.init_seed is None else self.init_seed

    @property
    def order(self) -> int:
        return self.seed if self.order_seed is None else self.order_seed

    @property
    def augmentation(self) -> int:
        return self.seed if self.augment_seed is None else self.augment_seed

    def measures(self, epoch: int) -> bool:
        """Whether both sets are measured after this epoch (counted from 1); always before a cut and at the end."""
        return epoch % (self.measure_every or 1) == 0 or epoch in (self.main_epochs, self.total_epochs)

    def keeps_snapshot_of(self, epoch: int) -> bool:
        """Whether a snapshot is kept after this epoch (counted from 1); always after the last one."""
        return self.snapshots > 0 and (epoch % self.snapshots == 0 or epoch == self.total_epochs)

    @property
    def snapshot_count(self) -> int:
        """Number of snapshots of the run."""
        return -(-self.total_epochs // self.snapshots) - self.first_epoch // self.snapshots if self.snapshots else 0

    @property
    def expected_share(self) -> float | None:
        """The share of zero groups to expect: `sparsity`, or for `macs` that of a network thinner by √macs."""
        return self.sparsity if self.macs is None else 1 - self.macs**0.5

    def rates(self, steps: int) -> npt.NDArray[np.float64]:
        """Learning rates of the steps that this run takes itself, with `steps` steps per epoch."""
        return step_rates(self.schedule, self.lr, self.epochs, steps)[self.first_epoch * steps :]

    def scale(self, steps: int, median: float | None = None) -> float:
        """AltSDP's c: as given, or from the target, or the paper's 1e-6; 0 for other optimisers.

        With `sparsity` it is the first guess, from the median of the initial group norms.
        """
        if self.optimizer != "altsdp":
            return 0.0
        if self.expected_share is not None:
            if median is None:
                raise ValueError(f"{self.wish}: its c depends on the median of the initial group norms")
            return c_for_sparsity(self.expected_share, median, self.rates(steps), self.mu, **self._threshold(steps))
        if self.target is not None:
            return c_for_target(self.target, self.rates(steps), self.mu, **self._threshold(steps))
        return 1e-6 if self.c is None else self.c

    def reach(self, steps: int, median: float | None = None) -> float:
        """The final G of the run, with `steps` steps per epoch; with `sparsity` the G if the threshold never ended."""
        return accumulated_threshold(self.rates(steps), self.scale(steps, median), self.mu, **self._threshold(steps))

    def _threshold(self, steps: int) -> _ThresholdOptions:
        return {"mode": self.mode, "momentum": self.momentum, "before": self.first_epoch * steps}


def nothing_left(settings: Training) -> str:
    """The message for a fork at or after the last epoch."""
    return (
        f"fork.epoch={settings.first_epoch} leaves nothing to train with epochs={settings.epochs}: "
        "fork earlier, or give more epochs"
    )


def fork_file(epoch: int) -> str:
    """The name of the file with the state after an epoch, in the directory of the trunk.

    >>> fork_file(5)
    'fork-000005.pt'
    """
    return f"fork-{epoch:06d}.pt"


def steps_an_epoch(samples: int, batch_size: int) -> int:
    """Batches in one epoch, the last one possibly smaller."""
    return -(-samples // batch_size)
