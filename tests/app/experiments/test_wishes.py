"""Shares of zero filters that a network cannot have are found from the sizes of its layers."""

from __future__ import annotations

from typing import Any

import pytest

from valleyscope.app.experiments.model_info import ModelInfo
from valleyscope.app.experiments.model_inspector import inspect_model
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.app.experiments.spec_parts import Model
from valleyscope.app.experiments.wishes import check_wishes, wish_errors

SIZES = (8, 12, 30)


def compared(share: float, **training: Any) -> Spec:
    return parse_spec({"methods": ["one-shot", "altsdp"], "sparsities": [share], "training": training})


def refused(spec: Spec) -> dict[str, str]:
    return {".".join(map(str, error.path)): error.message for error in wish_errors(spec, SIZES)}


def test_a_cut_leaves_one_filter_in_each_layer_and_a_threshold_need_not() -> None:
    assert refused(compared(0.94)) == {}
    found = refused(compared(0.95))
    assert list(found) == ["minima.one-shot_95.sparsity"]
    assert "0.940 is the most" in found["minima.one-shot_95.sparsity"]


def test_a_floor_is_rounded_up_in_every_layer() -> None:
    # 3 + 4 + 9 of 50 filters are kept, so 68 % can go, not 70 %
    assert refused(compared(0.68, floor=0.3)) == {}
    assert set(refused(compared(0.7, floor=0.3))) == {"minima.one-shot_70.sparsity", "minima.altsdp_70.sparsity"}


def inspected(model: Model, dataset: str) -> ModelInfo:
    request = {"model": model.model_dump(), "dataset": dataset, "data_root": None, "max_parameters": 10**6}
    return ModelInfo.from_json(inspect_model(request))


def test_a_bold_wish_is_held_against_the_network_itself() -> None:
    def untouched(model: Model, dataset: str) -> ModelInfo:  # noqa: ARG001
        raise AssertionError("a modest wish must not cost a look at the network")

    check_wishes(compared(0.5), untouched)
    small = {"name": "cnn", "channels": [4, 8], "hidden": 16}
    with pytest.raises(BadSpec, match=r"minima.a.sparsity: sparsity=0.95 cannot be reached"):
        check_wishes(parse_spec({"model": small, "minima": {"a": {"method": "cop", "sparsity": 0.95}}}), inspected)
    check_wishes(parse_spec({"model": small, "minima": {"a": {"method": "cop", "sparsity": 0.8}}}), inspected)
