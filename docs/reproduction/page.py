"""The tables and verdicts of docs/reproduction.md that follow from what is committed, between two comments each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from docs.reproduction.cells import Cell, cells, kind_of_pair
from docs.reproduction.parts import FOLDER, Part, parts
from valleyscope.app.experiments.cost import estimate
from valleyscope.app.experiments.gallery import gallery
from valleyscope.app.experiments.recipes import load_recipe, recipe_names
from valleyscope.landscape.storage.landscape_file import Landscape

PAGE = FOLDER.parent / "reproduction.md"
NOT_RUN = "not run yet"
# Cells further away than this miss.
CLOSE = {"sparsity": 0.05, "test_acc": 0.2}
OF_A_VALLEY = {
    "level valley": "holds",
    "one basin, sloping": "holds in part",
    "joined by a curve only": "holds in part",
    "separate": "does not hold",
    "undecided": "cannot tell here",
}
_BLOCK = re.compile(r"(?s)(<!-- made: ([a-z0-9-]+) -->\n).*?(<!-- end -->)")


def refreshed(text: str) -> str:
    """The page with every block made anew."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found[2]]()}\n\n{found[3]}", text)


def table_block(name: str) -> str:
    """A table of training runs of the paper beside ours."""
    part = parts()[name]
    found = [cell for cell in cells(part, part.landscape()) if cell.table == part.table["name"]]
    by_row: dict[tuple[int | None, str], dict[str, Cell]] = {}
    for cell in found:
        by_row.setdefault((cell.epoch, cell.network), {})[cell.quantity] = cell
    shown = {"sparsity": 4, "test_acc": 2, "train_loss": 4}
    lines = ["| epoch | network | sparsity: paper | ours | difference | test accuracy %: paper | ours | difference "]
    lines[0] += "| train loss: paper | ours | difference |"
    lines.append("|" + "---|" * 11)
    for (epoch, network), row in by_row.items():
        numbers = [text for quantity, digits in shown.items() for text in _three(row[quantity], digits)]
        lines.append("| " + " | ".join([str(epoch), network, *numbers]) + " |")
    return "\n".join([*lines, "", f"Verdict: {table_verdict(found)}"])


def table_verdict(found: list[Cell]) -> str:
    """The verdict on a table: how many cells are there, and how many of them are close."""
    judged = [cell for cell in found if cell.quantity in CLOSE]
    there = [cell for cell in judged if cell.difference is not None]
    if not there:
        return f"**{NOT_RUN}**."
    missed = [cell for cell in there if abs(cell.difference or 0.0) > CLOSE[cell.quantity]]
    where = ", ".join(f"{cell.network} {cell.quantity} at epoch {cell.epoch}" for cell in missed)
    said = f"{len(there) - len(missed)} of {len(there)} cells are within .05 sparsity and .2 points of accuracy"
    said += f"; not: {where}." if missed else "."
    if len(there) < len(judged):
        return f"**cannot tell here**: {len(judged) - len(there)} of {len(judged)} cells were not run. {said}"
    kind = "holds" if not missed else "holds in part" if 2 * len(missed) < len(there) else "does not hold"
    return f"**{kind}**. {said}"


def networks_block(name: str) -> str:
    """The networks of a part at their end, each with its line to SGD's, and the curves."""
    part = parts()[name]
    landscape = part.landscape()
    if landscape is None:
        return f"Verdict: **{NOT_RUN}**."
    found = [*_networks(part, landscape), "", *_curves(part, landscape), valley_verdict(landscape)]
    if (part.folder / "paper.svg").exists():
        found += ["", f"![Loss and error on a plane and along the paths: {part.title}](reproduction/{name}/paper.svg)"]
    return "\n".join(found)


def _networks(part: Part, landscape: Landscape) -> Iterator[str]:
    rows = {(cell.table, cell.network, cell.quantity): cell for cell in cells(part, landscape)}
    yield "| network | train loss | test accuracy | zero groups | line to sgd: barrier | rise | verdict on the pair |"
    yield "|---|---|---|---|---|---|---|"
    for name, record in landscape.minima.items():
        end = record.final
        facts = [name, f"{end['train_loss']:.4f}", f"{100 * end['test_accuracy']:.1f} %", f"{end['zero_groups']:.1%}"]
        for quantity in ("barrier", "rise"):
            cell = rows.get(("line", f"sgd to {name}", quantity)) or rows.get(("line", f"{name} to sgd", quantity))
            facts.append("" if cell is None else _interval(cell))
        facts.append(kind_of_pair(landscape, "sgd", name) if facts[-1] else "")
        yield "| " + " | ".join(facts) + " |"


def _curves(part: Part, landscape: Landscape) -> Iterator[str]:
    rows = [cell for cell in cells(part, landscape) if cell.table == "curve"]
    if not rows:
        return
    yield "| fitted curve | barrier | rise |"
    yield "|---|---|---|"
    for barrier, rise in zip(rows[::2], rows[1::2], strict=True):
        yield f"| {barrier.network} | {_interval(barrier)} | {_interval(rise)} |"
    yield ""


def valley_verdict(landscape: Landscape) -> str:
    """Whether a landscape shows one flat valley, with the sentence of its own verdict."""
    found = landscape.verdict
    if found is None:
        return "Verdict: **cannot tell here**: the pair was not judged."
    return f"Verdict: **{OF_A_VALLEY[found['kind']]}**. {found['finding']}"


def methods_block() -> str:
    """Points of accuracy lost and multiply-adds left by the paper's methods, beside our reduced tables."""
    heading = ("network", "method", "paper: points lost", "multiply-adds left")
    heading += ("ours, reduced: points lost", "multiply-adds left")
    lines = [f"| {' | '.join(heading)} |", "|" + "---|" * len(heading)]
    for name in ("pruning", "resnet"):
        part = parts()[name]
        rows = [cell for cell in cells(part, part.landscape()) if cell.table == "dif-alg-table"]
        for lost, left in zip(rows[::2], rows[1::2], strict=True):
            ours = ("not run", "") if lost.ours is None else (f"{lost.ours:.1f}", f"{left.ours:.0%}")
            facts = (part.methods["model"], lost.network, f"{lost.paper:.2f}", f"{left.paper:.0%}", *ours)
            lines.append(f"| {' | '.join(facts)} |")
    return "\n".join(lines)


def valleys_block() -> str:
    """For each network one answer: do SGD and AltSDP share one flat valley?"""
    lines = [
        "| network | one flat valley? | line: barrier | rise | control's line: barrier | one-shot at equal sparsity |"
    ]
    lines.append("|" + "---|" * 6)
    for title, landscape in _answered():
        found = (landscape.verdict if landscape else None) or {}
        if landscape is None or "line" not in found:
            lines.append(f"| {title} | {NOT_RUN} | | | | |")
            continue
        line, control = found["line"], found.get("control") or {}
        answer = "yes" if found["kind"] == "level valley" else f"no: {found['kind']}"
        against = "" if not control else f"{control['line']['barrier']:.3f}"
        facts = [title, answer, f"{line['barrier']:.3f}", f"{line['rise']['value']:.3f}", against, _one_shot(landscape)]
        lines.append("| " + " | ".join(facts) + " |")
    return "\n".join(lines)


def _answered() -> Iterator[tuple[str, Landscape | None]]:
    yield "digits, the demo", gallery("demo")
    for name in ("digits", "mnist", "vgg16", "wrn"):
        part = parts()[name]
        yield f"{part.title.partition(' (')[0]}, {part.size}", part.landscape()


def _one_shot(landscape: Landscape) -> str:
    cut = next((run for run in landscape.minima.values() if run.optimizer == "one-shot"), None)
    if cut is None:
        return "not run"
    end = cut.final
    return f"{cut.name}: loss {end['train_loss']:.3f}, {100 * end['test_accuracy']:.1f} %"


def full_size_block() -> str:
    """What each recipe at full size takes, by the product's own estimate."""
    lines = ["| recipe | hours on one GPU | hours on one core |", "|---|---|---|"]
    for name in recipe_names():
        if name != "digits":
            found = estimate(load_recipe(name))
            lines.append(f"| `valley run {name}` | {found.gpu_hours:.1f} | {found.core_hours:,.0f} |")
    return "\n".join(lines)


def _three(cell: Cell, digits: int) -> list[str]:
    ours = ["not run", ""] if cell.difference is None else [f"{cell.ours:.{digits}f}", f"{cell.difference:+.{digits}f}"]
    return [f"{cell.paper:.{digits}f}", *ours]


def _interval(cell: Cell) -> str:
    numbers = f"{cell.ours:.3f}"
    return numbers if cell.low is None else f"{numbers} ({cell.low:.3f} to {cell.high:.3f})"


BLOCKS: dict[str, Callable[[], str]] = {
    "valleys": valleys_block,
    "mnist": lambda: table_block("mnist"),
    "mnist-valley": lambda: networks_block("mnist"),
    "digits": lambda: networks_block("digits"),
    "vgg16": lambda: networks_block("vgg16"),
    "wrn": lambda: networks_block("wrn"),
    "methods": methods_block,
    "full-size": full_size_block,
}
