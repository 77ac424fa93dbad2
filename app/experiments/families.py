"""Families of many minima: which pairs get a line, and which sets are evaluated as one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from valleyscope.app.experiments.spec_errors import InvalidField

if TYPE_CHECKING:
    from valleyscope.app.experiments.spec import Spec

MOST_MINIMA = 64
"""Of a spec whose every pair has a line: 64 minima have 2016."""

Pairs = Literal["all", "star"] | Annotated[tuple[tuple[str, str], ...], Field(max_length=2016)]


def wanted_lines(spec: Spec) -> list[tuple[str, str]]:
    """The pairs that the spec asks for, and those that its verdict needs, in the order of the minima."""
    if spec.pairs is None or spec.pairs == "all":
        return list(combinations(spec.minima, 2))
    first, *others = spec.minima
    asked = [(first, other) for other in others] if spec.pairs == "star" else list(spec.pairs)
    found: dict[frozenset[str], tuple[str, str]] = {}
    order = {name: place for place, name in enumerate(spec.minima)}
    for pair in (*asked, *judged_pairs(spec)):
        if set(pair) <= order.keys():
            start, end = sorted(pair, key=order.__getitem__)
            found.setdefault(frozenset(pair), (start, end))
    return list(found.values())


def judged_pairs(spec: Spec) -> list[tuple[str, str]]:
    """The pairs among the two minima that are judged and their control."""
    return list(combinations([*(spec.between or ()), *filter(None, (spec.control,))], 2))


def family_errors(spec: Spec) -> Iterator[InvalidField]:
    """Names in `pairs` and `ensembles` that are no minima, or stand twice."""
    count, all_pairs = len(spec.minima), spec.pairs in (None, "all")
    if spec.methods is None and spec.forks is None and all_pairs and count > MOST_MINIMA:
        message = f"{count} minima have too many lines between them: give {MOST_MINIMA} at most, or choose pairs"
        yield InvalidField(("minima",), count, message)
    if spec.pairs is not None and (spec.methods is not None or spec.forks is not None):
        maker = "methods" if spec.methods is not None else "forks"
        yield InvalidField(("pairs",), str(spec.pairs), f"{maker} choose the lines themselves: remove pairs")
    for index, pair in enumerate(spec.pairs if isinstance(spec.pairs, tuple) else ()):
        yield from _unknown(spec, ("pairs", index), pair)
        if pair[0] == pair[1]:
            yield InvalidField(("pairs", index), list(pair), f"{list(pair)} names one minimum twice: name two")
    for name, members in (spec.ensembles or {}).items():
        yield from _unknown(spec, ("ensembles", name), members)
        if len(set(members)) < max(2, len(members)):
            message = f"{list(members)} needs two or more different minima"
            yield InvalidField(("ensembles", name), list(members), message)


def _unknown(spec: Spec, path: tuple[str | int, ...], names: tuple[str, ...]) -> Iterator[InvalidField]:
    for place, name in enumerate(names):
        if name not in spec.minima:
            message = f"{name!r} is not a minimum of this spec: use some of {', '.join(spec.minima)}"
            yield InvalidField((*path, place), name, message)
