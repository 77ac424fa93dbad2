"""Many ES modules as one file, so that a browser asks once instead of seventy times.

There is no build step: the server joins the modules of static/ when it first sends them. Each module becomes a function
that runs when it is first imported, so a view costs nothing until it is opened. No line moves, so a source map (which
browsers load only for developers) shows the modules as they are written.

It reads the part of JavaScript's imports and exports that the page uses, at the start of a line, and refuses the rest:

    import { a, b as c } from './x.js';     export function f() {}       export default function f() {}
    import data from './y.json' with {...}; export const a = 1;          export { a, b };
    import './x.js';                        export class A {}            await import('./views/x.js')
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from typing import Final

_HEAD: Final = """const $made = {}, $modules = {
"""
_FOOT: Final = """};
function $need(name) { return ($made[name] ??= $modules[name]()); }
async function $load(name) { return $need(name); }
"""
_IMPORT = re.compile(r"^import\s+(?:([^'\";]+?)\s+from\s+)?'(\.[^']+)'(?:\s+with\s+\{[^}]*\})?;", re.MULTILINE)
_DYNAMIC = re.compile(r"\bimport\('(\.[^']+)'\)")
_DEFAULT = re.compile(r"^export default (async function|function|class) (\w+)", re.MULTILINE)
_DECLARED = re.compile(r"^export (async function\*?|function\*?|class|const) (\w+)", re.MULTILINE)
_LISTED = re.compile(r"^export \{([^}]*)\};", re.MULTILINE)
_LEFT = re.compile(r"^(?:import\b(?!\.)|export\b).*", re.MULTILINE)
_DIGITS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class UnknownModule(ValueError):
    """A module that cannot be joined with the others."""


@dataclass(frozen=True)
class Joined:
    """The modules as one, and the source map that tells them apart."""

    script: str
    source_map: str


def join_modules(sources: Mapping[str, str], entry: str, map_name: str) -> Joined:
    """The entry and all that it imports, at once or later; names are paths from the folder of the entry."""
    names = list(_reached(sources, entry))
    _check_order(sources, entry)
    script = _HEAD
    lines: list[tuple[int, int] | None] = [None] * _HEAD.count("\n")
    for index, name in enumerate(names):
        part = _wrapped(name, sources[name])
        script += part
        known = sources[name].count("\n") + 1
        lines += [(index, line) if line < known else None for line in range(part.count("\n"))]
    script += f"{_FOOT}$need({json.dumps(entry)});\n//# sourceMappingURL={map_name}\n"
    about = {"version": 3, "names": [], "sources": names, "sourcesContent": [sources[name] for name in names]}
    return Joined(script, json.dumps({**about, "mappings": _mappings(lines)}))


def _reached(sources: Mapping[str, str], entry: str) -> Iterator[str]:
    found: set[str] = set()
    waiting = [entry]
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        found.add(name)
        yield name
        waiting += _imported(sources, name, later=True)


def _imported(sources: Mapping[str, str], name: str, *, later: bool) -> list[str]:
    if name.endswith(".json"):
        return []
    source = sources[name]
    wanted = [found[2] for found in _IMPORT.finditer(source)]
    if later:
        wanted += _DYNAMIC.findall(source)
    resolved = [_resolved(name, target) for target in wanted]
    if missing := [target for target in resolved if target not in sources]:
        raise UnknownModule(f"{name} imports {missing[0]}, which does not exist")
    return resolved


def _check_order(sources: Mapping[str, str], entry: str) -> None:
    """A module runs after those that it imports, so these must not import it in turn."""
    finished: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise UnknownModule(f"modules import each other in a circle: {' -> '.join((*above, name))}")
        if name not in finished:
            for target in _imported(sources, name, later=False):
                visit(target, (*above, name))
            finished.add(name)

    for name in _reached(sources, entry):
        visit(name, ())


def _wrapped(name: str, source: str) -> str:
    """A property whose function runs the module and returns what it exports; the module's lines stay its own."""
    key = json.dumps(name)
    if name.endswith(".json"):
        return f"{key}() {{ return {{ default: {source}\n}}; }},\n"
    exported: dict[str, str] = {}

    def declared(found: re.Match[str]) -> str:
        exported[found[2]] = found[2]
        return f"{found[1]} {found[2]}"

    def default(found: re.Match[str]) -> str:
        exported["default"] = found[2]
        return f"{found[1]} {found[2]}"

    def listed(found: re.Match[str]) -> str:
        for item in filter(None, (item.strip() for item in found[1].split(","))):
            inner, _, outer = item.partition(" as ")
            exported[outer or inner] = inner
        return "\n" * found[0].count("\n")

    source = _IMPORT.sub(lambda found: _bound(name, found), source)
    source = _DYNAMIC.sub(lambda found: f"$load({json.dumps(_resolved(name, found[1]))})", source)
    source = source.replace("import.meta.url", f"new URL({key}, import.meta.url).href")
    source = _LISTED.sub(listed, _DECLARED.sub(declared, _DEFAULT.sub(default, source)))
    if left := _LEFT.search(source):
        raise UnknownModule(f"{name}: write {left[0]!r} in a form that app/api/module_bundle.py knows")
    fields = ", ".join(f"{outer}: {inner}" for outer, inner in exported.items())
    return f"{key}() {{ {source}\nreturn {{ {fields} }}; }},\n"


def _bound(name: str, found: re.Match[str]) -> str:
    """An import as a constant, on as many lines as it had."""
    module = f"$need({json.dumps(_resolved(name, found[2]))})"
    breaks = "\n" * found[0].count("\n")
    if found[1] is None:
        return f"{module};{breaks}"
    wanted = found[1].strip()
    if wanted.startswith("{"):
        fields = " ".join(wanted.replace(" as ", ": ").split())
    elif re.fullmatch(r"\w+", wanted):
        fields = f"{{ default: {wanted} }}"
    else:
        raise UnknownModule(f"{name}: write 'import {wanted} from ...' in a form that app/api/module_bundle.py knows")
    return f"const {fields} = {module};{breaks}"


def _resolved(name: str, target: str) -> str:
    return normpath(join(dirname(name), target))


def _mappings(lines: list[tuple[int, int] | None]) -> str:
    """The mappings of a source map: for each line the module and the line in it, as differences to the one before."""
    before = (0, 0)
    groups: list[str] = []
    for line in lines:
        if line is None:
            groups.append("")
            continue
        groups.append("".join(map(_digits, (0, line[0] - before[0], line[1] - before[1], 0))))
        before = line
    return ";".join(groups)


def _digits(value: int) -> str:
    """A number as a source map writes it: five bits a letter, the lowest of all is the sign."""
    rest = (abs(value) << 1) | (value < 0)
    text = ""
    while True:
        rest, five = rest >> 5, rest & 31
        text += _DIGITS[five | (32 if rest else 0)]
        if not rest:
            return text
