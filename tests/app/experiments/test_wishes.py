"""Shares of zero filters that a network cannot have are found from the sizes of its layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
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


def test_the_terminal_refuses_a_bold_wish_before_anything_is_trained(tmp_path: Path) -> None:
    check_wishes(compared(0.5), tmp_path)
    small = {"name": "cnn", "channels": [4, 8], "hidden": 16}
    with pytest.raises(BadSpec, match=r"minima.a.sparsity: sparsity=0.95 cannot be reached"):
        check_wishes(parse_spec({"model": small, "minima": {"a": {"method": "cop", "sparsity": 0.95}}}), tmp_path)
