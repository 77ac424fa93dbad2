"""Hook of mkdocs (mkdocs.yml): pages of the site that follow from the project, so nothing is written down twice.

The start page is README.md, changes and contributing are the files of those names; rest.md is the OpenAPI document;
gallery.md and gallery/*.html are the landscapes that ship, drawn by the modules of the report.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from valleyscope.app.api.app import create_app
from valleyscope.app.experiments.gallery import gallery, gallery_entries
from valleyscope.app.settings import Settings
from valleyscope.landscape.report.page import report_html

HOUSE = Path(__file__).resolve().parents[1]
_FENCE = re.compile(r"\s*```")
_ITEM = re.compile(r"(- |\d+\. |\|)")
_LOADED = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="([^"#?]+)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {
        "index.md": from_docs((HOUSE / "README.md").read_text(encoding="utf-8")),
        "changelog.md": from_docs((HOUSE / "CHANGELOG.md").read_text(encoding="utf-8")),
        "contributing.md": from_docs((HOUSE / "CONTRIBUTING.md").read_text(encoding="utf-8")),
        "rest.md": "\n".join(rest_lines()),
        "gallery.md": "\n".join(gallery_lines()),
        **{f"gallery/{entry.name}.html": report_html(gallery(entry.name)) for entry in gallery_entries()},
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return "\n".join(_separated(markdown.splitlines()))


def on_post_build(config: MkDocsConfig) -> None:
    """What a page loads is a file of the site: it works without a network. Links of texts are checked by mkdocs."""
    site = Path(config.site_dir)
    for page in site.rglob("*.html"):
        if page.parent.name == "gallery" or page.name == "404.html":  # alone in one file; for the root of a host
            continue
        for address in _LOADED.findall(page.read_text(encoding="utf-8")):
            if not address.startswith("data:") and not (page.parent / address).is_file():
                raise PluginError(f"{page.relative_to(site)} loads {address}, which is not a file of the site")


def from_docs(text: str) -> str:
    """A text of the project's root with its links as they are seen from docs/; files outside of docs are no links.

    >>> from_docs("[a](docs/a.md), [b](docs/notebooks), [c](CONTRIBUTING.md), [d](LICENSE)")
    '[a](a.md), b, [c](contributing.md), d'
    """
    text = text.replace("](docs/", "](").replace("](CONTRIBUTING.md)", "](contributing.md)")
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!http|#)[\w./-]+(?<!\.md)(?<!\.webp)\)", r"\1", text)


def _separated(lines: list[str]) -> Iterator[str]:
    """Lists and tables need an empty line before them here, which GitHub does not ask for."""
    fenced, before = False, ""
    for line in lines:
        fenced ^= bool(_FENCE.match(line))
        starts = _ITEM.match(line) and not _ITEM.match(before) and not before.startswith((" ", "#"))
        if starts and before.strip() and not fenced:
            yield ""
        yield line
        before = line


def rest_lines() -> Iterator[str]:
    """The REST reference: every call with its parameters and responses."""
    with tempfile.TemporaryDirectory() as home:
        document = create_app(Settings(home=Path(home))).openapi()
    yield "# REST reference\n"
    yield document["info"]["description"].strip() + "\n"
    yield "A running service has the same document, with all schemas and examples, at `/api/openapi.json`.\n"
    calls: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            section = path.removeprefix("/api/").strip("/").partition("/")[0]
            calls.setdefault(section, []).append("\n".join(_call(method.upper(), path, operation)))
    for section, texts in sorted(calls.items()):
        yield f"## {section}\n"
        yield from texts


def _call(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method} {path}`\n"
    yield (operation.get("description") or operation.get("summary") or "").strip() + "\n"
    parameters = [parameter for parameter in operation.get("parameters", []) if parameter["in"] != "header"]
    if parameters:
        yield "| parameter | in | type | |"
        yield "|---|---|---|---|"
        for parameter in parameters:
            said = _cell(parameter.get("description") or parameter["schema"].get("description") or "")
            needed = " (required)" if parameter.get("required") and parameter["in"] != "path" else ""
            yield f"| `{parameter['name']}` | {parameter['in']} | {_type(parameter['schema'])} | {said}{needed} |"
        yield ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body: `{kind}`, {_type(content.get('schema', {}))}.\n"
    good = {status: answer for status, answer in operation["responses"].items() if int(status) < 400}
    bad = ", ".join(status for status in operation["responses"] if int(status) >= 400)
    said = "; ".join(f"{status} {answer['description']}" for status, answer in good.items())
    yield f"Responses: {said}. Errors: {bad}.\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(option) for option in schema["anyOf"] if option.get("type") != "null"))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def gallery_lines() -> Iterator[str]:
    """The landscapes that ship, each with its verdict and live plots."""
    yield "# Gallery\n"
    yield "Finished landscapes that ship with the program: `valley gallery` lists them, and the first screen of"
    yield "`valley serve` shows them. The plots are live: hover, zoom, click the legend. `python docs/gallery.py`"
    yield "computes the landscapes.\n"
    for entry in gallery_entries():
        yield f"## {entry.title}\n"
        yield f"{entry.shows}\n"
        yield f"{(gallery(entry.name).verdict or {}).get('finding', entry.verdict)}\n"
        address = f"gallery/{entry.name}.html"
        yield f"[Alone, in full]({address})\n"
        yield f'<iframe src="{address}" title="{entry.title}" loading="lazy" width="100%" height="760"></iframe>\n'
