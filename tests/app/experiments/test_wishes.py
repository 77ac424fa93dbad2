"""Shares of zero filters that a network cannot have are found from the sizes of its layers."""

from __future__ import annotations

from typing import Any

import pytest

from valleyscope.app.experiments.model_info import ModelInfo
from valleyscope.app.experiments.model_inspector import answer
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.app.experiments.spec_parts import Model
from valleyscope.app.experiments.wishes import check_wishes, wish_errors
from valleyscope.training import build_model, load_dataset
from valleyscope.training.models.operation_count import multiply_adds
from valleyscope.training.settings import Training

SMALL = Model(name="cnn", channels=[4, 8], hidden=16)


class Inspected:
    """Networks that are inspected in this process; counts how often."""

    looks = 0

    def _request(self, model: Model, dataset: str) -> dict[str, Any]:
        self.looks += 1
        return {"model": model.model_dump(), "dataset": dataset, "data_root": None, "max_parameters": 10**6}

    def inspect(self, model: Model, dataset: str, loss: str = "") -> ModelInfo:  # noqa: ARG002
        return ModelInfo.from_json(answer(self._request(model, dataset)))

    def fewest_share(self, model: Model, dataset: str, loss: str, run: Training) -> float:  # noqa: ARG002
        partition = {"bias": run.bias, "skip_output": run.skip_output, "tie_residual": run.tie_residual}
        request = self._request(model, dataset) | {"partition": partition, "floor": run.floor}
        found: float = answer(request)["fewest"]
        return found


def compared(share: float, wish: str = "sparsities", **training: Any) -> Spec:
    model = {"name": "cnn", "channels": [8, 12], "hidden": 30}
    return parse_spec({"model": model, "methods": ["one-shot", "altsdp"], wish: [share], "training": training})


def refused(spec: Spec) -> dict[str, str]:
    return {".".join(map(str, error.path)): error.message for error in wish_errors(spec, Inspected())}


def test_a_cut_leaves_one_filter_in_each_layer_and_a_threshold_need_not() -> None:
    assert refused(compared(0.94)) == {}
    found = refused(compared(0.95))
    assert list(found) == ["minima.one-shot_95.sparsity"]
    assert "0.940 is the most" in found["minima.one-shot_95.sparsity"]


def test_a_floor_is_rounded_up_in_every_layer() -> None:
    # 3 + 4 + 9 of 50 filters are kept, so 68 % can go, not 70 %
    assert refused(compared(0.68, floor=0.3)) == {}
    assert set(refused(compared(0.7, floor=0.3))) == {"minima.one-shot_70.sparsity", "minima.altsdp_70.sparsity"}


def test_multiply_adds_cannot_fall_below_those_of_the_narrowest_network() -> None:
    full, narrow = (
        multiply_adds(build_model("cnn", load_dataset("digits"), channels=channels, hidden=hidden), (1, 8, 8))
        for channels, hidden in (((8, 12), 30), ((2, 3), 8))
    )
    assert refused(compared(narrow / full + 0.001, "macs", floor=0.25)) == {}
    found = refused(compared(narrow / full - 0.001, "macs", floor=0.25))
    assert len(found) == 2
    assert all("cannot be reached: with floor=0.25" in message for message in found.values())


def test_only_a_bold_wish_is_held_against_the_network_itself() -> None:
    networks = Inspected()
    check_wishes(compared(0.5), networks)
    assert networks.looks == 0
    with pytest.raises(BadSpec, match=r"minima.a.sparsity: sparsity=0.95 cannot be reached"):
        check_wishes(wished(0.95), networks)
    check_wishes(wished(0.8), networks)


def wished(share: float) -> Spec:
    return parse_spec({"model": SMALL.model_dump(), "minima": {"a": {"method": "cop", "sparsity": share}}})
