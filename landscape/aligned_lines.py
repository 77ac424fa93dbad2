"""The lines of a comparison to networks whose hidden units are in the order of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from valleyscope.landscape.alignment.align import Aligner, Method
from valleyscope.landscape.analysis.path_estimates import with_path_estimates
from valleyscope.landscape.analysis.profiles import Profile
from valleyscope.landscape.geometry.curves import Curve, line
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import as_vector


class AlignedLines:
    """For each pair of networks, the straight line to the second one aligned to the first."""

    def __init__(
        self,
        model: nn.Module,
        networks: Mapping[str, Any],
        vectors: Mapping[str, Tensor],
        data: Any,
        method: Method,
        parameters: Parameters,
    ) -> None:
        self._model, self._networks, self._vectors = model, networks, vectors
        self._data, self._method, self._parameters = data, method, parameters
        self._aligners: dict[str, Aligner] = {}
        self.notes: dict[str, str] = {}

    def line(self, label: str, start: str, end: str) -> Curve:
        if start not in self._aligners:
            self._aligners[start] = Aligner(
                self._model, self._networks[start], self._data, method=self._method, parameters=self._parameters
            )
        found = self._aligners[start].align(self._networks[end], end)
        self.notes[label] = found.text(start, end)
        return line(self._vectors[start], as_vector(self._model, found.state, end, self._parameters))


def with_aligned_estimates(
    verdict: Mapping[str, Any], lines: list[str], profile: Callable[[str], Profile], *, seed: int = 0
) -> dict[str, Any]:
    """The JSON of a verdict with the estimates of aligned lines, by the names of the lines."""
    if not lines:
        return dict(verdict)
    return {**verdict, "aligned_paths": with_path_estimates(verdict, lines, profile, seed=seed)["paths"]}
