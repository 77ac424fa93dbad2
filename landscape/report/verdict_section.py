"""The head of the report: the verdict as a badge, a sentence and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from valleyscope.landscape.analysis.alignment_text import UP_TO_PERMUTATION
from valleyscope.landscape.report.html_text import barrier, interval, percent, text


@dataclass(frozen=True)
class Badge:
    """A tone and a small drawing: what the verdict says about the valley, seen from the side."""

    tone: str
    drawing: str


_GROUND = 'fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"'
_BALLS = '<circle cx="{}" cy="{}" r="1.9" fill="currentColor"/><circle cx="{}" cy="{}" r="1.9" fill="currentColor"/>'

BADGES: Final[Mapping[str, Badge]] = {
    "level valley": Badge(
        "good", f'<path d="M2 5C3 17 5 19 8 19H16C19 19 21 17 22 5" {_GROUND}/>' + _BALLS.format(9, 16.3, 15, 16.3)
    ),
    "one basin, sloping": Badge(
        "fair", f'<path d="M2 4C3 19 6 21 9 20C15 18 20 12 22 5" {_GROUND}/>' + _BALLS.format(7.5, 17.4, 15.5, 13)
    ),
    "joined by a curve only": Badge(
        "fair",
        f'<path d="M2 6C3 20 9 20 12 11C15 20 21 20 22 6" {_GROUND}/>'
        f'<path d="M7 12C9 4 15 4 17 12" {_GROUND} stroke-dasharray="2 2.6"/>' + _BALLS.format(7, 14, 17, 14),
    ),
    "separate": Badge(
        "poor", f'<path d="M2 6C3 21 9 21 12 5C15 21 21 21 22 6" {_GROUND}/>' + _BALLS.format(7, 14, 17, 14)
    ),
    "undecided": Badge(
        "open",
        f'<path d="M9 8.5C9 4 16 4 16 8.5C16 12 12.4 11.4 12.4 15" {_GROUND}/>'
        '<circle cx="12.4" cy="19" r="1.3" fill="currentColor"/>',
    ),
}
_ONE_BASIN: Final = ("level valley", "one basin, sloping")
NONE: Final = Badge("open", f'<circle cx="12" cy="12" r="8" {_GROUND} stroke-dasharray="3 3.3"/>')


def head(verdict: Mapping[str, Any] | None) -> str:
    """Badge, sentence, numbers and notes; without a verdict, that there is none."""
    if verdict is None:
        return f'<div class="verdict open">{_badge("no verdict", NONE)}<p class="sentence">{_NO_VERDICT}</p></div>'
    kind = str(verdict.get("kind", "undecided"))
    alignment = verdict.get("alignment") or {}
    beside = kind not in _ONE_BASIN and alignment.get("kind") == UP_TO_PERMUTATION
    words = f"{kind}; {UP_TO_PERMUTATION}" if beside else kind
    badge = BADGES.get(kind, NONE)
    sentence = str(verdict.get("sentence", kind))
    finding = str(verdict.get("finding", sentence))
    more = sentence.removeprefix(finding).strip()
    notes = "".join(f"<li>{text(note)}</li>" for note in verdict.get("notes") or [])
    return (
        f'<div class="verdict {badge.tone}">{_badge(words, badge)}'
        f'<p class="sentence">{text(finding)}</p>{_numbers(verdict)}'
        + (f'<p class="more">{text(more)}</p>' if more else "")
        + (f'<ul class="notes">{notes}</ul>' if notes else "")
        + "</div>"
    )


_NO_VERDICT = "No verdict: this landscape has surfaces or paths, but no comparison of two minima."


def _badge(words: str, badge: Badge) -> str:
    return (
        f'<p class="badge"><svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">{badge.drawing}</svg>'
        f"<span>{text(words)}</span></p>"
    )


def _numbers(verdict: Mapping[str, Any]) -> str:
    start, end = [*(verdict.get("between") or ()), "", ""][:2]
    pair = f"{start} to {end}"
    control = verdict.get("control") or {}
    errors = verdict.get("test_error") or {}
    level = verdict.get("level")
    line = verdict.get("line") or {}
    cells = [
        _estimate("rise, straight line", pair, line.get("rise"), "value", level),
        _barrier("barrier, straight line", pair, line, level),
        _barrier("barrier, aligned line", pair, (verdict.get("alignment") or {}).get("line"), level),
        _barrier("barrier, fitted curve", pair, verdict.get("curve"), level),
        _barrier(f"{control.get('name', 'control')}: straight line", "for comparison", control.get("line"), level),
        _barrier(f"{control.get('name', 'control')}: fitted curve", "for comparison", control.get("curve"), level),
        _error("test error, straight line", pair, errors.get("line")),
        _tolerance(verdict),
    ]
    return f'<dl class="numbers">{"".join(cell for cell in cells if cell)}</dl>'


def _tolerance(verdict: Mapping[str, Any]) -> str:
    value = verdict.get("tolerance")
    if value is None:
        return ""
    nats = verdict.get("unit", "nats") == "nats"
    what = f"{verdict.get('split', 'train')} loss"
    return _cell("tolerance", f"{value:g}" if nats else f"{value:.3g}", f"nats of {what}" if nats else what)


def _barrier(label: str, where: str, values: Mapping[str, Any] | None, level: float | None) -> str:
    return _estimate(label, where, values, "barrier", level)


def _estimate(label: str, where: str, values: Mapping[str, Any] | None, name: str, level: float | None) -> str:
    """A number over its interval, or over what it is about where the interval is not known; null is infinite."""
    if not values:
        return ""
    bounds = interval(values.get("low"), values.get("high"))
    share = f"{100 * level:.0f} %: " if level and bounds != "none" else ""
    below = "interval: none" if bounds == "none" else f"{share}{bounds}" if bounds else where
    return _cell(label, "∞" if values.get(name) is None else barrier(values[name]), below)


def _error(label: str, where: str, values: Mapping[str, Any] | None) -> str:
    if not values or values.get("min") is None:
        return ""
    low, high = (percent(values[key]).removesuffix(" %") for key in ("min", "max"))
    return _cell(label, f"{low} to {high} %", where)


def _cell(label: str, value: str, below: str) -> str:
    return f"<div><dt>{text(label)}</dt><dd>{text(value)}<small>{text(below)}</small></dd></div>"
