"""A container's limit counts where it is below what the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from valleyscope.landscape.network import memory_limit

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("said", "found"),
    [("4294967296\n", 2**32), ("max\n", MACHINE), (f"{2**63 - 4096}\n", MACHINE), ("", MACHINE), (None, MACHINE)],
)
def test_the_smaller_of_machine_and_container_counts(
    said: str | None, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory_limit.max"
    if said is not None:
        limit.write_text(said)
    monkeypatch.setattr(memory_limit, "_LIMITS", (limit, tmp_path / "of-the-first-version"))
    assert memory_limit.machine_memory() == found
