"""Cluster drills: whatever happens to a deployment, experiments end as if nothing had happened.

One API, three workers and Postgres as real processes, several experiments at once. Faults come one after another, at
moments and to victims that chance chooses; `DRILL_SEED` repeats a choice.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.app.runs import assert_same_results
from tests.cluster.deployment import FINAL, Deployment
from tests.cluster.faults import Outcome, Saboteur
from tests.cluster.postgres import Postgres
from valleyscope.app.experiments.plan import plan, plane_tiles
from valleyscope.app.experiments.spec import Spec

pytestmark = pytest.mark.long

LEASE_SECONDS = 15.0
AT_ONCE = 3
SPEC: dict[str, Any] = {
    "name": "drill",
    "model": {"name": "tests.cluster.plugins:unhurried", "seconds": 0.02},
    "training": {"epochs": 8, "batch_size": 128},
    "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp", "target": 0.7}},
    "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 3}},
    "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 5}},
    "points": 5,
    "verdict": {"resamples": 100},
}
SHORT = (
    "worker killed",
    "worker stopped shortly",
    "wire swallows for long",
    "Postgres stopped",
    "API killed",
    "worker never returns",
)
LONG = {
    "worker killed": 9,
    "child killed": 8,
    "API killed": 5,
    "worker stopped shortly": 8,
    "worker stopped for long": 3,
    "API stopped shortly": 5,
    "worker never returns": 3,
    "child never returns": 2,
    "wire swallows shortly": 8,
    "wire swallows for long": 3,
    "wire is reset": 6,
    "Postgres stopped": 4,
}


@pytest.fixture
def deployment(request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path) -> Iterator[Deployment]:
    """Children that never return are part of the long form only: in the short one none is given up for being slow.

    A machine has been seen on which a child that loads torch gave no sign of life for 30 seconds, three times.
    """
    long = request.node.get_closest_marker("drill") is not None
    environment = {
        "VALLEY_ALLOWED_MODELS": SPEC["model"]["name"],
        "VALLEY_LEASE_SECONDS": str(LEASE_SECONDS),
        "VALLEY_STALL_SECONDS": "30" if long else "600",
    }
    name = f"drill_{os.getpid()}_{time.monotonic_ns()}"
    with closing(Deployment(postgres, tmp_path / "home", name, environment)) as found:
        found.start(workers=3)
        yield found


class Load:
    """Several experiments at once, replaced when they end."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.reference = self.submit("reference")
        self.deployment.until(lambda: self.state(self.reference) in FINAL, 900, "the undisturbed run does not end")
        assert deployment.experiment(self.reference)["error"] is None
        self.disturbed: list[str] = []

    def submit(self, key: str) -> str:
        return self.deployment.submit(SPEC, key)

    def state(self, experiment: str) -> str:
        return str(self.deployment.experiment(experiment)["state"])

    def keep_up(self) -> None:
        active = sum(self.state(experiment) not in FINAL for experiment in self.disturbed[-2 * AT_ONCE :])
        for _ in range(AT_ONCE - active):
            self.disturbed.append(self.submit(f"disturbed-{len(self.disturbed)}"))

    def finish(self) -> None:
        for experiment in self.disturbed:
            self.deployment.until(lambda one=experiment: self.state(one) in FINAL, 900, f"{experiment} does not end")


def endure(
    deployment: Deployment, kinds: Sequence[str], chance: random.Random, tell: Callable[[str], None] = print
) -> list[Outcome]:
    load = Load(deployment)
    saboteur = Saboteur(deployment, chance, LEASE_SECONDS)
    for kind in kinds:
        load.keep_up()
        time.sleep(chance.uniform(0.0, 1.5))
        outcome = saboteur.strike(kind)
        tell(f"{kind}: {outcome.seconds:.1f} s for {outcome.touched} tasks")
    load.finish()
    assert len(set(load.disturbed)) == len(load.disturbed)
    for experiment in load.disturbed:
        row = deployment.experiment(experiment)
        assert (row["state"], row["error"], row["run"]) == ("done", None, 1), experiment
        assert_same_results(deployment.directory(load.reference), deployment.directory(experiment))
        assert_counted_once(deployment, experiment)
    robbed = deployment.buried() - saboteur.condemned
    assert not robbed, f"processes {robbed} were alive and taken for dead"
    return saboteur.outcomes


def assert_counted_once(deployment: Deployment, experiment: str) -> None:
    """Every task has one result, was issued once, and every tile was told of, again only with the same values."""
    spec = Spec.model_validate(SPEC)
    rows = deployment.tasks(experiment)
    if rows:  # they are cleared away some time after the end
        assert {name: row.state for (_, name), row in rows.items()} == {task.id: "saved" for task in plan(spec)}
    told: dict[int, list[Any]] = defaultdict(list)
    for event in deployment.events(experiment):
        if event.kind == "tile":
            told[event.data["index"]].append(event.data["values"])
    assert sorted(told) == list(range(len(plane_tiles(spec, "valley"))))
    assert all(value == values[0] for values in told.values() for value in values)
    states = [event.data["state"] for event in deployment.events(experiment) if event.kind == "state"]
    assert states == ["queued", "running", "done"]


def table(outcomes: Sequence[Outcome]) -> str:
    """Faults by kind, recoveries, and seconds to recover."""
    counts = Counter(outcome.kind for outcome in outcomes)
    lines = [f"{'fault':26} {'faults':>6} {'recovered':>9} {'median s':>9} {'max s':>7}"]
    for kind in [*counts, "all"]:
        seconds = [outcome.seconds for outcome in outcomes if kind in (outcome.kind, "all")]
        middle, longest = statistics.median(seconds), max(seconds)
        lines.append(f"{kind:26} {len(seconds):6} {len(seconds):9} {middle:9.1f} {longest:7.1f}")
    return "\n".join(lines)


def test_experiments_survive_one_fault_of_each_kind(deployment: Deployment) -> None:
    outcomes = endure(deployment, SHORT, random.Random(6))
    print(table(outcomes))
    assert [outcome.kind for outcome in outcomes] == list(SHORT)


@pytest.mark.drill
def test_experiments_survive_sixty_random_faults(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("DRILL_SEED", random.randrange(10**6)))
    chance = random.Random(seed)
    kinds = [kind for kind, count in LONG.items() for _ in range(count)]
    assert len(kinds) >= 60
    chance.shuffle(kinds)

    def tell(words: str) -> None:
        with capsys.disabled():
            print(words, flush=True)

    tell(f"\nDRILL_SEED={seed}, {len(kinds)} faults")
    outcomes = endure(deployment, kinds, chance, tell)
    tell(table(outcomes))
    assert len(outcomes) == len(kinds)
