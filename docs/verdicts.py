"""How far AltSDP prunes, and what the verdict says to it; prints the table of docs/verdicts.md.

    valley serve                                              # in another terminal
    python docs/verdicts.py --server http://127.0.0.1:8360    # 18 experiments of about half a minute each
    python docs/verdicts.py --server http://127.0.0.1:8360 --seeds 0 --thresholds 2.2 5

Six thresholds G, three seeds each, on digits. The experiments stay in the list of the server: choose those of one
seed there, and Compare. A second call prints the table again without computing anything.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from valleyscope.app.commands.client import FINAL, Client

THRESHOLDS = (0, 1, 1.6, 2.2, 3.5, 5)
SEEDS = (0, 1, 2)
COLUMNS = ("G", "verdict", "rise", "barrier", "control", "zero groups", "accuracy", "accuracy of SGD")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", metavar="URL", required=True, help="a server that runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, metavar="N", help="default: 0 1 2")
    parser.add_argument("--thresholds", type=float, nargs="+", default=THRESHOLDS, metavar="G", help="default: all six")
    options = parser.parse_args()
    client, seeds, targets = Client(options.server), options.seeds, options.thresholds
    ids = {(target, seed): submitted(client, target, seed) for seed in seeds for target in targets}
    found = {key: ended(client, id) for key, id in ids.items()}
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for target in targets:
        print(f"| {' | '.join(row(target, [found[target, seed] for seed in seeds]))} |")


def submitted(client: Client, target: float, seed: int) -> str:
    """The id of the experiment with this threshold and seed; the server knows a second submission by its key."""
    return str(client.submit(spec(target, seed), key=f"thresholds-{target:g}-{seed}")["id"])


def spec(target: float, seed: int) -> dict[str, Any]:
    return {
        "name": f"G = {target:g}, seed {seed}",
        "dataset": "digits",
        "model": {"name": "cnn", "channels": [16, 32], "hidden": 128},
        "seed": seed,
        "training": {"epochs": 120, "batch_size": 32, "lr": 0.1, "schedule": {"kind": "halving", "every": 30}},
        "minima": {
            "sgd": {"optimizer": "sgd"},
            "altsdp": {"optimizer": "altsdp", "mode": "prox", "mu": 0.51, "target": target, "structure": "filter"},
            "control": {"optimizer": "sgd", "seed": seed + 5},
        },
        "curves": {},
        "planes": {"basins": {"through": ["sgd", "altsdp", "control"], "resolution": 21, "complete": "random"}},
    }


def ended(client: Client, id: str) -> Mapping[str, Any]:
    """The experiment when it has ended, with the accuracy of its first network, or the reason why it has none."""
    while (found := client.experiment(id))["state"] not in FINAL:
        time.sleep(1)
    if found["state"] == "done":
        found["sgd_accuracy"] = client.get(f"/api/experiments/{id}/minima")["minima"]["sgd"]["final"]["test_accuracy"]
    return found


def row(target: float, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    done = [run for run in runs if run["state"] == "done"]
    kinds = Counter(run["verdict_kind"] if run in done else f"{run['state']}: {run['error']}" for run in runs)
    numbers = [
        joined(done, name, scale, digits)
        for name, scale, digits in (
            ("rise", 1, 3),
            ("barrier", 1, 3),
            ("control_barrier", 1, 2),
            ("zero_groups", 100, 1),
            ("accuracy", 100, 1),
            ("sgd_accuracy", 100, 1),
        )
    ]
    return [f"{target:g}", "; ".join(f"{kind} ({count})" for kind, count in kinds.items()), *numbers]


def joined(runs: Sequence[Mapping[str, Any]], name: str, scale: float, digits: int) -> str:
    """The values of all seeds, in their order."""
    return ", ".join("-" if run[name] is None else f"{scale * run[name]:.{digits}f}" for run in runs)


if __name__ == "__main__":
    main()
