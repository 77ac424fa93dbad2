"""One-shot pruning: a trained network loses the groups of lowest score, without or with retraining.

Scores: norm (Li et al. 2017), γ of BatchNorm (Liu et al. 2017) or Taylor (Molchanov et al. 2019), see `scores`.
"""

from __future__ import annotations

from torch import Tensor

from valleyscope.training.methods.method import Method
from valleyscope.training.methods.scores import scores
from valleyscope.training.methods.selection import select


class OneShot(Method):
    """SGD, unless the network is trained already, and one cut."""

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        settings = self.context.settings
        found = scores(self.context, settings.option("score"))
        return select(self.context, found, by_layer=settings.option("scope") == "layer")
