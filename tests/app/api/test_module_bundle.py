"""The modules of the page as one file: what they export reaches who imports it, and their lines keep their places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from valleyscope.app.api.module_bundle import UnknownModule, join_modules
from valleyscope.landscape.plot_style import STATIC

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def sources_of(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.suffix in (".js", ".json"))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


def places(mappings: str) -> list[tuple[int, int] | None]:
    """Module and line of each line, read as the specification of source maps says."""
    found: list[tuple[int, int] | None] = []
    module = line = 0
    for group in mappings.split(";"):
        if not group:
            found.append(None)
            continue
        numbers, value, shift = [], 0, 0
        for letter in group:
            digit = DIGITS.index(letter)
            value += (digit & 31) << shift
            shift += 5
            if not digit & 32:
                numbers.append(-(value >> 1) if value & 1 else value >> 1)
                value = shift = 0
        module, line = module + numbers[1], line + numbers[2]
        found.append((module, line))
    return found


def test_every_line_of_the_page_is_found_at_its_place_in_its_module() -> None:
    sources = sources_of(STATIC)
    joined = join_modules(sources, "main.js", "main.js.map")
    about = json.loads(joined.source_map)
    script = joined.script.split("\n")
    seen: dict[str, int] = {}
    for number, place in enumerate(places(about["mappings"])):
        if place is None:
            continue
        name = about["sources"][place[0]]
        seen[name] = max(seen.get(name, 0), place[1] + 1)
        written = sources[name].split("\n")[place[1]]
        if name.endswith(".js") and place[1] and not written.startswith(("import", "export", "}")):
            assert "import" in written or script[number] == written, f"{name}, line {place[1] + 1}"
    assert about["sourcesContent"] == [sources[name] for name in about["sources"]]
    assert set(seen) == set(about["sources"])
    assert all(count == len(sources[name].split("\n")) for name, count in seen.items())
    views = {name for name in sources if name.startswith("panels/") or name == "views/experiment.js"}
    assert views <= set(seen), "what a view imports is there before it is opened"


def test_an_import_keeps_its_lines_and_a_rename() -> None:
    sources = {
        "main.js": "import {\n  a,\n  b as c,\n} from './lib/x.js';\nimport './lib/y.js';\nc(a);\n",
        "lib/x.js": (
            "import d from '../d.json' with { type: 'json' };\n"
            "export const a = d;\nfunction f() {}\nexport { f as b };\n"
        ),
        "lib/y.js": "export default function g() {}\nimport.meta.url;\n",
        "d.json": "[1]",
    }
    script = join_modules(sources, "main.js", "m").script.split("\n")
    assert script[1] == '"main.js"() { const { a, b: c, } = $need("lib/x.js");'
    assert script[5:7] == ['$need("lib/y.js");', "c(a);"]
    assert "return { a: a, b: f }; }," in script
    assert 'new URL("lib/y.js", import.meta.url).href;' in script


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("export * from './x.js';", "export \\*"),
        ("export let a = 1;", "export let a"),
        ("import * as x from './x.js';", "import \\* as x"),
        ("import './missing.js';", "missing.js, which does not exist"),
        ("import './circle.js';", "circle: main.js -> circle.js -> main.js"),
    ],
)
def test_what_it_cannot_join_is_refused_by_name(line: str, named: str) -> None:
    sources = {"main.js": f"{line}\n", "x.js": "", "circle.js": "import './main.js';\n"}
    with pytest.raises(UnknownModule, match=named):
        join_modules(sources, "main.js", "m")
