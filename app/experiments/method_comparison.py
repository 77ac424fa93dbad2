"""A comparison of pruning methods as a spec: `methods`, `sparsities` or `macs`, and `seeds` become named minima.

Every seed has `sgd`, the pruned networks from its initialisation, and two controls: `control`, another initialisation,
and `reordered`, the same initialisation with another order of batches. Networks of further seeds end in `_s2`, `_s3`.
Where training is dear, a method's own `seeds` and `controls` limit the networks to the first few seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from valleyscope.app.experiments.spec_errors import InvalidField, raise_errors
from valleyscope.app.experiments.spec_errors import Path as FieldPath
from valleyscope.landscape.analysis.method_table import seed_of
from valleyscope.training.methods.catalog import METHODS, NOT_OURS

FIELDS: Final = ("methods", "sparsities", "macs", "seeds", "controls")
_CONTROL_SEED = 1000
_WISHES = {"sparsities": "sparsity", "macs": "macs"}


def with_methods(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a spec with the minima that its `methods` make."""
    expanded = dict(content)
    if content.get("methods") is None:
        given = [field for field in FIELDS[1:] if content.get(field) is not None]
        raise_errors(
            InvalidField((field,), content[field], f"{field} needs methods: name some, as ['altsdp', 'one-shot']")
            for field in given
        )
        return expanded
    raise_errors(_errors(content))
    minima = dict(_minima(content))
    known = content.get("minima")
    if known is not None and _named(known) != _named(minima):
        message = f"methods make the minima {', '.join(minima)}: remove minima"
        raise_errors([InvalidField(("minima",), list(known), message)])
    expanded["minima"] = minima if known is None else known
    return expanded


def star(names: Sequence[str]) -> list[tuple[str, str]]:
    """The lines of a comparison: from the SGD network of each seed to the other networks of that seed."""
    centres = {seed: name for name in names for base, seed in [seed_of(name)] if base == "sgd"}
    return [(centres[seed], name) for name in names for base, seed in [seed_of(name)] if base != "sgd"]


def _minima(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    first = content.get("seed") or 0
    seeds = content.get("seeds") or 1
    controls = content.get("controls")
    for number in range(seeds):
        suffix = f"_s{number + 1}" if number else ""
        seed: dict[str, Any] = {"seed": first + number}
        yield f"sgd{suffix}", {**seed, "optimizer": "sgd"}
        for method in content["methods"]:
            options: dict[str, Any] = {"method": method} if isinstance(method, str) else dict(method)
            if number >= options.pop("seeds", seeds):
                continue
            if METHODS[options["method"]].post_hoc:
                options.setdefault("of", f"sgd{suffix}")
            for wish, share in _wishes(content):
                yield f"{_label(options)}_{round(100 * share)}{suffix}", {**seed, **options, wish: share}
        if number >= (seeds if controls is None else controls):
            continue
        yield f"control{suffix}", {"optimizer": "sgd", "seed": first + number + _CONTROL_SEED}
        yield f"reordered{suffix}", {**seed, "optimizer": "sgd", "order_seed": first + number + _CONTROL_SEED}


def _label(options: Mapping[str, Any]) -> str:
    """The method, the choices given, and whether it is retrained: what tells two entries of one method apart."""
    choices = [options.get(field) for field in ("mode", "score", "scope")]
    parts = [options["method"], *choices, "retrained" if options.get("retrain") else None]
    return "-".join(str(part) for part in parts if part)


def _wishes(content: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(wish, share) for field, wish in _WISHES.items() for share in content.get(field) or ()]


def _errors(content: Mapping[str, Any]) -> Iterator[InvalidField]:
    methods = content["methods"]
    if not isinstance(methods, list | tuple) or not methods:
        yield InvalidField(("methods",), methods, "must be a list of methods, as ['altsdp', 'one-shot']")
        return
    for index, method in enumerate(methods):
        name = method.get("method") if isinstance(method, Mapping) else method
        if not isinstance(name, str) or name not in METHODS:
            known = ", ".join(METHODS)
            published = str(name).upper() in NOT_OURS
            why = "is not built here, only its published numbers are shown" if published else "is unknown"
            yield InvalidField(("methods", index), name, f"method {name!r} {why}: use one of {known}")
        if isinstance(method, Mapping) and "seeds" in method:
            yield from _number_errors(("methods", index, "seeds"), method["seeds"], 1, 20)
    yield from _alike(methods)
    given = [field for field in _WISHES if content.get(field)]
    if len(given) != 1:
        message = f"give shares of zero groups (sparsities) or of multiply-adds left (macs), not {len(given)} of them"
        yield InvalidField(("sparsities",), content.get("sparsities"), message)
    for field in given:
        shares = content[field]
        if not isinstance(shares, list | tuple):
            yield InvalidField((field,), shares, f"{shares!r} is not a list of shares: write it as [0.5]")
            continue
        for index, share in enumerate(shares):
            if not _is_number(share) or not 0 < share < 1:
                yield InvalidField((field, index), share, f"{share!r} is not a share above 0 and below 1")
            elif any(round(100 * share) == round(100 * other) for other in shares[:index] if _is_number(other)):
                message = f"another share is {round(100 * share)} %, too: networks are named by whole percents"
                yield InvalidField((field, index), share, message)
    for field, low, high in (("seeds", 1, 20), ("controls", 0, 20), ("seed", 0, 2**62)):
        if content.get(field) is not None:
            yield from _number_errors((field,), content[field], low, high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _alike(methods: Sequence[Any]) -> Iterator[InvalidField]:
    """Entries whose networks would have the same name."""
    seen: dict[str, int] = {}
    for index, method in enumerate(methods):
        options = method if isinstance(method, Mapping) else {"method": method}
        if isinstance(options.get("method"), str) and seen.setdefault(label := _label(options), index) != index:
            message = (
                f"{label!r} is there twice: entries of one method must differ in mode, score, scope or whether they "
                "are retrained; compare other options in two experiments"
            )
            yield InvalidField(("methods", index), label, message)


def _number_errors(path: FieldPath, number: Any, low: int, high: int) -> Iterator[InvalidField]:
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not (whole and low <= number <= high):
        yield InvalidField(path, number, f"{number!r} is not a whole number from {low} to {high}")


def _named(minima: Any) -> list[str]:
    return list(minima) if isinstance(minima, Mapping) else []
