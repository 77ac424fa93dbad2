"""What the default experiment shows, for three seeds: AltSDP prunes most filters and stays in SGD's basin."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from valleyscope.landscape import along, barrier, flatten, line
from valleyscope.training import build_model, load_dataset, train
from valleyscope.training.outcomes import Trained


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.drill), pytest.param(2, marks=pytest.mark.drill)]
)
def test_altsdp_prunes_most_groups_and_stays_in_the_basin_of_sgd(seed: int) -> None:
    data = load_dataset("digits")

    def run(seed: int, **fields: object) -> Trained:
        return train(build_model("cnn", data, seed=seed), data, seed=seed, **fields)

    sgd, altsdp, control = run(seed), run(seed, optimizer="altsdp", target=1.6), run(100 + seed)
    assert sgd.final.test_accuracy >= 0.98
    assert 0.55 <= altsdp.final.zero_groups <= 0.65
    # 360 test images: one point is 3.6 of them, and other seeds (3: 1.4 points) are beyond it
    assert altsdp.final.test_accuracy >= sgd.final.test_accuracy - 0.01
    start, pruned, other = (flatten(found.model) for found in (sgd, altsdp, control))
    with torch.no_grad():
        near = along(sgd.model, line(start, pruned), data.splits)["train"].loss
        far = along(sgd.model, line(start, other), data.splits)["train"].loss
    assert np.isfinite(near).all()
    assert barrier(near) <= 0.01
    assert barrier(far) >= 0.3
