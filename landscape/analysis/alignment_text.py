"""What aligning hidden units does to a verdict: the straight line to an aligned network, in words and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from valleyscope.landscape.analysis.barriers import Barrier

UP_TO_PERMUTATION: Final = "one basin up to permutation"
STILL_SEPARATE: Final = "separate up to permutation"
NOT_ALIGNED: Final = "not aligned"
UNDECIDED: Final = "undecided up to permutation"
_HOW: Final = {"weights": "by their weights", "activations": "by their activations"}


@dataclass(frozen=True)
class AlignedLine:
    """The straight line from one minimum to the other with its hidden units in the order of the first."""

    method: str
    line: Barrier | None
    """None for a network that could not be aligned; the note says why."""
    note: str = ""
    of_minima: bool = True
    """Whether both networks are better than guessing; else a line without a barrier means nothing."""

    def kind(self, tolerance: float) -> str:
        """What the aligned line says at a tolerance."""
        if self.line is None:
            return NOT_ALIGNED
        if not self.of_minima:
            return UNDECIDED
        if self.line.surely_within(tolerance):
            return UP_TO_PERMUTATION
        return STILL_SEPARATE if self.line.surely_above(tolerance) else UNDECIDED

    def to_json(self, tolerance: float, line: dict[str, Any] | None) -> dict[str, Any]:
        return {"method": self.method, "kind": self.kind(tolerance), "line": line, "note": self.note}


def alignment_sentence(
    aligned: AlignedLine | None,
    *,
    kind: str,
    between: tuple[str, str],
    line: Barrier,
    tolerance: float,
    number: Callable[[Barrier], str],
) -> str:
    """Both numbers; for separate minima without an aligned line, that alignment was not tried."""
    if aligned is None:
        return (
            "Hidden units were not aligned, so the two may still be one basin up to permutation."
            if kind == "separate"
            else ""
        )
    if line.surely_within(tolerance) or not aligned.of_minima:
        return ""
    if aligned.line is None:
        return f"Alignment was tried and refused: {aligned.note}."
    start, end = between
    how = f"with the hidden units of {end} in the order of {start} (matched {_HOW.get(aligned.method, aligned.method)})"
    both = f"the line has a barrier of {number(aligned.line)}, as given {number(line)}"
    match aligned.kind(tolerance):
        case "one basin up to permutation":
            return f"One basin up to permutation: {how}, {both}."
        case "separate up to permutation":
            return f"Alignment was tried: {how}, {both}."
        case _:
            return f"Alignment was tried: {how}, {both}; the tolerance does not decide."
