"""The tasks of an estimated plane: rounds of parts, a picture after each round, and exact tiles if they are needed.

The number of rounds that an accuracy needs is known only on the way, so the plan has as many as are allowed. Once a
plane is settled its further tasks end at once.
"""

from __future__ import annotations

from typing import Any, Final

from valleyscope.landscape.storage.records import PlaneRecord

ROUNDS: Final = 14
"""More than the rounds of one accuracy (``estimation.rounds.MOST_ROUNDS``): it can be tightened later."""
PARTS: Final = 8


def part_file(work: str, plane: str, round: int, part: int) -> str:
    """The file with the losses that a part of a round computed."""
    return f"{work}/estimate-{plane}-{round}-{part}.npz"


def is_part_file(work: str, plane: str, name: str) -> bool:
    return name.startswith(f"{work}/estimate-{plane}-")


def part_index(round: int, part: int) -> int:
    """The index of the task of a part."""
    return round * PARTS + part


def is_settled(record: PlaneRecord | None, accuracy: float | None) -> bool:
    """Whether no more rounds are needed for this accuracy."""
    if record is None:
        return False
    if not record.estimate:
        return record.complete  # computed exactly before an accuracy was given
    estimate: dict[str, Any] = record.estimate
    return accuracy is not None and bool(estimate["settled"]) and bool(estimate["accuracy"] <= accuracy)


def is_exact(record: PlaneRecord, rows: Any, columns: Any, splits: Any) -> bool:
    """Whether these points are done, and exact on these splits."""
    errors = (record.splits[split]["loss_error"][rows, columns] for split in splits)
    return bool(record.done[rows, columns].all()) and all(bool((error == 0).all()) for error in errors)
