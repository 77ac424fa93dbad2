"""The pruning methods by name: what they do, their source, and the options that each one has. Without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MethodName = Literal[
    "altsdp",
    "group-lasso",
    "grda",
    "group-lasso-rda",
    "rmda",
    "ns",
    "pr",
    "sfp",
    "fpgm",
    "deephoyer",
    "hesso",
    "ucs",
    "one-shot",
    "ls",
    "cp",
    "cop",
    "sdp",
]
Kind = Literal["optimizer", "penalty", "projection", "narrower", "post hoc"]


@dataclass(frozen=True)
class MethodInfo:
    """One method: `options` has the fields of a run that only some methods have, with their defaults.

    kind: `optimizer` (its steps make groups zero), `penalty` (added to the loss, then one cut), `projection` (groups
    are set to zero while it trains), `narrower` (zero from the start) or `post hoc` (one cut of a trained network).
    ties: whether its groups may be filters of several layers that a residual addition joins (`tie_residual`).
    """

    title: str
    formula: str
    source: str
    kind: Kind
    options: Mapping[str, Any] = field(default_factory=dict)
    needs_batch_norm: bool = False
    filters_only: bool = False
    needs_wish: bool = True
    ties: bool = False

    @property
    def post_hoc(self) -> bool:
        return self.kind == "post hoc"


_RETRAIN = {"retrain": None}
_ALTSDP = "Structured directional pruning, the paper that this project reproduces"

METHODS: dict[str, MethodInfo] = {
    "altsdp": MethodInfo(
        title="AltSDP, structured directional pruning",
        formula="w_i = S(w_i - γ d_i, g), g = c √γ (nγ)^μ; ends at the wished share",
        source=_ALTSDP,
        kind="optimizer",
        options={"mode": "prox", "mu": 0.51, "c": None, "target": None, **_RETRAIN},
        needs_wish=False,
        ties=True,
    ),
    "group-lasso": MethodInfo(
        title="group lasso by proximal SGD",
        formula="w_i = S(w_i - γ d_i, γλ)",
        source="Yuan and Lin 2006; proximal SGD as in Wen et al. 2016",
        kind="optimizer",
        options={"penalty": 3e-5, **_RETRAIN},
        needs_wish=False,
        ties=True,
    ),
    "grda": MethodInfo(
        title="generalised regularised dual averaging, single weights",
        formula="v -= γ d; T += c γ^(μ+½) (n^μ - (n-1)^μ); w = sign(v) (|v| - T)_+",
        source="Chao and Cheng 2019; Chao et al. 2020 (directional pruning)",
        kind="optimizer",
        options={"mu": 0.51, "c": None, "target": None, **_RETRAIN},
        needs_wish=False,
    ),
    "group-lasso-rda": MethodInfo(
        title="group lasso by regularised dual averaging",
        formula="v -= γ d; T += γλ; w_i = S(v_i, T), v = w at the random start",
        source="Xiao 2010; Yang et al. 2010",
        kind="optimizer",
        options={"penalty": 3e-5, **_RETRAIN},
        needs_wish=False,
        ties=True,
    ),
    "rmda": MethodInfo(
        title="regularised modernised dual averaging",
        formula="s = γ√t; V += s d; a += s; w~_i = S(w0_i - V_i/√t, λ √size a/√t); w = (1-β) w + β w~",
        source="Huang and Lee 2022",
        kind="optimizer",
        options={"penalty": 1.5e-4, "averaging": 0.1, **_RETRAIN},
        needs_wish=False,
    ),
    "ns": MethodInfo(
        title="network slimming",
        formula="gradient of γ_BN += s sign(γ_BN); cut the smallest |γ_BN|",
        source="Liu et al. 2017",
        kind="penalty",
        options={"penalty": 1e-4, "scope": "network", **_RETRAIN},
        needs_batch_norm=True,
        filters_only=True,
    ),
    "pr": MethodInfo(
        title="polarization regulariser",
        formula="R = λ Σ (t |γ_BN| - |γ_BN - mean|), γ_BN in [0, 1]; cut at the first valley of the histogram",
        source="Zhuang et al. 2020",
        kind="penalty",
        options={"penalty": 3e-5, "polarization": 1.5, "scope": "network", **_RETRAIN},
        needs_batch_norm=True,
        filters_only=True,
        needs_wish=False,
    ),
    "sfp": MethodInfo(
        title="soft filter pruning",
        formula="after each epoch the filters of smallest norm of each layer become zero, and may grow again",
        source="He et al. 2018",
        kind="projection",
        options={**_RETRAIN},
        filters_only=True,
    ),
    "fpgm": MethodInfo(
        title="filter pruning by geometric median",
        formula="as sfp, by score_i = Σ_j ||w_i - w_j|| within each layer",
        source="He et al. 2019",
        kind="projection",
        options={**_RETRAIN},
        filters_only=True,
    ),
    "deephoyer": MethodInfo(
        title="DeepHoyer, group Hoyer-square",
        formula="R = α Σ_layers (Σ_i ||w_i||)² / Σ_i ||w_i||² over filters and over input channels; then a cut by norm",
        source="Yang et al. 2020",
        kind="penalty",
        options={"penalty": 1e-3, "scope": "network", **_RETRAIN},
        filters_only=True,
        needs_wish=False,
    ),
    "hesso": MethodInfo(
        title="HESSO, hybrid sparse optimiser",
        formula="in P periods of T steps the groups of lowest saliency: w_i *= (T-t-1)/(T-t); then fixed at zero",
        source="Chen et al. 2024 (OTO)",
        kind="projection",
        options={"score": "norm", "periods": 10, **_RETRAIN},
        ties=True,
    ),
    "ucs": MethodInfo(
        title="uniformly narrower network from scratch",
        formula="the last filters of each layer are zero from the start; the rest is trained by SGD",
        source="the control of Liu et al. 2019 (rethinking pruning)",
        kind="narrower",
        options={**_RETRAIN},
        filters_only=True,
        ties=True,
    ),
    "one-shot": MethodInfo(
        title="one-shot pruning",
        formula="cut the groups of lowest score: norm, γ of BatchNorm, or Taylor (w·∂L/∂w)²",
        source="Li et al. 2017 (norm); Molchanov et al. 2019 (Taylor)",
        kind="post hoc",
        options={"score": "norm", "scope": None, **_RETRAIN},
        ties=True,
    ),
    "ls": MethodInfo(
        title="one-shot pruning with least squares",
        formula="one-shot, then layer by layer min ||X'(W + Δ) - XW||² + ε||Δ||² over Δ",
        source="the reconstruction of He et al. 2017 and Luo et al. 2017, for all layers in turn",
        kind="post hoc",
        options={"score": "norm", "scope": None, **_RETRAIN},
        filters_only=True,
        ties=True,
    ),
    "cp": MethodInfo(
        title="channel pruning",
        formula="per layer min ½||Y - Σ_c β_c X_c W_c||² + λ||β||_1 of the layer that follows; then least squares",
        source="He, Zhang and Sun 2017",
        kind="post hoc",
        options={**_RETRAIN},
        filters_only=True,
        ties=True,
    ),
    "cop": MethodInfo(
        title="correlation-based pruning",
        formula="score_i = (1 - max |corr(w_i, w_j)| over larger filters j of the layer)/max + cost term",
        source="after Wang et al. 2019",
        kind="post hoc",
        options={"cost_weight": 0.1, **_RETRAIN},
        filters_only=True,
    ),
    "sdp": MethodInfo(
        title="exact structured directional pruning",
        formula="w_i = (1 - λ s_i / ||w_i||)_+ w_i, s_i = <E(w_i), Pi_i(E_G(w))> from the Hessian, or 1",
        source=_ALTSDP + ", Theorem 1",
        kind="post hoc",
        options={"strength": None, "factors": "hessian", "curvature_cut": 1e-3, "curvature_samples": None, **_RETRAIN},
        needs_wish=False,
    ),
}

OPTIONS: frozenset[str] = frozenset(option for info in METHODS.values() for option in info.options)
"""All fields of a run that only some methods have."""
IMPLIED: dict[str, dict[str, Any]] = {
    "altsdp": {"optimizer": "altsdp"},
    "grda": {"optimizer": "altsdp", "mode": "dual"},
}
"""Fields that a method determines."""
NOT_OURS = ("DCP", "CCP", "AMC")
"""Methods of the paper's tables that are not built here: only their published numbers are shown."""


def describe_methods() -> dict[str, MethodInfo]:
    """Return every method: what it does, its source and its options.

    >>> describe_methods()["ns"].options["penalty"]
    0.0001
    """
    return dict(METHODS)
