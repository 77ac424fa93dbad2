"""Forks of one run at several epochs as a spec: `forks` becomes named minima and the lines to their trunk.

`{of: sgd, epochs: [0, 5, 20], each: [{optimizer: sgd}, {optimizer: altsdp, target: 1.6}], seeds: 2}` makes `sgd_e0`,
`altsdp_e0`, ..., `altsdp_e20` of the trunk `sgd`, and of a second trunk `sgd_s2`, from another initialisation, the
forks `sgd_e0_s2`, ... All forks of a seed see the batches in one order that is not the trunk's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from valleyscope.app.experiments.spec_errors import InvalidField, raise_errors

_OTHER_ORDER: Final = 1000
_SEEDS: Final = ("seed", "order_seed", "augment_seed")
_OWN: Final = ("name", "order")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


class ForkSweep(BaseModel):
    """Forks of a minimum at several epochs, of several kinds and for several seeds."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    of: str = Field("sgd", min_length=1, max_length=40, description="the trunk: the minimum whose run is forked")
    epochs: tuple[int, ...] = Field(
        min_length=1, max_length=64, description="epochs of the trunk after which it is forked; 0 is its initialisation"
    )
    each: tuple[dict[str, Any], ...] = Field(
        ({"optimizer": "sgd"},),
        min_length=1,
        max_length=8,
        description="what is forked at each epoch: settings of a minimum, with a name; `order: same` keeps the trunk's",
    )
    seeds: int = Field(1, ge=1, le=20, description="repetitions, each with a trunk from another initialisation")

    @field_validator("epochs")
    @classmethod
    def _ascending(cls, epochs: tuple[int, ...]) -> tuple[int, ...]:
        if epochs[0] < 0 or any(b <= a for a, b in pairwise(epochs)):
            raise ValueError(f"{list(epochs)} must be ascending whole numbers, 0 or more")
        return epochs

    @field_validator("each")
    @classmethod
    def _named(cls, each: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        labels = [label_of(entry) for entry in each]
        for label, entry in zip(labels, each, strict=True):
            if not _NAME.fullmatch(label):
                raise ValueError(
                    f"name {label!r} is invalid: use a letter, then letters, digits, '-' or '_', 32 at most"
                )
            if labels.count(label) > 1:
                raise ValueError(f"two entries are called {label!r}: give each a name of its own")
            if entry.get("order", "other") not in ("other", "same"):
                raise ValueError(f"order={entry['order']!r} of {label!r}: use other or same")
            if unused := {"fork", "of", "checkpoint"} & set(entry):
                raise ValueError(f"{label!r} has {', '.join(sorted(unused))}, which the sweep sets: remove it")
        return each

    @property
    def trunks(self) -> list[str]:
        """The trunk of each seed."""
        return [self.of + _suffix(number) for number in range(self.seeds)]

    @property
    def made(self) -> dict[str, tuple[str, str, int]]:
        """The forks by name, each with its trunk, the label of its entry and its epoch."""
        return {
            f"{label_of(entry)}_e{epoch}{_suffix(number)}": (trunk, label_of(entry), epoch)
            for number, trunk in enumerate(self.trunks)
            for entry in self.each
            for epoch in self.epochs
        }

    def lines(self, minima: Sequence[str]) -> list[tuple[str, str]]:
        """From each trunk to its forks, and between the other minima; to the second trunk as an unrelated minimum."""
        others = [name for name in minima if name not in self.made and name not in self.trunks[1:]]
        unrelated = [(self.of, self.trunks[1])] if self.seeds > 1 else []
        forks = [(trunk, name) for name, (trunk, *_) in self.made.items()]
        return [*combinations(others, 2), *unrelated, *forks]

    @property
    def judged(self) -> tuple[str, str]:
        """The trunk and its latest fork of the last kind."""
        return self.of, f"{label_of(self.each[-1])}_e{self.epochs[-1]}"


def label_of(entry: Mapping[str, Any]) -> str:
    return str(entry.get("name") or entry.get("method") or entry.get("optimizer") or "sgd")


def with_forks(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a spec with the minima that its `forks` make."""
    expanded = dict(content)
    if content.get("forks") is None:
        return expanded
    try:
        sweep = ForkSweep.model_validate(content["forks"])
    except ValidationError:  # told with the field itself; until then the rest of the spec needs some minimum
        expanded["minima"] = content.get("minima") or {"sgd": {}}
        return expanded
    if content.get("methods") is not None:
        message = "forks and methods both make minima: give one of them"
        raise_errors([InvalidField(("forks",), None, message)])
    given = content.get("minima") or ({"sgd": {"optimizer": "sgd"}} if sweep.of == "sgd" else {})
    if not isinstance(given, Mapping):
        return expanded
    raise_errors(_errors(given, sweep))
    made = dict(_minima(content, given, sweep))
    expanded["minima"] = given if made.keys() <= given.keys() else {**given, **made}
    return expanded


def _errors(given: Mapping[str, Any], sweep: ForkSweep) -> Iterator[InvalidField]:
    made = [*sweep.trunks[1:], *sweep.made]
    if sweep.of not in given:
        message = f"{sweep.of!r} is not a minimum of this spec: use one of {', '.join(given) or 'its minima'}"
        yield InvalidField(("forks", "of"), sweep.of, message)
    elif sweep.of in made:
        yield InvalidField(("forks", "of"), sweep.of, f"{sweep.of!r} would fork from itself: fork another minimum")
    present = [name for name in made if name in given]
    if present and len(present) < len(made):
        message = f"forks make {', '.join(present)}: remove {'it' if len(present) == 1 else 'them'} from minima"
        yield InvalidField(("minima",), present, message)


def _minima(
    content: Mapping[str, Any], given: Mapping[str, Any], sweep: ForkSweep
) -> Iterator[tuple[str, dict[str, Any]]]:
    trunk = given.get(sweep.of)
    trunk = dict(trunk) if isinstance(trunk, Mapping) else {}
    first = next((seed for seed in _given_seeds(content, trunk) if _is_seed(seed)), 0)
    replica = {field: value for field, value in trunk.items() if field not in ("init_seed", *_SEEDS)}
    for number, name in enumerate(sweep.trunks):
        if number:
            yield name, {**replica, "seed": first + number}
    for name, (start, label, epoch) in sweep.made.items():
        entry = next(entry for entry in sweep.each if label_of(entry) == label)
        own = {field: value for field, value in entry.items() if field not in _OWN}
        order = first + sweep.trunks.index(start) + _OTHER_ORDER
        if entry.get("order") != "same" and not own.keys() & set(_SEEDS):
            own |= {"order_seed": order, "augment_seed": order}
        yield name, {"fork": {"from": start, "epoch": epoch}, **own}


def _given_seeds(content: Mapping[str, Any], trunk: Mapping[str, Any]) -> Iterator[Any]:
    training = content.get("training")
    yield trunk.get("seed")
    yield training.get("seed") if isinstance(training, Mapping) else None
    yield content.get("seed")


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _suffix(number: int) -> str:
    return f"_s{number + 1}" if number else ""
