"""The validated settings of a training run, also part of an experiment's spec."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from valleyscope.training.schedules import Halving, Schedule, step_rates
from valleyscope.training.thresholds import Mode, accumulated_threshold, c_for_sparsity, c_for_target

Structure = Literal["filter", "kernel", "vector", "element"]
STRUCTURES: tuple[Structure, ...] = ("filter", "kernel", "vector", "element")
STRENGTHS = ("c", "target", "sparsity")
LARGEST_SEED = 2**63 - 1


class Training(BaseModel):
    """Settings of one training run by SGD or AltSDP."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    optimizer: Literal["sgd", "altsdp"] = Field("sgd", description="sgd, or altsdp for group-sparse training")
    epochs: int = Field(120, ge=1, le=100_000, description="passes over the training set")
    batch_size: int = Field(32, ge=1, le=1_000_000, description="images in a gradient step")
    lr: float = Field(0.1, gt=0, le=1000, description="base learning rate")
    schedule: Schedule = Field(Halving(), description="how the learning rate falls")
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum of the gradient; also scales AltSDP's thresholds")
    weight_decay: float = Field(0.0, ge=0, le=1000, description="L2 penalty added to the gradient")
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
    snapshots: int = Field(0, ge=0, le=100_000, description="epochs between kept snapshots of the weights; 0 for none")

    @model_validator(mode="after")
    def _one_strength(self) -> Training:
        given = [f"{name}={value}" for name in STRENGTHS if (value := getattr(self, name)) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: give one of them, target and sparsity determine c")
        if self.sparsity is not None and self.sparsity > 1 - self.floor:
            raise ValueError(f"sparsity={self.sparsity} cannot be reached: floor={self.floor} of each layer is kept")
        if self.tie_residual and self.structure != "filter":
            raise ValueError(f"tie_residual ties filters: use structure filter, not {self.structure}")
        return self

    @property
    def initialisation(self) -> int:
        return self.seed if self.init_seed is None else self.init_seed

    @property
    def order(self) -> int:
        return self.seed if self.order_seed is None else self.order_seed

    @property
    def augmentation(self) -> int:
        return self.seed if self.augment_seed is None else self.augment_seed

    def keeps_snapshot_of(self, epoch: int) -> bool:
        """Whether a snapshot is kept after this epoch (counted from 1); always after the last one."""
        return self.snapshots > 0 and (epoch % self.snapshots == 0 or epoch == self.epochs)

    @property
    def snapshot_count(self) -> int:
        """Number of snapshots of the run."""
        return -(-self.epochs // self.snapshots) if self.snapshots else 0

    def rates(self, steps: int) -> npt.NDArray[np.float64]:
        """Learning rates of all steps, with `steps` steps per epoch."""
        return step_rates(self.schedule, self.lr, self.epochs, steps)

    def scale(self, steps: int, median: float | None = None) -> float:
        """AltSDP's c: as given, or from the target, or the paper's 1e-6; 0 for SGD.

        With `sparsity` it is the first guess, from the median of the initial group norms.
        """
        if self.optimizer == "sgd":
            return 0.0
        if self.sparsity is not None:
            if median is None:
                raise ValueError(f"sparsity={self.sparsity}: its c depends on the median of the initial group norms")
            return c_for_sparsity(
                self.sparsity, median, self.rates(steps), self.mu, mode=self.mode, momentum=self.momentum
            )
        if self.target is not None:
            return c_for_target(self.target, self.rates(steps), self.mu, mode=self.mode, momentum=self.momentum)
        return 1e-6 if self.c is None else self.c

    def reach(self, steps: int, median: float | None = None) -> float:
        """The final G of the run, with `steps` steps per epoch; with `sparsity` the G if the threshold never ended."""
        return accumulated_threshold(
            self.rates(steps), self.scale(steps, median), self.mu, mode=self.mode, momentum=self.momentum
        )


def steps_an_epoch(samples: int, batch_size: int) -> int:
    """Batches in one epoch, the last one possibly smaller."""
    return -(-samples // batch_size)
