"""One-shot pruning: a trained network loses the groups of lowest score, without or with retraining.

Scores: norm (Li et al. 2017), γ of BatchNorm (Liu et al. 2017) or Taylor (Molchanov et al. 2019), see `scores`.
BatchNorm undoes the scale of the layer before it, so norms of different layers cannot be compared there: without a
`scope` every layer of such a network loses the same share; other networks lose their lowest scores wherever they are.
"""

from __future__ import annotations

from torch import Tensor

from valleyscope.training.batch_norm import norms_of
from valleyscope.training.methods.method import Method
from valleyscope.training.methods.scores import scores
from valleyscope.training.methods.selection import select


class OneShot(Method):
    """SGD, unless the network is trained already, and one cut."""

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        settings = self.context.settings
        score, scope = settings.option("score"), settings.option("scope")
        if scope is None:
            scope = "layer" if score == "norm" and norms_of(self.context.model) else "network"
        return select(self.context, scores(self.context, score), by_layer=scope == "layer")
