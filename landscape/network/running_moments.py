"""Mean and variance of each channel over many blocks, accurate and fast."""

from __future__ import annotations

import torch
from torch import Tensor

_COLUMNS = 512
_LONGEST_SUM = 4096


class RunningMoments:
    """Mean and biased variance of every channel (dimension 1) over all added blocks.

    The torch kernel adds in the data type of the values, one running sum per channel: slow for few channels, and
    inaccurate for long sums. So the values become a matrix with the channels repeated to about 500 columns, with a
    short sum per column, and these are pooled in float64:

        m = sum_i n_i m_i / n,   v = sum_i n_i (v_i + (m_i - m)^2) / n.
    """

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._means: list[Tensor] = []
        self._variances: list[Tensor] = []

    def add(self, x: Tensor) -> None:
        """Add a block of shape (samples, channels, ...)."""
        channels = x.shape[1]
        rows = x.movedim(1, -1).reshape(-1, channels)
        repeats = 1
        while 2 * repeats * channels <= _COLUMNS and len(rows) % (2 * repeats) == 0:
            repeats *= 2
        for part in rows.view(-1, repeats * channels).split(_LONGEST_SUM):  # type: ignore[no-untyped-call]
            # The matrix as an image in channels-last order: one sample, as many pixels as rows.
            mean, variance = torch.batch_norm_update_stats(part.T.unsqueeze(0).unsqueeze(-1), None, None, 0.0)
            self._counts += [len(part)] * repeats
            self._means.append(mean.view(repeats, channels))
            self._variances.append(variance.view(repeats, channels))

    def pooled(self) -> tuple[Tensor, Tensor]:
        """Mean and variance, float64 of shape (channels,)."""
        means, variances = torch.cat(self._means).double(), torch.cat(self._variances).double()
        shares = means.new_tensor(self._counts).div_(sum(self._counts)).unsqueeze(1)
        mean = (shares * means).sum(dim=0)
        return mean, (shares * (variances + (means - mean) ** 2)).sum(dim=0)
