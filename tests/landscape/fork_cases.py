"""A landscape of forks whose barriers are known: 0.8 / 2^k at the k-th epoch, 0.01 more for the second seed."""

from __future__ import annotations

import numpy as np

from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord, PathRecord, PathValues, line_name

EPOCHS = (0, 1, 5, 20)
KINDS = ("sgd", "altsdp")
SLOPE = 0.002  # the loss of every fork, and so the rise beyond the barrier
UNRELATED = 1.25


def hill(kind: str, number: int, seed: int) -> float:
    return 0.8 / 2 ** (number * (1 + KINDS.index(kind))) + 0.01 * seed


def straight(start: str, end: str, height: float, last: float = SLOPE) -> PathRecord:
    t = np.linspace(0, 1, 3)
    values = PathValues(np.array([0.0, last + height, last]), np.zeros(3))
    return PathRecord(line_name(start, end), "line", start, end, t, t, {"train": values})


def network(name: str, **settings: object) -> MinimumRecord:
    final = {"train_loss": SLOPE, "test_accuracy": 0.9, "zero_groups": 0.5}
    return MinimumRecord(name, "sgd", dict(settings), final=final)


def forked() -> Landscape:
    landscape = Landscape("forks", spec={"forks": {"epochs": list(EPOCHS)}})
    for seed, suffix in enumerate(("", "_s2")):
        landscape.minima[f"sgd{suffix}"] = network(f"sgd{suffix}")
        for kind in KINDS:
            for number, epoch in enumerate(EPOCHS):
                name = f"{kind}_e{epoch}{suffix}"
                landscape.minima[name] = network(name, fork={"from": f"sgd{suffix}", "epoch": epoch})
                line = straight(f"sgd{suffix}", name, hill(kind, number, seed))
                landscape.lines[line.name] = line
    line = straight("sgd", "sgd_s2", UNRELATED)
    landscape.lines[line.name] = line
    return landscape
